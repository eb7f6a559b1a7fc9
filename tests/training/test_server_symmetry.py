"""One machine simulated for all that are alike gives the times and bytes of all of them simulated."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simperf.hardware import build_cluster
from simperf.training.servers.kvstore import KVStore
from simperf.training.servers.multi_machine import make_routes
from simperf.training.servers.symmetry import sharers


def both(monkeypatch, with_servers, machine, **plan):
    """The run with one machine for all, and the one with every machine."""
    given = {"where": "dedicated", "reduction": "gpu", "connections": 1, "add": 3.0, "apply": 3.0, **plan}
    short = with_servers(machine, **given)
    with monkeypatch.context() as patch:
        patch.setattr(KVStore, "_share", lambda self, routes: {})
        return short, with_servers(machine, **given)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    workers=st.integers(2, 5),
    servers=st.integers(1, 3),
    sizes=st.lists(st.floats(1.0, 20.0), min_size=3, max_size=6),
    reduction=st.sampled_from(["gpu", "cpu", "ring"]),
    compression=st.sampled_from(["none", "top-k", "8-bit"]),
    window=st.sampled_from([0, 1, 3]),
    backward=st.sampled_from([0.0, 20e-3]),
)
def test_the_same_times_and_bytes(
    monkeypatch, catalog, with_servers, workers, servers, sizes, reduction, compression, window, backward
):
    machine = build_cluster("p3-8xlarge", workers + servers, catalog=catalog, link="ethernet-25g-jumbo")
    plan = {"layers": len(sizes), "sizes": sizes, "weights": 60e6, "slice_size": 3e6, "steps": 2}
    short, whole = both(
        monkeypatch,
        with_servers,
        machine,
        servers=servers,
        reduction=reduction,
        compression=compression,
        window=window,
        backward=backward,
        **plan,
    )
    assert short.now == pytest.approx(whole.now, rel=1e-9)
    assert any("one is simulated for all" in note for note in short.notes)
    assert sorted(gpu for one in short.ranks.values() for gpu in one.members) == sorted(whole.ranks)
    assert len(short.ranks) == len(whole.ranks) / workers
    assert short.metrics.keys() == whole.metrics.keys()
    for name, (value, _) in whole.metrics.items():
        assert short.metrics[name][0] == pytest.approx(value, rel=1e-9), name
    moved = {name: nbytes for name, nbytes in whole.simulation.network.moved.items() if nbytes}
    again = {name: nbytes for name, nbytes in short.simulation.network.moved.items() if nbytes}
    assert again == pytest.approx(moved, rel=1e-9)


@pytest.mark.parametrize(
    "other",
    [
        {"mode": "asynchronous"},
        {"jitter": 0.1},
        {"stragglers": 1, "slowdown": 2.0},
        {"accepts": 1},
        {"reduction": "none"},
        {"reduction": "sharded"},
        {"where": "cpu"},
        {"connections": 0},
        {"disk": "ebs0", "stored": 1e3},
    ],
)
def test_what_only_every_machine_can_tell(monkeypatch, catalog, with_servers, other):
    machine = build_cluster("p3-8xlarge", 3, catalog=catalog, link="ethernet-25g-jumbo")
    plan = {"steps": 2, "layers": 3, "backward": 1e-3, "weights": 10e6}
    short, whole = both(monkeypatch, with_servers, machine, **plan, **other)
    assert short.now == whole.now
    assert not any("simulated for all" in note for note in short.notes)


def test_slices_that_come_to_a_gpu_at_one_instant(monkeypatch, catalog, with_servers):
    """GPUs that each add up some of the slices end at one instant but for rounding: every machine is simulated."""
    machine = build_cluster("p3-8xlarge", 5, catalog=catalog, link="ethernet-25g-jumbo")
    plan = {"servers": 1, "reduction": "sharded", "compression": "top-k", "window": 0, "backward": 0.02, "layers": 3}
    sizes = [14.11256480663146, 12.3125, 3.25]
    short, whole = both(monkeypatch, with_servers, machine, **plan, sizes=sizes, weights=60e6, slice_size=3e6, steps=2)
    assert short.now == whole.now


def test_machines_of_two_kinds_are_not_alike(catalog):
    machine = build_cluster([("p3-8xlarge", 1), ("pcie-4gpu", 2)], catalog=catalog, link="ethernet-25g-jumbo")
    routes = make_routes(machine.gpus[:8], reduction="gpu", host_of=machine.host_of)
    assert sharers(machine, routes, ["n2/cpu0"]) is None
    equal = make_routes(machine.gpus[4:8], reduction="gpu", host_of=machine.host_of)
    assert sharers(machine, equal, ["n2/cpu0"])


def test_links_that_some_share_and_others_do_not(catalog):
    """Two machines below one leaf switch and one below another: their ways up are not alike."""
    machine = build_cluster(
        "p3-8xlarge", 5, catalog=catalog, link="ethernet-25g-jumbo", fabric="fat-tree", servers_per_leaf=2, spines=1
    )
    uneven = make_routes(machine.gpus[:12], reduction="gpu", host_of=machine.host_of)
    assert sharers(machine, uneven, ["n4/cpu0"]) is None
    even = make_routes(machine.gpus[:16], reduction="gpu", host_of=machine.host_of)
    found = sharers(machine, even, ["n4/cpu0"])
    assert found is not None
    assert sorted(set(found.values())) == [1, 2, 4]
