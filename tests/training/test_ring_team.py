"""Machines that add up around rings: what each link carries, and how near the floor many slices come."""

import pytest

from simperf.errors import InputError
from simperf.hardware import build_cluster
from simperf.training.servers.compression import codec
from simperf.training.servers.ring_team import ring_groups

S = 256e6


@pytest.fixture(scope="module")
def cluster(catalog):
    """cluster(workers, servers): machines as DGX-1 on one switch."""
    made = {}

    def build(workers, servers, server="v100-8gpu-rdma"):
        key = (workers, servers, server)
        if key not in made:
            made[key] = build_cluster(server, workers + servers, catalog=catalog, link="infiniband-edr")
        return made[key]

    return build


def serve(with_servers, machine, servers, **options):
    plan = {"steps": 1, "weights": S, "where": "dedicated", "servers": servers, "reduction": "ring", "connections": 1}
    return with_servers(machine, **{**plan, **options})


def test_what_each_link_carries(cluster, with_servers):
    """The adapter one gradient each way, each GPU an eighth to the CPU and back, and all but that over NVLink."""
    moved = serve(with_servers, cluster(2, 2), 2, slice_size=4e6).simulation.network.moved
    for machine in ("n0", "n1"):
        assert moved[f"{machine}/nic0>switch0"] == pytest.approx(S)
        assert moved[f"switch0>{machine}/nic0"] == pytest.approx(S)
        for gpu, plx in ((0, 0), (3, 1), (6, 3)):
            assert moved[f"{machine}/gpu{gpu}>{machine}/plx{plx}"] == pytest.approx(S / 8)
            assert moved[f"{machine}/plx{plx}>{machine}/gpu{gpu}"] == pytest.approx(S / 8)
    for server in ("n2", "n3"):
        assert moved[f"switch0>{server}/nic0"] == pytest.approx(S, rel=0.05), "half a gradient of two machines"


def test_never_under_the_floor_and_near_it_with_many_slices(cluster, with_servers):
    """The adapter carries a gradient each way at once; the fewer bytes a slice, the more the steps overlap."""
    machine = cluster(4, 4)
    floor = S / machine.route("n0/cpu0", "n4/cpu0").bandwidth
    times = [serve(with_servers, machine, 4, slice_size=S / slices).now for slices in (4, 16, 64, 256)]
    assert all(time > floor for time in times)
    assert times == sorted(times, reverse=True)
    assert times[0] > 2 * floor, "push waits for the copies, and pull for push"
    assert times[-1] < 1.25 * floor


def test_behind_a_long_backward_pass_only_the_last_slices_are_seen(cluster, with_servers):
    machine = cluster(4, 4)
    floor = S / machine.route("n0/cpu0", "n4/cpu0").bandwidth
    plan = {"layers": 64, "backward": 5 * floor, "slice_size": 1e6}
    time = serve(with_servers, machine, 4, **plan).now
    assert 5 * floor < time < 5.2 * floor


def test_one_server_grows_with_the_machines_and_as_many_servers_do_not(cluster, with_servers):
    one = [serve(with_servers, cluster(m, 1), 1, slice_size=2e6).now for m in (2, 4, 8)]
    many = [serve(with_servers, cluster(m, m), m, slice_size=2e6).now for m in (2, 4, 8)]
    assert one[1] / one[0] == pytest.approx(2, rel=0.1)
    assert one[2] / one[1] == pytest.approx(2, rel=0.1)
    assert max(many) / min(many) < 1.1


def test_without_an_order_on_connections_lock_step_costs_nothing_more(cluster, with_servers):
    """Eight slices of a machine at a time leave most of sixteen servers idle: all machines send the same ones."""
    machine = cluster(16, 16)
    few = serve(with_servers, machine, 16, slice_size=1e6, connections=0, window=4).now
    each = serve(with_servers, machine, 16, slice_size=1e6).now
    assert few > 2 * each


