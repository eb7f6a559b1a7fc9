"""Keys to servers: nothing is lost, the fullest server is bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.hardware import build_cluster
from simperf.training.servers.placement import PLACEMENTS, loads, place_keys, server_nodes, worker_gpus

SIZES = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=40)


@given(SIZES, st.integers(1, 8), st.sampled_from(PLACEMENTS), st.floats(1e8, 1e9))
def test_every_byte_is_kept_once(sizes, servers, how, slice_size):
    if how != "sliced" and servers > len(sizes):
        return
    shards = place_keys(sizes, servers=servers, how=how, slice_size=slice_size)
    assert [shard.index for shard in shards] == list(range(len(shards)))
    for key, size in enumerate(sizes):
        assert sum(shard.nbytes for shard in shards if shard.key == key) == pytest.approx(size)
    if how != "sliced":
        assert max(shard.nbytes for shard in shards) <= slice_size * (1 + 1e-9)
    assert sum(loads(shards, servers)) == pytest.approx(sum(sizes))


@given(SIZES, st.integers(1, 8))
def test_balanced_is_within_four_thirds_of_any_placement(sizes, servers):
    """Graham's bound for the longest first: 4/3 - 1/(3 m) of the best, itself no less than these two."""
    if servers > len(sizes):
        return
    fullest = max(loads(place_keys(sizes, servers=servers), servers))
    ordered = sorted(sizes, reverse=True)
    pair = ordered[servers - 1] + ordered[servers] if len(sizes) > servers else 0.0
    best = max(sum(sizes) / servers, ordered[0], pair)
    assert fullest <= (4 / 3) * max(best, sum(sizes) / servers + ordered[-1]) * (1 + 1e-9)
    assert fullest >= best * (1 - 1e-9) or len(sizes) > servers


def test_one_large_key_cannot_be_balanced_but_sliced():
    sizes = [1.0] * 10 + [90.0]
    assert max(loads(place_keys(sizes, servers=4), 4)) == 90.0
    assert loads(place_keys(sizes, servers=4, how="sliced"), 4) == [25.0] * 4
    assert max(loads(place_keys(sizes, servers=4, slice_size=5.0), 4)) == 25.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"servers": 0}, "at least one server"),
        ({"servers": 3}, "3 servers for 2 shards"),
        ({"servers": 1, "how": "balance"}, "did you mean 'balanced'"),
        ({"servers": 1, "slice_size": 0.0}, "above 0"),
    ],
)
def test_placements_without_meaning(options, words):
    with pytest.raises(InputError, match=words):
        place_keys([1.0, 2.0], **options)


def test_negative_keys_and_none():
    with pytest.raises(InputError, match="finite size"):
        place_keys([-1.0], servers=1)
    with pytest.raises(InputError, match="no key"):
        place_keys([], servers=1)


def test_servers_go_to_every_machine_before_the_second_of_any(catalog):
    cluster = build_cluster("p3-16xlarge", 3, catalog=catalog, link="ethernet-25g-jumbo")
    gpus = worker_gpus(cluster, 16)
    assert len(gpus) == 16
    assert server_nodes(cluster, gpus, servers=3, where="cpu")[:2] == ("n0/cpu0", "n1/cpu0")
    assert server_nodes(cluster, gpus, servers=2, where="gpu") == ("n0/gpu0", "n1/gpu0")
    kept = worker_gpus(cluster, servers=1, where="dedicated")
    assert len(kept) == 16
    assert server_nodes(cluster, kept, servers=1, where="dedicated") == ("n2/cpu0",)


def test_machines_with_no_place_for_servers_or_workers(catalog):
    machine = catalog.machine("book-4gpu")
    with pytest.raises(InputError, match=r"leave none of book-4gpu's 1 machine\(s\) to train"):
        worker_gpus(machine, servers=1, where="dedicated")
    with pytest.raises(InputError, match="5 workers wanted, but the machine has 4 GPUs"):
        worker_gpus(machine, 5)
    with pytest.raises(InputError, match="did you mean 'gpu'"):
        server_nodes(machine, machine.gpus, servers=1, where="gpus")
    with pytest.raises(InputError, match="at least one server"):
        server_nodes(machine, machine.gpus, servers=0, where="cpu")
