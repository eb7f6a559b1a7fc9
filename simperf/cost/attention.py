"""Attention by its shape: the constants of a library's kernels on an architecture, and what they make of an operation.

The constants are those of `simperf.cost.attention_formulas`. They stand in the file of an architecture by library
(``[attention.LIBRARY]``), none of them belongs to a shape. ``flash-attention`` is what training runs: the newest
FlashAttention for the architecture. ``tensorrt-llm`` is an inference library, whose call writes the cache of keys and
values first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from simperf.cost.attention_formulas import RUN, AttentionRates, AttentionWork, attention_time, decode_time, visible
from simperf.cost.seams import GpuRates, OpCost, peak_share, regime_of
from simperf.errors import InputError, Problem, nearest
from simperf.workload.layer_kernels import ATTENTION_LIBRARIES
from simperf.workload.op import AttentionShape, Op
from simperf.workload.precision import element_size

__all__ = [
    "BACKWARD",
    "CACHED",
    "LEAST_QUERIES",
    "AttentionKernels",
    "attention_rates",
    "attention_shape",
    "backward_constants",
    "few_queries",
    "library_constants",
]

#: libraries whose call begins with a kernel that writes keys and values to the cache
CACHED = frozenset({"tensorrt-llm"})
#: kind of the operation that computes the gradients
BACKWARD = "attention_backward"
#: fewest queries of a sequence, more than one, that a table has: those of TensorRT-LLM in ai-dynamo/aiconfigurator
LEAST_QUERIES = 16
#: matrix products of a tile forward and backward (FlashAttention-2, section 3.1), and kernels of the backward pass: the
#: row sums of the result times its gradient, the gradients, and the queries' gradient from fp32
_PRODUCTS, _PRODUCTS_BACK, _KERNELS_BACK = 2.0, 5.0, 3.0
#: constants without which no time can be computed
_NEEDED = ("matrix", "exponential", "serial", "block", "tail")
#: query heads a head of the cache beyond which TensorRT-LLM reads the cache for each query head, and how many times as
#: fast as from memory, as they come from the L2
_LARGEST_GROUP, _AGAIN = 16, 2.0


def attention_shape(op: Op) -> AttentionShape | None:
    """The shape of an attention whose scores stay on chip; of a traced one, by its products and its arithmetic.

    A traced kernel says how many heads there are in all, the sizes of its products, and that a causal mask halves the
    arithmetic.

    Examples
    --------
    >>> from simperf.workload.kinds import attention
    >>> attention_shape(attention(2, 8, queries=512, head_dim=64, causal=True)).kv_heads
    8
    """
    if op.attention is not None:
        return op.attention if op.attention.flash else None
    if op.gemm is None or op.family != "attention":
        return None
    gemm = op.gemm
    products = _PRODUCTS_BACK if op.kind == BACKWARD else _PRODUCTS
    keys = max(1, round(gemm.k / products))
    scores = float(gemm.batch) * gemm.m * keys
    causal = op.flops < 0.75 * 2.0 * products * scores * gemm.n
    return AttentionShape(1, gemm.batch, gemm.batch, gemm.m, keys, gemm.n, gemm.n, causal=causal)


def few_queries(shape: AttentionShape) -> bool:
    """Whether there are more queries than one and fewer than any measured table has; more keys than queries.

    They take one query's time at least: a kernel for many queries reads the same cache.
    """
    return 1 < shape.queries < min(LEAST_QUERIES, shape.keys)


class AttentionKernels:
    """Attention kernels of one library on one device.

    Parameters
    ----------
    device : GpuRates
        A GPU part with constants of the library.
    memory : float
        Rate of memory that kernels reach [B/s].
    floor : float
        Shortest time of a kernel [s].
    library : str
        One of `ATTENTION_LIBRARIES`; by default what training runs.

    Raises
    ------
    InputError
        No such library, or a device without its constants.
    """

    __slots__ = ("constants", "device", "library", "rates")

    def __init__(self, device: GpuRates, *, memory: float, floor: float, library: str = ATTENTION_LIBRARIES[0]) -> None:
        if library not in ATTENTION_LIBRARIES:
            message = f"no library of attention kernels{nearest(library, ATTENTION_LIBRARIES)}"
            expected = ", ".join(ATTENTION_LIBRARIES)
            raise InputError(Problem(message, key="library", value=repr(library), expected=expected))
        self.device, self.library = device, library
        self.constants = library_constants(device, library)
        if not self.constants or not getattr(device, "lanes", None):
            message = f"{device.name} has no constants of the attention kernels of {library}"
            known = ", ".join(_device_libraries(device)) or "none for GPUs of its architecture"
            raise InputError(Problem(message, key="library", value=repr(library), expected=known))
        lacking = [key for key in _NEEDED if key not in self.constants]
        if lacking:
            message = f"{device.name} lacks a constant of {library}"
            raise InputError(
                Problem(
                    message,
                    key=f"attention.{library}.{lacking[0]}",
                    expected="the constant, in the part's file or a profile",
                )
            )
        self.rates = attention_rates(device, memory=memory, floor=floor)

    def cost(self, op: Op, *, warm: bool = False) -> OpCost | None:
        """Cost of an operation; None if these kernels do not serve it: its scores in memory, or another precision.

        Parameters
        ----------
        op : Op
        warm : bool
            Whether its operands may lie in the L2, as in a loop that times one call.
        """
        shape = attention_shape(op)
        if shape is None or op.dtype not in ("fp16", "bf16", "fp8"):
            return None
        if shape.queries == 1 and "decode-memory" in self.constants and op.kind != BACKWARD:
            return self._decode(op, shape, warm=warm)
        back = op.kind == BACKWARD
        constants = backward_constants(self.constants) if back else self.constants
        blocks, tiles, longest, scores = visible(shape.queries, shape.keys, causal=shape.causal, window=shape.window)
        work = AttentionWork(
            instances=float(shape.batch * shape.heads),
            blocks=blocks,
            tiles=tiles,
            longest=longest,
            scores=scores,
            width=0.5 * (shape.head_dim + shape.value_dim),
            products=_PRODUCTS_BACK if back else _PRODUCTS,
            nbytes=op.nbytes,
            prepared=self._prepared(op, shape, back=back),
            fp8=op.dtype == "fp8" and "fp8" in self.device.peak,
        )
        found = self._cost(op, attention_time(work, self.rates, constants, warm=warm), blocks * work.instances)
        if few_queries(shape) and not back and "decode-memory" in self.constants:
            least = self._decode(op, shape, warm=warm)
            return found if found.time >= least.time else least
        return found

    def _prepared(self, op: Op, shape: AttentionShape, *, back: bool) -> float:
        """Traffic of the kernels beside the main one [B]."""
        queries = float(shape.batch) * shape.queries * shape.heads * shape.value_dim
        if back:
            # the result and its gradient are read; the queries' gradient is cleared, read in fp32 and written
            return queries * (2.0 * element_size(op.dtype) + 4.0 + 4.0 + element_size(op.dtype))
        if self.library not in CACHED:
            return 0.0
        values = shape.heads * shape.head_dim + shape.kv_heads * (shape.head_dim + shape.value_dim)
        if shape.latent:
            values = shape.heads * max(0, shape.head_dim - shape.value_dim) + shape.latent
        return float(shape.batch) * shape.queries * values * (2.0 + element_size(op.dtype))

    def _decode(self, op: Op, shape: AttentionShape, *, warm: bool) -> OpCost:
        """One query a sequence: the cache is read once."""
        group = shape.heads // shape.kv_heads
        keys = min(shape.keys, shape.window) if shape.window else shape.keys
        instances, again = float(shape.batch * shape.kv_heads), 1.0
        if group > _LARGEST_GROUP:
            instances, again, group = float(shape.batch * shape.heads), group / _AGAIN, 1
        read = again * (op.nbytes_read * min(1.0, keys / shape.keys))
        width = 0.5 * (shape.head_dim + shape.value_dim)
        work = AttentionWork(instances, 1, 1, 1, 1, width, _PRODUCTS, read + op.nbytes_written)
        found = decode_time(work, self.rates, self.constants, keys=keys, group=group, warm=warm)
        return self._cost(op, found, instances * math.ceil(keys / RUN))

    def _cost(self, op: Op, found: tuple[float, float, float, float], blocks: float) -> OpCost:
        """What a formula found, as a cost that is no less than the peaks allow."""
        time, compute, memory, fixed = (float(value) for value in found)
        return OpCost(
            time=time,
            compute_time=compute,
            memory_time=memory,
            overhead=fixed,
            regime=regime_of(compute, memory, fixed),
            flops=op.flops,
            nbytes=op.nbytes,
            demand=min(1.0, max(blocks, 1.0) / self.rates.sms),
        )


def attention_rates(device: GpuRates, *, memory: float, floor: float) -> AttentionRates:
    """Limits of a device with known `lanes`, for kernels that reach `memory` [B/s] and take at least `floor` [s]."""
    sms = max(1, device.sms)
    half = device.peak.get("bf16", device.peak.get("fp16", 0.0))
    return AttentionRates(
        sms=sms,
        clock=device.peak["fp32"] / (2.0 * float(getattr(device, "lanes", 0) or 1) * sms),
        matrix=half,
        matrix_fp8=device.peak.get("fp8", half),
        memory=memory,
        floor=floor,
        l2=float(getattr(device, "l2", 0.0)),
    )


def _device_libraries(device: GpuRates) -> tuple[str, ...]:
    """Libraries that a device has constants of; the first is what it runs unless another is named."""
    known = {key.partition(".")[0] for key in getattr(device, "attention", None) or {}}
    return tuple(name for name in ATTENTION_LIBRARIES if name in known)


def library_constants(device: GpuRates, library: str) -> dict[str, float]:
    """Constants of one library on a device; those of decoding are the inference library's if it has none itself."""
    known: Mapping[str, float] = getattr(device, "attention", None) or {}
    head = library + "."
    found = {key.removeprefix(head): value for key, value in known.items() if key.startswith(head)}
    if found and "decode-memory" not in found:
        for key, value in known.items():
            if key.startswith("tensorrt-llm.decode-"):
                found[key.removeprefix("tensorrt-llm.")] = value
    return {key: peak_share(value, device) if "matrix" in key else value for key, value in found.items()}


def backward_constants(constants: Mapping[str, float]) -> dict[str, float]:
    """Constants of the backward pass under the names of the forward one."""
    back = {key.removeprefix("backward-"): value for key, value in constants.items() if key.startswith("backward-")}
    return {**constants, **back, "fixed": _KERNELS_BACK * constants.get("fixed", 1.0)}
