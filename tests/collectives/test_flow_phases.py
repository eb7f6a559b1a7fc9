"""Phases of plans as flows: alone they are the plan, and beside other traffic they lose nothing and end."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simperf.collectives import make_plan
from simperf.collectives.execute import Execution
from simperf.collectives.executors import Collapsed, PlacedPlan, Stepwise, used_links
from simperf.collectives.executors.isolated import play_isolated
from simperf.collectives.executors.phases import play_phases
from simperf.collectives.flow_phases import PARTS, FlowPhases, flow_phases, links_of
from simperf.collectives.placement import place
from simperf.hardware import build_topology
from tests.collectives.test_conformance import cases, run_in, wires

FEW = [HealthCheck.too_slow]


def moved(run: Execution | dict) -> dict:
    amounts = run.moved if isinstance(run, Execution) else run
    return {name: nbytes for name, nbytes in amounts.items() if abs(nbytes) > 1e-3}


def phases_of(placed: PlacedPlan, nbytes: float, time: float) -> FlowPhases:
    return flow_phases(placed.plan, placement=placed.placement, nbytes=nbytes, transport=placed.transport, time=time)


@settings(max_examples=120, deadline=None, suppress_health_check=FEW)
@given(case=cases(), part=st.sampled_from([0.0, 1e-4, 0.3, 0.5, 0.77, 1.0]))
def test_alone_phases_are_the_plan(case, part):
    """Wherever they take over: the same end and the same bytes on every link."""
    placed, nbytes, _ = case
    alone = play_isolated(placed, nbytes, [0.0] * placed.plan.nparticipants)
    context, over = wires(placed), []
    phases = phases_of(placed, nbytes, alone.time)
    length = sum(phase.time * phase.parts for phase in phases.phases)
    assert length == pytest.approx(alone.time, rel=1e-9, abs=1e-18)
    ends = [(alone.time, [(0,)]), (0.9 * alone.time, [(1,)])]
    play_phases(context, phases, part * alone.time, ends, lambda ranks: over.append((ranks, context.env.now)))
    context.env.run()
    rest = {rank: max(0.0, (whole - part) * alone.time) for rank, whole in ((0, 1.0), (1, 0.9))}
    found = {rank: time for parties, time in over for (rank,) in parties}
    assert found == pytest.approx(rest, rel=1e-9, abs=1e-9 * alone.time + 1e-18)
    assert moved(context.network.moved) == pytest.approx(moved(alone), rel=1e-9, abs=1e-3)


@settings(max_examples=120, deadline=None, suppress_health_check=FEW)
@given(case=cases(), data=st.data())
def test_phases_beside_other_traffic(case, data):
    """All ranks are done, none sooner than without the traffic, and all bytes are on the links."""
    placed, nbytes, entry = case
    placed.__dict__["playable"] = False  # as a plan of too many sends
    resources = sorted(placed.placement.machine.resources)
    when = st.sampled_from([0.0, 5e-6, 2e-4, 1.0])
    flows = st.tuples(st.lists(st.sampled_from(resources), min_size=1, max_size=1), st.sampled_from([1e3, 5e6]), when)
    traffic = data.draw(st.lists(flows, min_size=1, max_size=2), label="traffic")
    _, alone = run_in(wires(placed), placed, nbytes, entry, executor=Collapsed)
    context = wires(placed)
    run, ends = run_in(context, placed, nbytes, entry, executor=Collapsed, traffic=traffic)
    assert all(end >= before * (1 - 1e-9) for end, before in zip(ends, alone, strict=True))
    assert (run.approximated is not None) == run.disturbed == (run.isolated is None)
    if run.approximated is not None:
        context.env.run()
        other = wires(placed)
        run_in(other, placed, nbytes, entry, executor=Stepwise, traffic=traffic)
        other.env.run()
        assert moved(context.network.moved) == pytest.approx(moved(other.network.moved), rel=1e-9, abs=1e-3)


@settings(max_examples=60, deadline=None, suppress_health_check=FEW)
@given(case=cases())
def test_links_of_a_plan_round_by_round_are_those_of_its_sends(case):
    placed, _, _ = case
    assert links_of(placed.plan, placed.placement, placed.transport) == used_links(placed.plan, placed.placement)


def test_sends_of_one_round_share_a_link_as_single_flows():
    """Three sends into one link beside one flow have three quarters of it."""
    machine = build_topology("star", 4, bandwidth=10e9, latency=0.0)
    plan = make_plan("gather", "direct", nranks=4)
    placed = PlacedPlan(plan, place(plan, machine))
    traffic = [((f">{placed.placement.nodes[0]}",), 1e9, 0.0)]
    exact, _ = run_in(wires(placed), placed, 4e8, [0.0] * 4, executor=Stepwise, traffic=traffic)
    placed.__dict__["playable"] = False
    run, _ = run_in(wires(placed), placed, 4e8, [0.0] * 4, executor=Collapsed, traffic=traffic)
    assert run.approximated is not None
    assert max(run.finish) == pytest.approx(3e8 / 7.5e9, rel=1e-9)
    assert max(run.finish) == pytest.approx(max(exact.finish), rel=1e-9)


def test_a_long_plan_is_cut_into_few_parts():
    """A ring over a thousand ranks has two thousand rounds, and as many parts as one over a hundred."""
    machine = build_topology("star", 1000, bandwidth=10e9, latency=1e-6)
    plan = make_plan("all-reduce", "ring", nranks=1000)
    placed = PlacedPlan(plan, place(plan, machine))
    assert not placed.playable
    phases = phases_of(placed, 1e9, play_isolated(placed, 1e9, [0.0] * 1000).time)
    assert sum(phase.parts for phase in phases.phases) <= PARTS + len(phases.phases)
    assert sum(len(phase.flows) for phase in phases.phases) == len(phases.phases)
