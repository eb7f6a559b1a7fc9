"""Costs of NCCL's kernels by generation (simperf.collectives.nccl_kernels), its own estimate
(simperf.collectives.nccl_estimate), the channels that are made of both (simperf.collectives.nccl_channels), and the
timing of calls."""

from dataclasses import astuple, replace

import pytest

import simperf
from simperf.collectives import execute
from simperf.collectives.nccl import LAUNCH, Tuner
from simperf.collectives.nccl_kernels import (
    KernelCost,
    direct_protocol,
    estimated_costs,
    generations,
    kernel_costs,
    kernel_table,
    switch_chunk,
)
from simperf.collectives.networks import bandwidth_limit
from simperf.collectives.settings import HOSTED, TIMINGS, NcclSettings
from simperf.errors import InputError, UnknownNameError
from simperf.hardware import Catalog, GpuPart, build_cluster
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.study.virtual import speed_up
from tests.collectives.machines import pipelined

CATALOG = Catalog.load()
A100, H100, B200 = (CATALOG.machine(name) for name in ("dgx-a100", "dgx-h100", "dgx-b200"))
SERVERS = {"ampere": A100, "hopper": H100, "blackwell": B200}


def graph(machine, ranks, collective="all-reduce", **options):
    return Tuner(machine, machine.gpus[:ranks], collective, NcclSettings(timing="graph", **options))


def test_a_generation_has_costs_of_its_own_and_a_mixture_has_none():
    assert set(kernel_costs(A100, A100.gpus)) == {"LL", "LL128", "Simple", "direct-LL", "direct-Simple"}
    assert kernel_costs(H100, H100.gpus) != kernel_costs(B200, B200.gpus)
    assert kernel_costs(CATALOG.machine("dgx-1v"), CATALOG.machine("dgx-1v").gpus) == {}


@pytest.mark.parametrize("generation", SERVERS)
def test_hops_of_low_latency_protocols_are_shorter(generation):
    table = kernel_table()
    assert table[generation, "LL"].step < 0.25 * table[generation, "Simple"].step
    assert table[generation, "LL"].start < table[generation, "Simple"].start
    assert table[generation, "LL"].rate < table[generation, "LL128"].rate or generation == "blackwell"


def test_a_hop_takes_longer_with_all_threads_and_hides_behind_long_chunks():
    cost = KernelCost(1e-6, step=2e-6, wide=5e-7, hidden=0.5)
    assert cost.hop(8 * 4096, 8, 0.0) == pytest.approx(2.5e-6)
    assert cost.hop(8 * 4096 - 1, 8, 0.0) == pytest.approx(2e-6)
    assert cost.hop(1.0, 8, 2e-6) == pytest.approx(1e-6)
    assert cost.hop(1.0, 8, 1e-3) == 0.0
    fast = cost.faster(2.0)
    assert (fast.start, fast.step, fast.wide) == (5e-7, 1e-6, 2.5e-7)


