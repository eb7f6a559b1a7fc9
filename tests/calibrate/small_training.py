"""Shapes of the set ``training`` that a test has time for, on the GPU that is played."""

from simperf.calibrate.measure.bench import LEAST_UNCACHED
from simperf.calibrate.measure.training import FAMILIES, attention, launches, order, products, sustained, updates

__all__ = ["small_shapes"]


def small_shapes(monkeypatch):
    """Have each family measure a few small shapes."""
    monkeypatch.setattr(products, "layer_shapes", lambda bench: [(64, 64, 256), (32, 128, 128), (16, 64, 64)])
    monkeypatch.setattr(products, "_VOCABULARIES", ((64, 256),))
    monkeypatch.setattr(products, "_SKINNY", ((64, 128),))
    monkeypatch.setattr(
        attention, "_shapes", lambda bench: iter([((1, 4, 2, 64, 32), True), ((1, 4, 4, 64, 32), False)])
    )
    monkeypatch.setattr(updates, "sizes", lambda low, high, count: [4000, 2000])
    monkeypatch.setattr(updates, "parameter_shapes", lambda layers, width: [(8, 8), (8,)])
    monkeypatch.setattr(launches, "_ELEMENTS", (1,))
    monkeypatch.setattr(sustained, "_SIDES", (64,))
    monkeypatch.setattr(sustained, "_WHOLE", 0.01)
    monkeypatch.setattr(
        order, "FAMILIES", {name: FAMILIES[name] for name in FAMILIES if name not in ("rows", "elements")}
    )
    monkeypatch.setitem(LEAST_UNCACHED, "cuda", 2e5)
