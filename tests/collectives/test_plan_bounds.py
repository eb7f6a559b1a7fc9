"""Bounds on what is simulated unasked (simperf.collectives.plan_bounds)."""

import pytest

from simperf.collectives import execute, make_plan
from simperf.collectives.bench import measure
from simperf.collectives.calls import Call
from simperf.collectives.machine_plans import suitable_chunks
from simperf.collectives.placement import place
from simperf.collectives.plan_bounds import ASKED, SURVEY, PlanBounds, PlanBoundsError, crossings
from simperf.collectives.plans.trees import balanced_tree, tree_phase
from simperf.errors import InputError
from simperf.hardware import Catalog, build_topology


def count(algorithm, machine, **options):
    plan = make_plan("all-reduce", algorithm, nranks=len(machine.gpus))
    return crossings(plan, place(plan, machine), **options)


@pytest.mark.parametrize("kind", ["ring", "star", "fully-connected"])
@pytest.mark.parametrize("n", [2, 5, 8])
def test_crossings_are_those_of_the_routes(kind, n):
    machine = build_topology(kind, n, bandwidth=1e9)
    plan = make_plan("all-reduce", "naive", nranks=n)
    rows = [row for phase in plan.channels[0].phases for one in phase for row in one.rows()]
    expected = sum(len(machine.route(f"r{src}", f"r{dst}").resources) for src, dst, *_ in rows)
    assert count("naive", machine) == expected


def test_rounds_that_repeat_count_once_and_counting_stops():
    assert count("ring", build_topology("ring", 16_384, bandwidth=1e9)) == 2 * 16_384  # two phases
    assert 1_000 < count("recursive-doubling", build_topology("ring", 1_024, bandwidth=1e9), most=1_000) < 10_000
    dgx = Catalog.load().machine("dgx-1v")
    plan = make_plan("all-reduce", "naive", nranks=8)
    assert crossings(plan, place(plan, dgx)) == 6 * 14


def test_a_chain_of_many_ranks_counts_its_rounds():
    machine = build_topology("star", 2_048, bandwidth=1e9)
    plan = make_plan("all-reduce", "pipelined-tree", nranks=2_048, chunks=1, degree=1, overlap=False)
    assert crossings(plan, place(plan, machine)) == 2 * 2_047 * (2 + 2_048 // 32)


def test_a_plan_beyond_the_effort_is_refused_unless_it_is_forced():
    star = build_topology("star", 8, bandwidth=1e9, changed={"r3>": 5e8})
    given = {"nbytes": 1e6, "ranks": star.gpus, "bounds": PlanBounds(crossings=50)}
    with pytest.raises(PlanBoundsError, match="cross more than 50 links"):
        measure(Call(star, "all-reduce", "sharded", **given))
    forced = measure(Call(star, "all-reduce", "sharded", exact=True, **given))
    assert forced.time == pytest.approx(measure(Call(star, "all-reduce", "sharded", nbytes=1e6, ranks=star.gpus)).time)
    assert measure(Call(star, "all-reduce", "ring", **given)).method == "collapsed"


def test_an_effort_that_refuses_nothing_gives_the_same_times():
    star = build_topology("star", 8, bandwidth=1e9, changed={"r3>": 5e8})
    given = {"nbytes": 1e6, "ranks": star.gpus}
    forced = measure(Call(star, "all-reduce", "sharded", bounds=PlanBounds(crossings=50).forced(), **given))
    assert forced.time == measure(Call(star, "all-reduce", "sharded", **given)).time
    plan = make_plan("all-reduce", "ring", nranks=8)
    small = PlanBounds(events=1, memory=1.0)
    for check in ("check_events", "check_memory"):
        with pytest.raises(PlanBoundsError):
            getattr(small, check)(plan)
        getattr(small.forced(), check)(plan)
    big = build_topology("star", 1_024, bandwidth=50e9, latency=250e-9)
    for chain in (True, False):
        few = PlanBounds(crossings=50_000, sends=5_000)
        chosen = [suitable_chunks(big, big.gpus, 1 << 30, chain=chain, bounds=one) for one in (few, few.forced())]
        assert chosen[0] == chosen[1]


def test_background_traffic_does_not_go_round_the_bound():
    star, plan = build_topology("star", 8, bandwidth=1e9), make_plan("all-reduce", "ring", nranks=8)
    with pytest.raises(PlanBoundsError, match="each of 112"):
        execute(plan, star, nbytes=1e6, background=[("r0", "r1", 1e8)], bounds=PlanBounds(events=100))


def test_chunks_chosen_unasked_stay_within_the_effort():
    star = build_topology("star", 1_024, bandwidth=50e9, latency=250e-9)
    for bounds in (ASKED, SURVEY):
        assert suitable_chunks(star, star.gpus, 1 << 34, bounds=bounds) * 1_024 <= bounds.sends
        assert suitable_chunks(star, star.gpus, 1 << 34, chain=True, bounds=bounds) * 4 * 1_024 <= bounds.crossings


def test_a_server_each_for_thousands_is_refused_before_it_is_laid_out():
    with pytest.raises(InputError, match="at most 512 servers"):
        make_plan("all-reduce", "sharded", nranks=16_384, servers=16_384)


@pytest.mark.parametrize("way", ["up", "down", "both"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_sends_of_a_tree_are_counted_without_making_its_rounds(way, degree):
    for nranks, chunks in ((1, 3), (2, 1), (7, 2), (20, 30)):
        phase = tree_phase(balanced_tree(nranks, root=nranks // 2, degree=degree), chunks, way=way)
        assert [phase.count(index, nranks) for index in range(phase.nrounds)] == [len(one) for one in phase]
