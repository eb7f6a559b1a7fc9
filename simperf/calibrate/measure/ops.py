"""Turning calls of torch into tasks of ``op/<family>``: amounts from the meta device, times from the bench."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker
from simperf.calibrate.measure.task import Task, point

__all__ = ["UNCACHED", "operation"]

#: sets of operands that take turns where none may be cached, all together [B]
UNCACHED = 256e6


def operation(
    bench: Bench,
    maker: Maker,
    dtype: str,
    *,
    shape: Mapping[str, Value] | None = None,
    cold: float = 0.0,
    suffix: str = "",
) -> Task:
    """A task that times the call which `maker` sets up.

    Parameters
    ----------
    bench : Bench
    maker : Maker
    dtype : str
        Precision of its operands.
    shape : mapping of str to Value, optional
        Further conditions that tell points of the same amounts apart.
    cold : float
        if above 0, many sets of operands take turns, together so large that no cache holds them [B]
    suffix : str
        Put behind the kind, where one kind runs in ways that a device does not run alike.
    """
    op = bench.describe(maker, dtype)
    op = replace(op, kind=op.kind + suffix)
    at = bench.conditions(op, {"cache": "cold" if cold else "warm", **(shape or {})})
    count = max(2, min(512, round(cold / max(op.nbytes, 1.0)))) if cold else 1

    def take() -> Sequence[float]:
        with bench.torch.no_grad():
            calls = [maker(bench.new(dtype)) for _ in range(count)]
            if count == 1:
                return bench.kernel(calls[0])

            def everything() -> None:
                for call in calls:
                    call()

            return [each / count for each in bench.kernel(everything)]

    return point(f"op/{op.family}", at, take)
