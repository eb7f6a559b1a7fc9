"""The set ``training`` on a pretended GPU, as a command: ``python -m tests.faults.pretended_gpu FILE``.

Shapes are small and no time means anything; points are kept as on a GPU.
"""

import sys

import pytest

from simperf.calibrate.measure.clock import Care
from simperf.calibrate.measure.session import MeasuringSession

__all__ = ["measure"]


def measure(path):
    """Measure products and attention into a file, which is continued if it is there; needs torch."""
    from simperf.calibrate.measure.bench import Bench
    from simperf.calibrate.measure.training import training_tasks
    from tests.calibrate.fake_cuda import PART, fake_cuda
    from tests.calibrate.small_training import small_shapes

    care = Care(budget=0.05, block=1e-3, least=2, most=2, few=2)
    given = {
        "empty_cache": lambda: None,
        "get_device_properties": lambda device: PART,
        "get_device_capability": lambda device: (9, 0),
    }
    with pytest.MonkeyPatch.context() as monkeypatch, fake_cuda(monkeypatch, devices=1, **given):
        small_shapes(monkeypatch)
        bench = Bench("cuda:0", care=care, low=-1.0)
        session = MeasuringSession(path, machine={"gpu": PART.name}, versions={}, recover=bench.recover)
        session.run(training_tasks(bench, ["products", "attention"]), tell=lambda *_: None)


if __name__ == "__main__":
    measure(sys.argv[1])
