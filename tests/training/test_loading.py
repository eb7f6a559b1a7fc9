"""The batch on its way to the devices."""

import pytest

from tests.training.strategies import CATALOG, layers, metric, run


def test_gpus_behind_one_switch_share_its_link():
    """Two GPUs of a DGX-1 hang on one PCIe switch: their copies take twice as long together."""
    machine = CATALOG.machine("dgx-1v")
    work = layers(nbytes=1.0, nbytes_input=100e6)
    one, all_ = run(machine, work, n=1, batch=1, steps=1), run(machine, work, batch=8, steps=1)
    wire = 100e6 / machine.route("cpu0", "gpu0").bandwidth
    assert one.now == pytest.approx(5e-3 + wire, rel=1e-3)
    assert all_.now == pytest.approx(5e-3 + 2 * wire, rel=2e-3)


def test_the_frontend_does_not_wait_for_the_copy():
    """Launches of the step go on while the batch is on its way, and the default stream keeps the order."""
    machine = CATALOG.machine("p3-2xlarge")
    work = layers(nbytes_input=100e6, launch=100e-6)
    m = run(machine, work, batch=1, steps=1)
    wire = 100e6 / machine.route("cpu0", "gpu0").bandwidth
    assert m.now == pytest.approx(wire + 5e-3, rel=1e-2), "five launches of 100 us are hidden under the copy"
    assert metric(m, "device busy, min over ranks") < 1.0