def test_chunks_of_switches_grow_with_the_payload():
    mib = 2.0**20
    sizes = [size * mib for size in (1, 7.9, 8, 63.9, 64, 1023.9, 1024)]
    assert [switch_chunk(size, 8) // 1024 for size in sizes] == [16, 16, 32, 32, 64, 64, 128]
    assert switch_chunk(32 * mib, 4) == 64 * 1024, "half as many GPUs, half the payload"


def test_small_messages_between_two_gpus_use_ll():
    assert [direct_protocol(size, 4) for size in (8.0, 65536.0, 65537.0)] == ["LL", "LL", "Simple"]
    assert [graph(H100, 4, "all-to-all").best(size).name for size in (8.0, 2.0**20)] == ["direct/LL", "direct/Simple"]


#: sizes at which the tables of aiconfigurator (NCCL 2.27.3 and 2.29.2) change from one protocol to the next
SWITCHES = [
    (A100, "all-reduce", 2, {2**19: "ring/LL", 2**20: "ring/Simple"}),
    (A100, "all-gather", 8, {2**20: "ring/LL", 2**23: "ring/LL128", 2**25: "ring/Simple"}),
    (H100, "all-gather", 2, {2**21: "ring/LL", 2**22: "ring/Simple"}),
    (H100, "all-gather", 8, {2**22: "ring/LL", 2**23: "ring/LL128", 2**25: "ring/Simple"}),
    (H100, "all-reduce", 8, {2**20: "ring/LL", 2**21: "in-network/Simple"}),
    (B200, "all-gather", 8, {2**23: "ring/LL", 2**24: "ring/Simple"}),
]


@pytest.mark.parametrize(("machine", "collective", "ranks", "switches"), SWITCHES, ids=[f"{n}" for n in range(6)])
def test_protocols_change_where_nccl_changes_them(machine, collective, ranks, switches):
    tuner = graph(machine, ranks, collective)
    assert {size: tuner.best(size).name for size in switches} == switches


def test_ll128_of_blackwell_is_held_back_by_its_channels():
    assert bandwidth_limit("LL128", B200, B200.gpus) == 320e9
    assert bandwidth_limit("LL128", H100, H100.gpus) == float("inf")


@pytest.mark.parametrize("mib", [32, 64])
def test_faster_links_make_no_collective_slower(mib):
    """The tuner's limit of LL128 keeps it from a protocol whose blocks are slower than the links."""
    program = {"use": "all-reduce", "nbytes": f"{mib} MiB", "algorithm": "nccl"}
    scenario = make_scenario({"machine": {"use": "dgx-a100-80gb"}, "program": program})
    times = [run(scenario).time, *(run(speed_up(scenario, {"nvlink3": factor})).time for factor in (1.2, 1.5, 2, 4, 8))]
    assert times == sorted(times, reverse=True)


#: times of the table of an H200 (aiconfigurator, NCCL 2.29.2), to which nothing was fitted
H200 = [
    ("all-gather", 4, 2**16, 8.78e-6),
    ("all-gather", 2, 2**21, 16.17e-6),
    ("all-gather", 4, 2**24, 63.85e-6),
    ("all-gather", 8, 2**28, 725.9e-6),
    ("reduce-scatter", 4, 2**18, 8.39e-6),
    ("reduce-scatter", 2, 2**28, 581.7e-6),
    ("all-to-all", 4, 2**28, 652.5e-6),
]


@pytest.mark.parametrize(("collective", "ranks", "nbytes", "time"), H200)
def test_a_table_that_took_no_part_is_met(collective, ranks, nbytes, time):
    assert graph(H100, ranks, collective).best(nbytes).time == pytest.approx(time, rel=0.12)


@pytest.mark.parametrize("generation", SERVERS)
@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "reduce-scatter"])
@pytest.mark.parametrize("nbytes", [1e4, 1e7, 1e9])
def test_channels_take_what_their_sends_take(generation, collective, nbytes):
    """Whatever a generation costs, the channels as flows take the time of the same rings send by send."""
    machine = SERVERS[generation]
    for choice in graph(machine, 8, collective, only=("ring",)).choices(nbytes):
        run = execute(
            pipelined(choice.plan),
            choice.placement.machine,
            nbytes=nbytes,
            transport=choice.transport,
            placement=choice.placement,
            exact=True,
        )
        assert choice.run.time - choice.channels.last == pytest.approx(run.time, rel=1e-9)


def test_costs_are_those_of_nvlink_inside_one_server():
    """GPUs on PCIe and several servers keep the tuner's constants."""
    pcie = CATALOG.machine("pcie-4gpu")
    assert not any(one.kernels for one in Tuner(pcie, pcie.gpus)._algorithms.values())
    many = build_cluster("dgx-h100", 2, link="infiniband-ndr")
    tuner = Tuner(many, many.gpus, settings=NcclSettings(in_network=True))
    tuner.choices(1e6)
    assert set(tuner._algorithms) == {"ring", "tree", "in-network"}
    assert not any(one.kernels for one in tuner._algorithms.values())


# Generations without a table --------------------------------------------------------------------


def test_estimated_latencies_are_in_exchanges_and_rates_in_links():
    slow, fast = estimated_costs(2e-6, 200e9), estimated_costs(1e-6, 400e9)
    assert set(slow) == {"LL", "LL128", "Simple", "in-network", "direct-LL", "direct-Simple"}
    for name, cost in slow.items():
        other = fast[name]
        assert (cost.start, cost.step) == pytest.approx((2 * other.start, 2 * other.step))
        assert cost.wide == pytest.approx(2 * other.wide), "bytes on the links"
        assert (cost.wave, cost.fill, cost.pace) == (other.wave, other.fill, other.pace)
        if name != "direct-LL" and cost.rate < float("inf"):
            assert other.rate == pytest.approx(2 * cost.rate)
    assert fast["Simple"].copy == pytest.approx(2 * slow["Simple"].copy)


