"""Experts of a mixture by their shape: two grouped products, and the kernels around them.

A grouped product gives each expert its own rows of tiles, and each multiprocessor one tile after another until all are
done, whichever expert they belong to:

    t = max(sum_e ceil(r_e / h) ceil(n / w) / sms, 1) (2 h w k / r + fill)

with r_e rows of expert e, a tile of height h and width w, and r the rate of one multiprocessor.
The library takes the tile of least time. Weights of experts with rows come from memory once; traffic runs beside the
arithmetic, joined by a corner. Before, between and after the products kernels stream: choice of experts, rows gathered
by expert, activation, quantisation, weighted sum. A call has a fixed time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.cost.formulas import corner
from simperf.cost.products import cached_share
from simperf.cost.seams import GpuRates, OpCost, peak_share, regime_of
from simperf.errors import InputError, Problem
from simperf.workload.expert_loads import EXPERT_PRECISIONS, ExpertPrecision
from simperf.workload.op import ExpertShape, Op

__all__ = [
    "BLOCK_UNITS",
    "ELSEWHERE",
    "EXPERTS",
    "ExpertUnits",
    "ExpertWork",
    "expert_cost",
    "expert_times",
    "expert_units",
]

#: Constants of all GPUs, fitted to half of the rows with balanced experts of TensorRT-LLM's tables of H100, H200 and
#: L40S (ai-dynamo/aiconfigurator at 095f58a; `python -m tests.truth.kernels moe --fit`):
EXPERTS: Mapping[str, float] = {
    # filling and draining a tile's pipeline [s]
    "fill": 2.57e-6,
    # exponent of the corner between arithmetic and traffic
    "corner": 2.49,
    # what one multiprocessor draws from the L2 [B/s]
    "cache": 28.5e9,
    # fixed time of a call of kernels with factors of blocks, and of kernels that widen weights, over that of others [1]
    "block": 0.88,
    "mixed": 3.5,
}
#: Constants of an architecture that has none of its own, as shares of its GPUs' peak and bandwidth, and a time [s];
#: fitted to the same rows together
ELSEWHERE: Mapping[str, float] = {
    "bf16": 0.912,
    "fp8": 0.927,
    "fp8-block": 0.316,
    "mxfp4-bf16": 0.233,
    # multiplied as 8-bit numbers
    "mxfp4-mxfp8": 0.927,
    "memory": 0.837,
    "stream": 0.599,
    "fixed": 25e-6,
}
#: heights and widths of tiles on matrix units, and the least and most elements of one (CUTLASS, docs/efficient_gemm)
_SIDES, _LEAST, _MOST = (16, 32, 64, 128, 192, 256), 1024, 128 * 256
_HEIGHT, _WIDTH = (
    np.array(column, dtype=float)
    for column in zip(*((h, w) for h in _SIDES if h != 192 for w in _SIDES if _LEAST <= h * w <= _MOST), strict=True)
)
#: precisions whose two operands have factors of blocks (OCP Microscaling), which GPUs with products of 4 bits apply
BLOCK_UNITS = ("mxfp4-mxfp8",)
#: steps along k that a kernel takes at once
_STEP = 64
#: bytes of an element between two kernels that is not quantised, and of the gate's score of an expert
_SIZE = 2.0

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExpertUnits:
    """Rates of one GPU for experts in one precision.

    Parameters
    ----------
    rate : float
        Of all multiprocessors, without edges [FLOP/s].
    sms : int
        Multiprocessors.
    memory, stream : float
        Rates of memory that products reach, and the kernels around them [B/s].
    fixed : float
        Time of a call without any work [s].
    l2 : float
        Capacity of the L2 [B].
    formats : ExpertPrecision
    pace : float
        How many times as fast as on the GPU of the catalogue the times of all GPUs pass: not 1 where a study makes a
        GPU's kernels faster [1].
    """

    rate: float
    sms: int
    memory: float
    stream: float
    fixed: float
    l2: float
    formats: ExpertPrecision
    pace: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class ExpertWork:
    """Many calls with experts in one precision, a row each.

    Parameters
    ----------
    rows, counts : array of shape (calls, any)
        Rows of an expert, and how many experts of the rank get so many; 0 and 0 fill a row up.
    tokens, experts, hidden, intermediate, inputs : array of shape (calls,)
        As in `ExpertShape`; `inputs` are the matrices of the first product, 2 with a gate.
    reuse : array of shape (calls,)
        Bytes touched between two uses of the operands; infinite where they come from memory [B].
    """

    rows: Array
    counts: Array
    tokens: Array
    experts: Array
    hidden: Array
    intermediate: Array
    inputs: Array
    reuse: Array


def expert_times(
    work: ExpertWork, units: ExpertUnits, constants: Mapping[str, float] = EXPERTS
) -> tuple[Array, Array, Array, float]:
    """Times of calls, of their arithmetic and of their traffic alone, and of a call without work [s].

    Parameters
    ----------
    work : ExpertWork
    units : ExpertUnits
    constants : mapping of str to float
        In place of `EXPERTS`.
    """
    formats, hidden, width = units.formats, work.hidden, work.intermediate
    kept = cached_share(work.reuse, units.l2)
    first = _product(work, units, constants, kept=kept, n=work.inputs * width, k=hidden)
    second = _product(work, units, constants, kept=kept, n=hidden, k=width)
    total = (work.rows * work.counts).sum(axis=1)
    gathered = total * hidden * (_SIZE + formats.activation)
    activated = total * width * (_SIZE * work.inputs + formats.activation)
    # what the products made is summed up for all tokens, those without a row on this rank too
    moved = 2.0 * _SIZE * work.tokens * work.experts + gathered + activated + _SIZE * (total + work.tokens) * hidden
    if formats.scaling == "tensor":
        moved = moved + work.tokens * hidden * (_SIZE + formats.activation)
    elif formats.scaling == "block":
        moved = moved + total * (hidden + width) * (_SIZE + formats.activation)
    cache = max(units.stream, constants["cache"] * units.pace * units.sms * units.stream / units.memory)
    streamed = moved * ((1.0 - kept) / units.stream + kept / cache)
    fixed = units.fixed * (constants[formats.kernels] if formats.kernels else 1.0)
    arithmetic, traffic = first[1] + second[1], first[2] + second[2] + streamed
    return fixed + first[0] + second[0] + streamed, arithmetic, traffic, fixed


def _product(
    work: ExpertWork, units: ExpertUnits, constants: Mapping[str, float], *, kept: Array, n: Array, k: Array
) -> tuple[Array, Array, Array]:
    """Time, arithmetic and traffic of one grouped product."""
    high = np.ceil(work.rows[:, None, :] / _HEIGHT[None, :, None])
    tiles = (work.counts[:, None, :] * high).sum(axis=-1) * np.ceil(n[:, None] / _WIDTH)
    depth = np.ceil(k / _STEP) * _STEP
    tile = 2.0 * _HEIGHT * _WIDTH * depth[:, None] / (units.rate / units.sms) + constants["fill"] / units.pace
    arithmetic: Any = (np.where(tiles > 0, np.maximum(tiles / units.sms, 1.0), 0.0) * tile).min(axis=1)
    total = (work.rows * work.counts).sum(axis=1)
    active = (work.counts * (work.rows > 0)).sum(axis=1)
    nbytes = active * n * k * units.formats.weight + total * (k * units.formats.activation + n * _SIZE)
    cache = max(units.memory, constants["cache"] * units.pace * units.sms)
    traffic = nbytes * ((1.0 - kept) / units.memory + kept / cache)
    return corner(arithmetic, traffic, constants["corner"]), arithmetic, traffic


def expert_units(
    device: GpuRates, precision: str, *, peak: float, constants: Mapping[str, float] | None = None
) -> ExpertUnits:
    """Matrix units that experts in a precision find on a device.

    Parameters
    ----------
    device : GpuRates
    precision : str
        One of `EXPERT_PRECISIONS`.
    peak : float
        Of the precision's arithmetic on the device [FLOP/s].
    constants : mapping of str to float, optional
        In place of those that the device has of its architecture, and of `ELSEWHERE` for what is not among them.
    """
    own = getattr(device, "experts", {}) if constants is None else constants
    known = {**ELSEWHERE, **own}
    share = known["bf16" if precision == "fp16" else precision]
    pace = known.get("pace", 1.0)
    return ExpertUnits(
        rate=peak_share(share, device) * peak,
        sms=max(1, device.sms),
        memory=known["memory"] * device.memory_bandwidth,
        stream=known["stream"] * device.memory_bandwidth,
        fixed=known["fixed"] / pace,
        l2=float(getattr(device, "l2", 0.0)) or 1.0,
        formats=EXPERT_PRECISIONS[precision],
        pace=pace,
    )


@lru_cache(maxsize=65536)
def _times(shape: ExpertShape, reuse: float, units: ExpertUnits) -> tuple[float, float, float, float]:
    """Times of one call."""
    rows: Any = np.array([[row for row, _ in shape.rows]], dtype=float)
    counts: Any = np.array([[count for _, count in shape.rows]], dtype=float)
    inputs = 2.0 if shape.gated else 1.0
    numbers = (shape.tokens, shape.experts, shape.hidden, shape.intermediate, inputs, reuse)
    tokens, experts, hidden, width, first, again = (np.array([float(value)]) for value in numbers)
    work = ExpertWork(rows, counts, tokens, experts, hidden, width, first, again)
    time, arithmetic, traffic, fixed = expert_times(work, units)
    return float(time[0]), float(arithmetic[0]), float(traffic[0]), fixed


def expert_cost(op: Op, shape: ExpertShape, device: GpuRates, *, peak: float) -> OpCost:
    """Cost of an operation with experts; no faster than the peak allows, nor than memory for what is not cached.

    Raises
    ------
    InputError
        A precision that needs matrix units that the device does not have.
    """
    if shape.precision in BLOCK_UNITS and "fp4" not in device.peak:
        message = f"{device.name} has no matrix units that apply factors of blocks, as this precision needs"
        expected = "a GPU with a peak of fp4, such as b200-sxm-180gb; or mxfp4-bf16, whose kernels widen the weights"
        raise InputError(Problem(message, key="dtype", value=repr(shape.precision), expected=expected))
    units = expert_units(device, shape.precision, peak=peak)
    time, arithmetic, traffic, fixed = _times(shape, op.reuse, units)
    least = op.flops / peak
    if math.isinf(op.reuse):
        least = max(least, op.nbytes / device.memory_bandwidth)
    return OpCost(
        time=max(time, least + fixed),
        compute_time=arithmetic,
        memory_time=traffic,
        overhead=fixed,
        regime=regime_of(arithmetic, traffic, fixed),
        flops=op.flops,
        nbytes=op.nbytes,
    )
