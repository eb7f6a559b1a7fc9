"""Tensors from device to device, in order with what both do."""

import pytest

from simperf.engine.kernel import Kernel
from simperf.execution import launch, synchronize
from simperf.training.data.peer import add, to_device
from tests.training.strategies import session, star


def test_a_copy_waits_for_both_devices_and_both_wait_for_it():
    m = session(star(2))
    work = [Kernel("short", 1e-3, launch=0.0, result=0.0), Kernel("long", 3e-3, launch=0.0, result=0.0)]

    def program():
        for device, kernel in zip(m.gpus, work, strict=True):
            yield launch(kernel, device)
        yield from to_device(m.gpu(0), m.gpu(1), 50e6, name="x")
        for device in m.gpus:
            yield launch(work[0], device)
        yield synchronize()

    m.play(program())
    assert m.now == pytest.approx(3e-3 + 1e-3 + 500e-9 + 1e-3, rel=1e-9)


def test_an_addition_reads_two_and_writes_one():
    m = session(star(1))

    def program():
        yield from add(m, m.gpu(0), 400e6)
        yield synchronize()

    m.play(program())
    assert m.now >= 3 * 400e6 / m.gpu(0).part.memory_bandwidth
    assert next(iter(m.operations.values())).cost.nbytes == 3 * 400e6