def test_the_only_generation_that_is_left_is_given_back():
    own = generations()["hopper"]
    found = estimated_costs(own.exchange, own.links, without="blackwell")["in-network"]
    assert astuple(found) == pytest.approx(astuple(kernel_table()["hopper", "in-network"]))


@pytest.mark.parametrize("generation", SERVERS)
def test_links_of_the_tables_are_those_of_the_catalogue(generation):
    machine = SERVERS[generation]
    edges = [edge for edge in machine.edges.values() if edge.src == machine.gpus[0] and edge.technology == "nvlink"]
    assert generations()[generation].links == pytest.approx(sum(edge.bandwidth for edge in edges))


def test_a_row_of_another_generation_takes_no_part_in_estimates():
    table = kernel_table()
    assert table["blackwell", "LL128"] == table["hopper", "LL128"]
    assert "LL128" not in generations()["blackwell"].costs


@pytest.mark.parametrize("generation", SERVERS)
def test_a_generation_that_is_left_out_is_near_its_table(generation):
    """Exchanges were measured without NCCL."""
    own, table = generations()[generation], kernel_table()
    found = estimated_costs(own.exchange, own.links, without=generation)
    assert found["LL"].start == pytest.approx(table[generation, "LL"].start, rel=0.3)
    assert found["LL"].step == pytest.approx(table[generation, "LL"].step, rel=0.3)
    assert found["LL"].rate == pytest.approx(table[generation, "LL"].rate, rel=0.2)


def test_a_gpu_may_give_an_exchange():
    catalog = CATALOG.adjusted(lambda part: replace(part, exchange=2e-6) if isinstance(part, GpuPart) else part)
    machine = catalog.machine("dgx-h100")
    assert kernel_costs(machine, machine.gpus) == estimated_costs(2e-6, 370.8e9)
    volta = catalog.machine("dgx-2")
    assert kernel_costs(volta, volta.gpus) == estimated_costs(2e-6, 120e9)
    pcie = catalog.machine("pcie-4gpu")
    assert kernel_costs(pcie, pcie.gpus) == {}
    small = {one: graph(one, 8).best(8.0).time for one in (machine, H100)}
    assert small[machine] < small[H100], "2 us are less than the 2.65 us of an H100"


# Timing -------------------------------------------------------------------------------------


def test_calls_follow_each_other_as_fast_as_they_are_launched():
    times = {
        name: Tuner(A100, A100.gpus, settings=NcclSettings(launches=8, timing=name)).best(8.0).time for name in TIMINGS
    }
    assert times["graph"] < times["loop"] == pytest.approx(8 * LAUNCH)
    assert all(times[name] == times["graph"] for name in HOSTED), "hosts are simulated around the kernels"
    large = {name: Tuner(A100, A100.gpus, settings=NcclSettings(timing=name)).best(1e9).time for name in TIMINGS}
    assert len(set(large.values())) == 1


def test_timing_is_an_option_of_a_program_and_of_the_command():
    machine, program = {"use": "dgx-h100"}, {"use": "all-reduce", "nbytes": "8 KiB", "algorithm": "nccl"}
    for timing in TIMINGS:
        told = {**program, "options": {"timing": timing}}
        hosts = {"frontend": {"use": "pytorch"}} if timing in HOSTED else {}
        played = simperf.run(simperf.make_scenario({"machine": machine, "program": told, **hosts}))
        (row,) = simperf.collective("all-reduce", on="dgx-h100", sizes=["8K"], timing=timing)
        time = played.metrics["time of a call"].value if timing in HOSTED else played.time
        assert time == pytest.approx(row.time, rel=1e-12)


def test_an_unknown_timing_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'loop'"):
        Tuner(A100, A100.gpus, settings=NcclSettings(timing="lop"))
    with pytest.raises(InputError, match="did you mean 'graph'"):
        simperf.collective("all-reduce", on="dgx-a100", sizes=["8K"], timing="grap")
