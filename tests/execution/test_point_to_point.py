"""Messages between pairs of ranks: the n-th send of a pair is what its n-th receive gets."""

import pytest

from simperf.collectives.execute import Context, PlacedPlan
from simperf.collectives.placement import place
from simperf.collectives.plans.direct import one_send
from simperf.engine.simulation import Simulation
from simperf.errors import ProgramError
from simperf.execution.point_to_point import Message, Pairs
from simperf.hardware import build_topology


class Holder:
    """Notes when its messages have moved."""

    def __init__(self, simulation, path=0.0):
        self.simulation, self.path, self.ends = simulation, path, []
        self.track, self.last = "gpu0/stream0", ""

    def arrived(self, began, path, last):
        self.last = last
        self.ends.append((self.simulation.now, path))


@pytest.fixture
def simulation():
    return Simulation(build_topology("fully-connected", 3, bandwidth=1e9, latency=1e-3))


@pytest.fixture
def counted():
    return []


@pytest.fixture
def pairs(simulation, counted):
    machine = simulation.machine

    def placed(source, target, nbytes):
        plan = one_send()
        return PlacedPlan(plan, place(plan, machine, ranks=(machine.gpus[source], machine.gpus[target])))

    return Pairs(machine.gpus, Context.of(simulation), placed, counted.append)


def test_both_sides_are_done_when_the_last_byte_has_arrived(simulation, pairs, counted):
    sender, receiver = Holder(simulation), Holder(simulation, path=0.25)
    pairs.post(Message(True, 0, 1, 1e6, sender))
    simulation.env.run(until=0.5)
    assert sender.ends == [], "nothing moves before the receiver has come"
    pairs.post(Message(False, 0, 1, 1e6, receiver))
    simulation.env.run()
    (sent, path), (received, _) = sender.ends[0], receiver.ends[0]
    assert sent == received == pytest.approx(0.5 + 1e-3 + 1e-3)
    assert path == pytest.approx(0.25 + 2e-3), "the longer of both paths, and the message"
    assert len(counted) == 1
    assert counted[0].moved == {"r0>r1": pytest.approx(1e6)}


def test_messages_of_a_pair_meet_in_order(simulation, pairs):
    sizes = [1e3, 2e3, 3e3]
    sides = [Holder(simulation) for _ in sizes]
    for nbytes, side in zip(sizes, sides, strict=True):
        pairs.post(Message(True, 0, 1, nbytes, side))
    for nbytes in sizes:
        pairs.post(Message(False, 0, 1, nbytes, Holder(simulation)))
    simulation.env.run()
    assert all(len(side.ends) == 1 for side in sides)
    assert pairs.waiting() == []


def test_the_two_ways_of_a_pair_are_apart(simulation, pairs):
    pairs.post(Message(True, 0, 1, 8.0, Holder(simulation)))
    pairs.post(Message(False, 1, 0, 8.0, Holder(simulation)))
    assert pairs.waiting() == [
        "r0 sends 8 B to r1, which has not come to a receive from r0",
        "r0 receives 8 B from r1, which has not come to a send to r0",
    ]


@pytest.mark.parametrize("first", [True, False])
def test_two_sizes_are_refused_with_both(simulation, pairs, first):
    sides = {True: 1000.0, False: 2000.0}
    pairs.post(Message(first, 2, 1, sides[first], Holder(simulation)))
    with pytest.raises(ProgramError, match=r"r2 sends 1,000 B to r1, which receives 2,000 B"):
        pairs.post(Message(not first, 2, 1, sides[not first], Holder(simulation)))
