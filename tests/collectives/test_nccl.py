"""NCCL's protocols as data, paced channels (simperf.collectives.lanes), and the choices of the tuner."""

import pytest

from simperf.collectives import Transport, execute, make_plan
from simperf.collectives.lanes import Lanes, pairs_of
from simperf.collectives.machine_plans import plan_for
from simperf.collectives.nccl import LAUNCH, Tuner
from simperf.collectives.nccl_kernels import kernel_table
from simperf.collectives.placement import Hop, place
from simperf.collectives.protocols import PROTOCOLS, protocol_transport
from simperf.collectives.settings import NcclSettings
from simperf.errors import InputError, UnknownNameError
from simperf.hardware import Catalog, build_cluster

CATALOG = Catalog.load()
DGX = CATALOG.machine("dgx-a100")


def test_protocols_trade_latency_for_bandwidth():
    for algorithm in ("ring", "double-binary-tree"):
        found = [protocol_transport(algorithm, name) for name in PROTOCOLS]
        assert [one.media["nvlink"] for one in found] == sorted(one.media["nvlink"] for one in found)
        assert found[0].efficiency < found[1].efficiency < found[2].efficiency
    with pytest.raises(UnknownNameError, match="did you mean 'LL128'"):
        protocol_transport("ring", "LL182")
    with pytest.raises(UnknownNameError, match="Simple"):
        protocol_transport("in-network", "LL")


def test_a_medium_has_a_latency_of_its_own_but_never_less_than_the_wire():
    transport = Transport(media={"nvlink": 2e-6}, step_latency=1e-6)
    assert transport.latency(Hop((), 1e-6, medium="nvlink")) == pytest.approx(3e-6)
    assert transport.latency(Hop((), 5e-6, medium="nvlink")) == pytest.approx(6e-6)
    assert transport.latency(Hop((), 1e-6, medium="pcie")) == pytest.approx(2e-6)


@pytest.mark.parametrize(
    ("machine", "pair", "medium"),
    [
        (DGX, ("gpu0", "gpu1"), "nvlink"),
        (CATALOG.machine("pcie-4gpu"), ("gpu0", "gpu1"), "pcie"),
        (build_cluster("dgx-a100", 2, link="infiniband-hdr"), ("n0/gpu0", "n1/gpu0"), "network"),
    ],
)
def test_media_are_seen_on_the_route(machine, pair, medium):
    plan = make_plan("send-recv", "direct", nranks=2)
    assert place(plan, machine, ranks=pair).hop(0, 1).medium == medium


def test_transport_refuses_nonsense():
    with pytest.raises(InputError) as error:
        Transport(step_latency=-1.0, efficiency=0.0, cap=0.0, reduce_rate=0.0, unit=-1.0, connections=0)
    assert len(error.value.problems) == 6


def test_paced_channels_never_fill_a_link():
    machine = build_cluster("dgx-a100", 4, link="infiniband-hdr")
    plan = plan_for(machine, "all-reduce", "multi-ring", ranks=machine.gpus)
    caps = Lanes(place(plan, machine, ranks=machine.gpus), pairs_of(plan)).paces()
    assert len(caps) == len(plan.channels)
    paced = Transport(caps=caps)
    fast = execute(plan, machine, nbytes=1e8, transport=paced)
    assert fast.method == "collapsed"
    assert execute(plan, machine, nbytes=1e8, transport=paced, exact=True).time == pytest.approx(fast.time, rel=1e-9)
    free = execute(plan, machine, nbytes=1e8).time
    assert free <= fast.time <= 1.25 * free


def test_the_tuner_takes_latency_first_and_bandwidth_last():
    tuner = Tuner(DGX, DGX.gpus)
    assert tuner.best(8.0).name == "ring/LL"
    assert tuner.best(1 << 30).name == "ring/Simple"


def test_the_tuner_takes_what_its_own_estimate_has_for_the_fastest():
    """Two A100 leave LL at 1 MiB, where a table has 19 us at 512 KiB and 41 us at 1 MiB: 20 us would do."""
    tuner = Tuner(DGX, DGX.gpus[:2], settings=NcclSettings(timing="graph"))
    assert (tuner.best(1 << 19).name, tuner.best(1 << 20).name) == ("ring/LL", "ring/Simple")
    found = {choice.name: choice.time for choice in tuner.choices(1 << 20)}
    assert found["ring/LL"] < 0.75 * found["ring/Simple"]


def test_trees_win_at_small_sizes_over_many_servers():
    machine = build_cluster("dgx-a100", 8, link="infiniband-hdr")
    assert Tuner(machine, machine.gpus).best(1024.0).algorithm == "tree"


