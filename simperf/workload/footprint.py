"""Device memory of a training step, from the lifetimes of its tensors."""

from __future__ import annotations

from math import inf

from simperf.errors import InputError, Problem
from simperf.memory import TensorKind, held, largest_batch
from simperf.workload.lowering import lower
from simperf.workload.mixed import training_precision
from simperf.workload.precision import PRECISIONS
from simperf.workload.traced import TracedStep

__all__ = ["largest_model_batch", "memory"]

#: what changes from operation to operation
MOVING: tuple[TensorKind, ...] = ("gradients", "activations", "temporaries")

#: samples of which no memory is large enough
MOST = 1 << 40


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
    end, tensors = len(lowered.ops), lowered.tensors
    series, moments = held(tensors, end), [0.0] * end
    total = float(sum(one.nbytes for one in tensors if one.kind == "gradients"))
    if resident_gradients:
        series["gradients"] = [total] * end
    rows = list(zip(*(series.get(kind, moments) for kind in MOVING), strict=True))
    data = float(sum(one.nbytes for one in tensors if one.born == 0 and one.dies >= end))
    beside = float(max((one.elements for one in model.parameters), default=0)) if steps.looped else count
    scratch = steps.temporaries * beside * PRECISIONS[mode.states] + (4.0 * count if mode.master else 0.0)
    rows.append((total, data, scratch))  # the update
    at = max(range(len(rows)), key=lambda i: sum(rows[i]))
    moving = dict(zip(MOVING, rows[at], strict=True))
    parts = {**fixed, **moving}
    return {**parts, "total": sum(parts.values()), "peak": at / end if end else 0.0}


def largest_model_batch(model: TracedStep, capacity: float, *, precision: str = "fp32", optimizer: str = "") -> int:
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

    found = largest_batch(need, capacity, most=MOST)
    if found == MOST:
        raise InputError(
            Problem("needs no more memory for more samples", key=model.name, expected="a model with activations")
        )
    return found
