"""Device memory of a training step, from the lifetimes of its tensors."""

from __future__ import annotations

from itertools import accumulate
from math import inf

from simperf.errors import InputError, Problem
from simperf.workload.lowering import lower
from simperf.workload.mixed import training_precision
from simperf.workload.precision import PRECISIONS
from simperf.workload.traced import TracedStep

__all__ = ["largest_batch", "memory"]


def memory(
    model: TracedStep,
    batch: int,
    *,
    precision: str = "fp32",
    optimizer: str = "",
    resident_gradients: bool = False,
) -> dict[str, float]:
    """Device memory at the moment of the step that needs most, by what holds it.

    Parameters
    ----------
    model : TracedStep
    batch : int
        Samples.
    precision, optimizer : str
        As in `TracedModel.at`.
    resident_gradients : bool
        Whether gradients keep their memory between steps, as in the buckets of
        DistributedDataParallel; otherwise they are freed before the forward pass.

    Returns
    -------
    dict of str to float
        ``weights`` (those that the model uses), ``master`` (fp32 weights beside them), ``optimizer`` (states),
        ``buffers``, ``gradients``, ``activations`` (what forward keeps for backward, the batch
        itself, and half-precision copies of weights), ``temporaries``, and their sum ``total`` [B]; and ``peak``,
        the fraction of the step's operations that are done at that moment.

    Notes
    -----
    Not counted: the context of the driver (some 0.3 to 0.6 GB), workspaces of libraries, and what
    an allocator loses by rounding and fragmentation.
    """
    mode, steps = training_precision(precision), model.update(optimizer)
    lowered = lower(model, batch, mode)
    count = float(model.parameter_count)
    buffers = (s for s in model.storages if s.role == "buffer")
    fixed = {
        "weights": count * PRECISIONS[mode.weights],
        "master": 4.0 * count if mode.master else 0.0,
        "optimizer": steps.states * count * PRECISIONS[mode.states],
        "buffers": float(sum(s.elements.constant * (s.width or 4) for s in buffers)),
    }
    end = len(lowered.ops)
    gradients, kept, short = ([0.0] * (end + 1) for _ in range(3))
    total = 0.0
    for span in lowered.spans:
        if span.gradient:
            total += span.nbytes
            series = gradients
        else:
            series = kept if span.born < lowered.forward < span.dies else short
        series[span.born] += span.nbytes
        series[max(span.dies, span.born + 1) if span.dies < end else end] -= span.nbytes
    if resident_gradients:
        gradients = [total] + [0.0] * end
    rows = list(zip(*(list(accumulate(series))[:end] for series in (gradients, kept, short)), strict=True))
    data = float(sum(span.nbytes for span in lowered.spans if span.born == 0 and span.dies >= end))
    scratch = steps.temporaries * count * PRECISIONS[mode.states] + (4.0 * count if mode.master else 0.0)
    rows.append((total, data, scratch))  # the update
    at = max(range(len(rows)), key=lambda i: sum(rows[i]))
    moving = dict(zip(("gradients", "activations", "temporaries"), rows[at], strict=True))
    parts = {**fixed, **moving}
    return {**parts, "total": sum(parts.values()), "peak": at / end if end else 0.0}


def largest_batch(model: TracedStep, capacity: float, *, precision: str = "fp32", optimizer: str = "") -> int:
    """Samples that fit into a device memory of `capacity` [B]; 0 if not even one does.

    Raises
    ------
    InputError
        A capacity that is no finite size, or a model that needs no more memory for more samples.
    """
    if not 0 <= capacity < inf:
        raise InputError(Problem("must be a finite size, 0 or more", key="capacity", value=repr(capacity)))

    def need(batch: int) -> float:
        return memory(model, batch, precision=precision, optimizer=optimizer)["total"]

    if need(1) > capacity:
        return 0
    low, high = 1, 2
    while need(high) <= capacity:
        low, high = high, 2 * high
        if high > 2**40:
            raise InputError(Problem("needs no more memory for more samples", key=model.name))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if need(middle) <= capacity else (low, middle)
    return low