def test_rings_below_switches_copy_more_and_meet_in_the_cpu(cluster, with_servers):
    machine = cluster(2, 2, "pcie-8gpu")
    both = {
        kind: serve(with_servers, machine, 2, slice_size=4e6, reduction=kind).simulation.network.moved
        for kind in ("ring", "switch-rings")
    }
    up = {kind: moved["n0/gpu0>n0/plx0"] for kind, moved in both.items()}
    assert up["ring"] == pytest.approx(S * (2 * 7 / 8 + 1 / 8)), "reduce-scatter, all-gather, its part to the CPU"
    assert up["switch-rings"] == pytest.approx(S * (2 * 3 / 4 + 1 / 4))
    across = {kind: moved.get("n0/cpu0>n0/cpu1", 0.0) for kind, moved in both.items()}
    assert across["switch-rings"] == pytest.approx(S), "sums come back to the GPUs of the other socket"
    assert across["ring"] == pytest.approx(S * (2 * 7 / 8 + 1 / 2))


def test_the_cpu_adds_up_what_the_switches_have_summed(cluster, with_servers):
    machine = cluster(2, 2, "pcie-8gpu")
    free = serve(with_servers, machine, 2, slice_size=16e6, reduction="switch-rings").now
    busy = serve(with_servers, machine, 2, slice_size=16e6, reduction="switch-rings", add=30.0).now
    assert busy > 1.5 * free


@pytest.mark.parametrize(("key", "value"), [("via_host", "no"), ("spread", "no")])
def test_parts_go_by_the_cpu(cluster, with_servers, key, value):
    with pytest.raises(InputError, match="leaves by the CPU"):
        serve(with_servers, cluster(2, 2), 2, slice_size=4e6, **{key: value})


def test_a_codec_writes_every_part(cluster, with_servers):
    dense = serve(with_servers, cluster(2, 2), 2, slice_size=4e6)
    bits = serve(with_servers, cluster(2, 2), 2, slice_size=4e6, compression="1-bit", free_codec=True)
    moved = bits.simulation.network.moved
    assert moved["n0/nic0>switch0"] < S / 25
    assert bits.now < dense.now


def test_a_codec_on_the_cpu_gets_dense_gradients_and_gives_dense_sums(cluster, with_servers):
    """PCIe and NVLink carry what they do without a codec, the adapter what they do with one on the GPUs."""
    plan = {"slice_size": 4e6, "compression": "1-bit"}
    dense = serve(with_servers, cluster(2, 2), 2, slice_size=4e6).simulation.network.moved
    packed = serve(with_servers, cluster(2, 2), 2, **plan).simulation.network.moved
    moved = serve(with_servers, cluster(2, 2), 2, codec_on="cpu", **plan).simulation.network.moved
    for link in ("n0/gpu0>n0/plx0", "n0/plx0>n0/gpu0"):
        assert moved[link] == pytest.approx(dense[link])
    for link in ("n0/nic0>switch0", "switch0>n0/nic0"):
        assert moved[link] == pytest.approx(packed[link])
    slow = serve(with_servers, cluster(2, 2), 2, codec_on="cpu", server_memory=1e9, **plan).now
    one = codec("1-bit")
    assert slow > (one.encoding(S) + one.decoding(S)) / 1e9, "the CPU writes its gradient and reads the sum"


def test_a_codec_on_the_cpu_needs_gradients_that_go_by_it(star, with_servers):
    with pytest.raises(InputError, match="the CPU encodes what goes through it"):
        with_servers(star(2), steps=1, weights=S, codec_on="cpu", compression="1-bit")


def test_groups(catalog):
    machine = catalog.machine("pcie-8gpu")
    assert ring_groups(machine, machine.gpus, reduction="ring") == (machine.gpus,)
    halves = ring_groups(machine, machine.gpus, reduction="switch-rings")
    assert [len(half) for half in halves] == [4, 4]
    assert sorted(halves[0] + halves[1]) == sorted(machine.gpus)
    for half in halves:
        assert len({machine.nearest(gpu, "pcie-switch") for gpu in half}) == 1
