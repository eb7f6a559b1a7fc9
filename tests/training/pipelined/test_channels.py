"""What a communicator draws on in its servers is what it would if it were looked at alone."""

import numpy as np
import pytest

from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import build_cluster
from simperf.training.pipelined.channels import Placer
from simperf.training.pipelined.communicators import MESSAGE, Communicator, Payload

LINK = {"link": "infiniband-hdr", "switch": "infiniband-hdr-switch"}
FABRICS = {
    "star": LINK,
    "fat-tree": {**LINK, "fabric": "fat-tree", "servers_per_leaf": 2, "oversubscription": 2},
    "lanes": {**LINK, "fabric": "fat-tree", "servers_per_leaf": 2, "spines": 3},
    "rail": {**LINK, "fabric": "rail"},
}
COLLECTIVES = (Payload("reduce-scatter", 4e6), Payload("all-gather", 2e6))
SEND = (Payload(MESSAGE, 3e6),)


def communicators():
    """Of ranks in one server, in two, and in three; those of equal places in other servers among them."""
    for server in range(6):
        yield Communicator("tp", tuple(range(8 * server, 8 * server + 4)), COLLECTIVES)
    for first in range(16):
        yield Communicator("dp", (first, first + 16, first + 32), COLLECTIVES)
    for sender in range(40):
        yield Communicator("pp", (sender, sender + 8), SEND)
        yield Communicator("pp", (sender, (sender + 17) % 48), SEND)


def drawn(placer, placed):
    """Links by the number of their set, how often each channel draws on them, and their capacity."""
    pattern = placed.pattern
    (numbers,) = pattern.numbers(np.array([placed.servers], dtype=np.int64), placed.switches).tolist()
    names = [placer.links.name(number) for number in numbers]
    rows = zip(names, pattern.structure.tolist(), pattern.kind.tolist(), pattern.capacity.tolist(), strict=True)
    return sorted((name, structure, pattern.counts[kind], capacity) for name, structure, kind, capacity in rows)


@pytest.mark.parametrize("fabric", FABRICS)
def test_links_are_those_of_a_communicator_that_is_looked_at_alone(fabric):
    machine = build_cluster("dgx-a100", 6, **FABRICS[fabric])
    m = Session(Simulation(machine))
    placer, patterns = Placer(m, machine.gpus, {}), {}
    for one in communicators():
        placed = placer.place(one)
        alone = Placer(m, machine.gpus, {})
        assert drawn(placer, placed) == drawn(alone, alone.place(one)), one
        patterns.setdefault(one.dimension, set()).add(id(placed.pattern))
        flows = [plan.channels.flows for plan in placed.pattern.plans.values()]
        assert flows == [plan.channels.flows for plan in alone.place(one).pattern.plans.values()]
    assert len(patterns["tp"]) == 1
    assert len(patterns["pp"]) < 60
    assert fabric == "lanes" or len(patterns["dp"]) < 16
