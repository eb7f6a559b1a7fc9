"""Kernels a second through frontend, bounded queue and stream, beside raw SimPy timeouts.

pytest tests/benchmarks/test_engine.py --benchmark-enable --benchmark-columns=median,ops
"""

from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.execution import launch, synchronize
from simperf.execution.session import Session
from tests.benchmarks.raw_timeouts import raw_timeouts

N = 100_000


def kernels(t1, t2):
    session = Session(Simulation())

    def program(m):
        gpu, kernel = m.gpu(), Kernel("k", t2, launch=t1)
        for _ in range(N):
            yield launch(kernel, gpu)
        yield synchronize(gpu)

    return session.play(program(session))


def test_raw_simpy_timeouts(benchmark):
    """The baseline: 100,000 timeouts of one process."""
    assert benchmark(raw_timeouts, N) == N


def test_kernels_backend_slower(benchmark):
    """100,000 kernels; the queue of 1024 is full most of the time."""
    assert benchmark(kernels, 1e-6, 2e-6) > 0.2


def test_kernels_frontend_slower(benchmark):
    """100,000 kernels; the queue is empty most of the time."""
    assert benchmark(kernels, 2e-6, 1e-6) > 0.2
