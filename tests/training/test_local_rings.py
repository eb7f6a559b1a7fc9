"""Collectives inside a machine that serves gradients: alone, one after the other, beside copies."""

import pytest

from simperf.collectives.nccl import Tuner
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.training.servers.local_rings import GROUPED, LocalRings

MB = 1e6


def ends(machine, calls, *, grouped=GROUPED, beside=None):
    """When each of (collective, bytes) ends that are asked for at once."""
    session = Session(Simulation(machine))
    rings, done = LocalRings(session, machine.gpus, grouped=grouped), []
    for name, nbytes in calls:
        getattr(rings, name)(nbytes, 0.0, lambda: done.append(session.now))
    if beside:
        session.send(*beside)
    session.simulation.run()
    return done, session


@pytest.mark.parametrize("name", ["dgx-1v", "pcie-8gpu"])
@pytest.mark.parametrize("collective", ["reduce-scatter", "all-gather"])
def test_alone_a_call_takes_what_nccl_takes(catalog, name, collective):
    machine = catalog.machine(name)
    for nbytes in (64e3, 4 * MB, 64 * MB):
        (end,), _ = ends(machine, [(collective.replace("-", "_"), nbytes)])
        alone = Tuner(machine, machine.gpus, collective=collective).best(nbytes).time
        assert end == pytest.approx(alone, rel=1e-9)


def test_slices_that_wait_go_in_grouped_calls(catalog):
    """Eight slices: eight calls, or two, which save the latency of six."""
    machine, calls = catalog.machine("dgx-1v"), [("reduce_scatter", 4 * MB)] * 8
    (each, _), (four, _) = ends(machine, calls, grouped=1), ends(machine, calls, grouped=4)
    assert each == pytest.approx([each[0] * count for count in range(1, 9)])
    assert four[:4] == [four[0]] * 4
    assert each[0] < four[0] < each[3]
    assert four[7] == pytest.approx(2 * four[0])


def test_the_most_urgent_goes_first(catalog):
    session = Session(Simulation(catalog.machine("dgx-1v")))
    rings, order = LocalRings(session, session.machine.gpus, grouped=1), []
    for urgency in (5.0, 9.0, 1.0):
        rings.all_gather(MB, urgency, lambda urgency=urgency: order.append(urgency))
    session.simulation.run()
    assert order == [1.0, 5.0, 9.0]


def test_over_pcie_a_ring_shares_the_links_with_copies(catalog):
    machine = catalog.machine("pcie-8gpu")
    alone, _ = ends(machine, [("reduce_scatter", 64 * MB)])
    busy, session = ends(machine, [("reduce_scatter", 64 * MB)], beside=("gpu0", "cpu0", 64 * MB))
    assert busy[0] > 1.2 * alone[0]
    assert max(session.simulation.network.peak.values()) <= max(machine.resources.values())


def test_over_nvlink_it_does_not(catalog):
    machine = catalog.machine("dgx-1v")
    alone, _ = ends(machine, [("reduce_scatter", 64 * MB)])
    busy, session = ends(machine, [("reduce_scatter", 64 * MB)], beside=("gpu0", "cpu0", 64 * MB))
    assert busy == alone
    moved = session.simulation.network.moved
    through = sum(nbytes for name, nbytes in moved.items() if name.startswith("gpu0>gpu"))
    assert through >= 64 * MB * 7 / 8 * (1 - 1e-12), "each GPU sends all parts but its own"


def test_one_gpu_has_nothing_to_add_up(catalog):
    session = Session(Simulation(catalog.machine("dgx-1v")))
    done = []
    LocalRings(session, ["gpu3"]).reduce_scatter(MB, 0.0, lambda: done.append(session.now))
    assert done == [0.0]


def test_a_call_of_no_slice(catalog):
    with pytest.raises(InputError, match="one slice or more"):
        LocalRings(Session(Simulation(catalog.machine("dgx-1v"))), ["gpu0", "gpu1"], grouped=0)