def test_a_switch_that_adds_up_beats_the_ring():
    machine = CATALOG.machine("dgx-h100")
    with_it, without = (
        Tuner(machine, machine.gpus),
        Tuner(machine, machine.gpus, settings=NcclSettings(in_network=False)),
    )
    assert with_it.in_network, "NCCL has it add up by itself"
    assert with_it.best(1 << 30).algorithm == "in-network"
    assert with_it.best(1 << 30).time < 0.8 * without.best(1 << 30).time
    assert not Tuner(machine, machine.gpus[:2]).in_network
    assert not Tuner(DGX, DGX.gpus).in_network


def test_one_process_for_many_gpus_launches_one_after_the_other():
    assert Tuner(DGX, DGX.gpus, settings=NcclSettings(launches=8)).best(8.0).time == pytest.approx(8 * LAUNCH)


def test_other_collectives():
    for name in ("reduce-scatter", "all-gather", "broadcast", "reduce"):
        assert Tuner(DGX, DGX.gpus, collective=name).best(1 << 30).algorithm == "ring"
    assert Tuner(DGX, DGX.gpus, collective="all-to-all").best(1 << 30).algorithm == "direct"
    with pytest.raises(UnknownNameError, match="all-gather"):
        Tuner(DGX, DGX.gpus, collective="gather")
    with pytest.raises(UnknownNameError, match="ring"):
        Tuner(DGX, DGX.gpus, settings=NcclSettings(only=("rings",)))
    assert Tuner(DGX, DGX.gpus[:1]).best(1 << 20).run.time == pytest.approx(6.6e-6)


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "broadcast", "all-to-all"])
@pytest.mark.parametrize("servers", [1, 2])
def test_the_best_is_the_first_of_all(collective, servers):
    """What NCCL's own estimate has for the fastest."""
    machine = build_cluster("dgx-a100", servers, link="infiniband-hdr") if servers > 1 else DGX
    tuner = Tuner(machine, machine.gpus, collective=collective)
    for size in (8.0, 2.0**15, 2.0**21, 2.0**27):
        assert tuner.best(size).time == tuner.choices(size)[0].time


def test_what_is_held_to_an_algorithm_runs_it():
    machine = build_cluster("dgx-a100", 2, link="infiniband-hdr")
    ring, tree = (
        Tuner(machine, machine.gpus, settings=NcclSettings(only=(name,))).best(2.0**30) for name in ("ring", "tree")
    )
    assert (ring.algorithm, tree.algorithm) == ("ring", "tree")
    assert ring.plan.algorithm == "multi-ring"


def test_a_network_adds_its_latency_to_every_crossing():
    machine = build_cluster("p4d-24xlarge", 2, link="efa-100g", fabric="rail")
    slow, fast = (
        Tuner(machine, machine.gpus, settings=NcclSettings(network=name)).best(8.0).time for name in ("efa", "rdma")
    )
    assert 2 * 60e-6 < slow - fast < 2 * 75e-6, "up the tree and down it, less the wire that both have"


def test_low_latency_protocols_have_a_limit_of_their_own():
    """By the tuner's constants, where no other are known; by what blocks get through, which move one chunk more."""
    volta = CATALOG.machine("dgx-1v")
    found = {choice.name: choice for choice in Tuner(volta, volta.gpus).choices(2.0**30)}
    assert 2.0**30 * 1.75 / found["ring/LL"].time == pytest.approx(39e9, rel=0.02)
    found = {choice.name: choice for choice in Tuner(DGX, DGX.gpus).choices(2.0**30)}
    assert 2.0**30 * 15 / 8 / found["ring/LL"].time == pytest.approx(kernel_table()["ampere", "LL"].rate, rel=0.02)


def test_constants_that_are_faster_leave_the_wires_as_they_are():
    """Of no bytes start and hops are shorter, but for the wires; a large payload is bound by the wires."""
    one, ten = (Tuner(DGX, DGX.gpus, settings=NcclSettings(only=("ring",)), speed=speed) for speed in (1.0, 10.0))
    wire = DGX.route(DGX.gpus[0], DGX.gpus[1]).latency
    small, simple = (kernel_table()["ampere", name] for name in ("LL", "Simple"))
    assert one.best(0.0).time == pytest.approx(small.start + 14 * max(wire, small.step))
    assert ten.best(0.0).time == pytest.approx(small.start / 10 + 14 * wire)
    chunk = 2.0**30 / 8
    copied = chunk / simple.copy - chunk / min(10 * simple.copy, one.copy_rate)
    gained = 0.9 * simple.start + 14 * (simple.step - max(wire, simple.step / 10)) + copied
    assert one.best(2.0**30).time - ten.best(2.0**30).time == pytest.approx(gained)
    assert Tuner(DGX, DGX.gpus, settings=NcclSettings(only=("ring",))).best(0.0).time == one.best(0.0).time, (
        "nothing of it stays behind"
    )
