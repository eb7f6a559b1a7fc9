"""Plans that look the same from every rank (rotation), and the memory of the step-exact executor (bounds)."""

import numpy as np
import pytest

from simperf.collectives import Transport, execute, make_plan
from simperf.collectives.bench import measure
from simperf.collectives.calls import Call
from simperf.collectives.executors.rotation import rotate, turns
from simperf.collectives.placement import PLAIN, place
from simperf.collectives.plan_bounds import PlanBounds, PlanBoundsError
from simperf.errors import InputError
from simperf.hardware import build_topology

TURNING = [
    "all-reduce/sharded",
    "reduce-scatter/sharded",
    "all-gather/sharded",
    "all-to-all/direct",
    "all-to-all/pairwise",
]


def plan_of(name, n):
    return make_plan(*name.split("/"), nranks=n)


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_rank_0_turned_by_every_rank_makes_the_whole_round(name, n):
    for phase in plan_of(name, n).channels[0].phases:
        for index in range(phase.nrounds):
            one, whole = phase.turning(index), phase.make(index)
            assert phase.count(index, n) == len(whole)
            assert np.broadcast_to(one.reduce, len(one)).all() == np.broadcast_to(whole.reduce, len(whole)).all()
            turned = {(r, (int(dst) + r) % n) for r in range(n) for dst in one.dst}
            assert turned == set(zip(whole.src.tolist(), whole.dst.tolist(), strict=True))


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize("kind", ["star", "fully-connected"])
@pytest.mark.parametrize(
    "transport",
    [PLAIN, Transport(step_latency=3e-6, efficiency=0.5, start=1e-6, cap=2e9), Transport(reduce_rate=5e9, unit=4.0)],
    ids=["plain", "slow", "adding"],
)
def test_times_are_those_of_every_send(name, kind, transport):
    n, wiring, plan = 6, build_topology(kind, 8, bandwidth=10e9, latency=1e-6), plan_of(name, 6)
    given = {"nbytes": 6 * 4e5, "transport": transport, "entry_times": [2e-6] * n}
    run = rotate(plan, placement=place(plan, wiring), nbytes=6 * 4e5, transport=transport, entry=[2e-6] * n)
    exact = execute(plan, wiring, exact=True, **given)
    assert run is not None
    assert [run.time] * n == pytest.approx(exact.finish, rel=1e-9)
    moved = {name: nbytes for name, nbytes in exact.moved.items() if nbytes}
    assert run.moved() == pytest.approx(moved, rel=1e-9)


def test_what_tells_ranks_apart_goes_the_other_way():
    plan = plan_of("all-reduce/sharded", 4)
    cases = {
        "ring": build_topology("ring", 4, bandwidth=1e9),
        "slow": build_topology("star", 4, bandwidth=1e9, changed={"r1>": 1e8}),
    }
    for wiring in cases.values():
        assert not turns(plan, place(plan, wiring), 1e6, PLAIN, [0.0] * 4)
    star = place(plan, build_topology("star", 4, bandwidth=1e9))
    assert turns(plan, star, 1e6, PLAIN, [0.0] * 4)
    assert not turns(plan, star, 1e6, PLAIN, [0.0, 0.0, 1e-3, 0.0])
    assert not turns(plan, star, 1e6 + 1, Transport(unit=4.0), [0.0] * 4)
    assert not turns(make_plan("all-reduce", "ring", nranks=4), star, 1e6, PLAIN, [0.0] * 4)


@pytest.mark.parametrize("kind", ["star", "fully-connected"])
def test_thousands_of_ranks(kind):
    n, nbytes, wiring = 16_384, 16_384e3, build_topology(kind, 16_384, bandwidth=50e9, latency=250e-9)
    row = measure(Call(wiring, "all-reduce", "sharded", nbytes=nbytes, ranks=wiring.gpus))
    flows, hops = (n - 1, 2) if kind == "star" else (1, 1)
    assert row.time == pytest.approx(2 * (hops * 250e-9 + flows * nbytes / n / 50e9), rel=1e-9)
    assert row.load == pytest.approx(2 * flows * nbytes / n / 50e9 / row.time, rel=1e-9)
    late = [1e-6, *[0.0] * (n - 1)]
    with pytest.raises(InputError, match=r"2.7e\+08 sends at once|cross more than"):
        measure(Call(wiring, "all-reduce", "sharded", nbytes=nbytes, ranks=wiring.gpus, entry_times=late))


def test_step_by_step_what_does_not_fit_is_refused_with_what_would():
    star = build_topology("star", 16_384, bandwidth=50e9)
    with pytest.raises(PlanBoundsError, match=r"268,419,072 sends are known at one time and need some 644 GB") as error:
        execute(plan_of("all-reduce/sharded", 16_384), star, nbytes=1e6, exact=True)
    assert "3,333,333 of them, which fit into 8 GB: fewer ranks" in str(error.value)
    tree = make_plan("all-reduce", "pipelined-tree", nranks=8, chunks=16)
    small, few = build_topology("star", 8, bandwidth=1e9), PlanBounds(memory=1e5)
    with pytest.raises(PlanBoundsError, match="fewer ranks or chunks"):
        execute(tree, small, nbytes=1e6, exact=True, bounds=few)
    assert execute(plan_of("all-reduce/ring", 8), small, nbytes=1e6, exact=True, bounds=few).method == "step-exact"
