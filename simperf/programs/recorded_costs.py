"""Times of recorded kernels on another GPU: as recorded, times the ratio of what the cost model says of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from simperf.cost import Roofline
from simperf.errors import InputError, Problem
from simperf.hardware.gpu_names import gpu_of_driver
from simperf.workload.op import MATRIX_FAMILIES, Op
from simperf.workload.recorded.recorded_step import RecordedActivity, RecordedStep
from simperf.workload.registry import make_op

__all__ = ["KernelRatios"]

#: rows, columns and depth of the product, and queries of the attention, that stand for those of unknown shapes; assumed
_SIDE, _QUERIES = 4096, 2048
#: precisions that stand for one that a GPU does not have
_OTHERWISE = {"tf32": "fp32", "bf16": "fp16", "fp8": "bf16", "fp16": "fp32"}


class KernelRatios:
    """Ratios of kernels' times on a GPU to those on the GPU that they were recorded on.

    A product of known shapes, by the times of that product; other products, convolutions and attention, by those of a
    large one in their precision; what is bound by memory, by those of an elementwise kernel which moves the bytes that
    the recorded GPU moves in the recorded time. Copies between host and device, and collectives, take as long.

    Parameters
    ----------
    recorded, other : part
        Both GPUs.
    """

    def __init__(self, recorded: Any, other: Any) -> None:
        self._pair = Roofline(recorded), Roofline(other)
        self._bandwidth = float(recorded.memory_bandwidth)
        self._of_op = lru_cache(maxsize=4096)(self._ratio)

    def time(self, one: RecordedActivity) -> float:
        """Time of an activity on the other GPU [s]."""
        kind = one.kind
        if kind.kind in ("collective", "copy") or not one.duration:
            return one.duration
        if kind.kind == "memory":
            nbytes = one.duration * self._bandwidth
            return one.duration * self._ratio(Op("moved", nbytes_read=nbytes / 2, nbytes_written=nbytes / 2))
        return one.duration * self._of_op(kind.op or _usual(kind.kind, kind.dtype))

    def _ratio(self, op: Op) -> float:
        before, after = (_cost(model, op) for model in self._pair)
        return after / before


def _cost(model: Roofline, op: Op) -> float:
    """Time of an operation [s], in a precision that the GPU has."""
    while op.family in MATRIX_FAMILIES and op.dtype not in model.device.peak and op.dtype in _OTHERWISE:
        op = replace(op, dtype=_OTHERWISE[op.dtype])
    return float(model.cost(op).time)


@lru_cache(maxsize=64)
def _usual(kind: str, dtype: str) -> Op:
    """A large operation of a class."""
    if kind == "attention":
        return make_op(
            {"op": "attention", "batch": 8, "heads": 32, "queries": _QUERIES, "head_dim": 128, "dtype": dtype}
        )
    if kind == "convolution":
        sizes = {"batch": 64, "channels": 256, "filters": 256, "height": 28, "width": 28, "padding": 1}
        return make_op({"op": "conv2d", **sizes, "dtype": dtype})
    return make_op({"op": "matmul", "m": _SIDE, "n": _SIDE, "k": _SIDE, "dtype": dtype})


def recorded_gpu(steps: Sequence[RecordedStep], given: str, catalog: Any) -> Any:
    """The GPU on which steps were recorded.

    Parameters
    ----------
    steps : sequence of RecordedStep
    given : str
        Its name in the catalogue; empty to look for what the traces say.
    catalog : Catalog

    Raises
    ------
    InputError
        It is not known, or the traces are of several.
    """
    expected = "a GPU of `simperf catalog list gpu`, which recorded_on may name"
    if given:
        if given not in catalog.names("gpu"):
            raise InputError(Problem("no such GPU", key="recorded_on", value=given, expected=expected))
        return catalog.gpu(given)
    found: list[Any] = [gpu_of_driver(one.gpu, catalog) for one in steps]
    for part, one in zip(found, steps, strict=True):
        if part is None or part.name != found[0].name:
            message = "the GPU of the recording is not in the catalogue" if part is None else "recorded on another GPU"
            key = "deviceProperties[0].name"
            raise InputError(Problem(message, file=one.file, key=key, value=repr(one.gpu), expected=expected))
    return found[0]
