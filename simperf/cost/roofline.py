"""The roofline: a kernel takes as long as its arithmetic or its memory traffic, whichever is longer.

    t = (t_compute^p + t_memory^p)^(1/p) + t_0

after Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009, with a rounded corner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from simperf.cost.convolutions import WINOGRAD_SHARE, converted_cost, fewer_products
from simperf.cost.recurrence import is_recurrence, recurrence_cost
from simperf.cost.seams import GpuRates, OpCost, peak_share, regime_of
from simperf.cost.tiles import Tiling, library_tile, tiling
from simperf.errors import InputError, Problem, nearest
from simperf.workload.layer_kernels import ATTENTION_CHOOSERS
from simperf.workload.op import ALIGNED, MATRIX_FAMILIES, Gemm, Op

if TYPE_CHECKING:
    from simperf.cost.attention import AttentionKernels
    from simperf.cost.products import MatrixUnits, ProductTime

__all__ = ["SHARPNESS", "Roofline"]

#: Default exponent of the corner: at the ridge a kernel takes 2^(1/8) = 1.09 times the sharp
#: roofline. Chosen from measured half-precision products on an A100 (LLMCompass, ISCA 2024): 128 x 12288 by
#: 12288 x 12288 lies at the ridge and takes 6 % more than its memory traffic alone.
SHARPNESS = 8.0
#: threads that one multiprocessor holds (CUDA C++ Programming Guide, "Compute Capabilities")
THREADS_PER_SM = 2048

#: precision of the vector units that serve elementwise work where the name means matrix units
_VECTOR = {
    "tf32": ("fp32",),
    "fp16": ("fp16-vector", "fp32"),
    "bf16": ("bf16-vector", "fp32"),
    "fp8": ("fp32",),
    "fp4": ("fp32",),
    "int8": ("int8-vector", "fp32"),
}
#: kind of a product with factors of blocks, and its constant where it is not that of its precision
BLOCK_SCALED = "block_scaled_matmul"
_BLOCK_RATES: Mapping[str, str] = {"fp8": "fp8-block"}
#: kinds of kernels around scaled products
SCALING_KINDS = ("amax", "quantize")


class Roofline:
    """Cost of one operation on one device from its peaks.

    Parameters
    ----------
    device : GpuRates
        A GPU part.
    sharpness : float
        Exponent p of the corner, at least 1; infinite is the sharp roofline.
    efficiency : mapping of family to float, optional
        Replaces the device's own. ``family-precision`` (``gemm-fp32``) goes before ``family``;
        conv and attention fall back on gemm, all others on elementwise, and what is absent counts as 1. One for
        attention goes before the constants that the device has of it by shape (`simperf.cost.attention`).
    quantisation : bool
        Whether matrix products pay for tiles and waves (`simperf.cost.tiles`).
    overhead : float, optional
        fixed time of each kernel, instead of the device's `kernel_floor` [s]

    Raises
    ------
    InputError
        A peak, efficiency or exponent that has no meaning.
    """

    __slots__ = ("_attention", "_efficiency", "_quantisation", "device", "overhead", "sharpness")

    def __init__(
        self,
        device: GpuRates,
        *,
        sharpness: float = SHARPNESS,
        efficiency: Mapping[str, float] | None = None,
        quantisation: bool = True,
        overhead: float | None = None,
    ) -> None:
        self.device, self.sharpness, self._quantisation = device, sharpness, quantisation
        self._efficiency = dict(device.efficiency if efficiency is None else efficiency)
        self.overhead = device.kernel_floor if overhead is None else overhead
        problems = [
            Problem("must be above 0 and at most 1", key=f"efficiency.{family}", value=repr(value))
            for family, value in self._efficiency.items()
            if not 0 < value <= 1
        ]
        if not sharpness >= 1:
            problems.append(Problem("must be 1 or more", key="sharpness", value=repr(sharpness)))
        if not (math.isfinite(self.overhead) and self.overhead >= 0):
            problems.append(Problem("must be a finite time, 0 or more", key="overhead", value=repr(self.overhead)))
        if problems:
            raise InputError(problems)
        self._attention: dict[str, AttentionKernels] = {}

    @classmethod
    def sharp(cls, device: GpuRates, *, overhead: float = 0.0) -> Roofline:
        """Make the textbook roofline: peaks fully reached, a sharp corner, nothing wasted."""
        return cls(device, sharpness=math.inf, efficiency={}, quantisation=False, overhead=overhead)

    def peak(self, dtype: str, *, family: str = "gemm") -> float:
        """Rate of arithmetic that the catalogue gives for a precision and family [FLOP/s].

        Matrix products use the matrix units; everything else the vector units, whose rate in
        half precision is that of ``fp16-vector`` if the part has it, else of fp32.
        """
        names = (dtype,) if family in MATRIX_FAMILIES else _VECTOR.get(dtype, (dtype,))
        for name in names:
            if name in self.device.peak:
                return self.device.peak[name]
        message = f"{self.device.name} has no {dtype} arithmetic{nearest(dtype, self.device.peak)}"
        raise InputError(Problem(message, key="dtype", value=repr(dtype)))

    def rates(self, op: Op) -> tuple[float, float]:
        """Reachable rates of arithmetic [FLOP/s] and of memory [B/s] for `op`.

        The efficiency of a matrix family scales the arithmetic, and its memory traffic runs at that of
        elementwise kernels; the efficiency of any other family scales its memory traffic.
        """
        compute = self.peak(op.dtype, family=op.family)
        if op.family in MATRIX_FAMILIES:
            saved = self._saved(op)
            if saved > 1.0:  # its tiles are of the image
                compute *= saved * WINOGRAD_SHARE
            else:
                compute *= self._matrix_share(op)
                if self._quantisation and op.gemm is not None:
                    compute *= self._tiling(op.gemm, op).efficiency
        return compute, self._memory_rate(op)

    def ridge(self, op: Op) -> float:
        """Arithmetic intensity at which `op`'s regime changes: peak over bandwidth [FLOP/B]."""
        compute, memory = self.rates(op)
        return compute / memory

    def floor(self, op: Op) -> float:
        """Time that no kernel can beat: flops / peak and bytes / bandwidth, the larger [s]."""
        if op.converted:
            plain = replace(op, converted=0.0)
            return min(self.floor(plain), self.floor(replace(plain, dtype="fp32")))
        compute = op.flops / self.peak(op.dtype, family=op.family) / self._saved(op) if op.flops else 0.0
        return max(compute, op.nbytes / self.device.memory_bandwidth)

    def _saved(self, op: Op) -> float:
        """How many times fewer multiplications a kernel has than its definition [1]."""
        return fewer_products(op) if self._quantisation else 1.0

    def _matrix_share(self, op: Op) -> float:
        """Share of the peak of a matrix family; a convolution of single pixels is a matrix product."""
        return self._share("gemm" if op.window == 1 else op.family, op.dtype, otherwise="gemm")

    def demand(self, op: Op) -> float:
        """Fraction of the device that `op` can fill: tiles or threads over what fits at once.

        Where it was measured how much of a multiprocessor a tile holds, and how many kernels run side by side at most,
        it is that share of the tiles, and at least one over that number.
        """
        sms = max(1, self.device.sms)
        least = 1.0 / getattr(self.device, "side_by_side", math.inf)
        if op.gemm is not None:
            held = getattr(self.device, "block_share", None)
            return min(1.0, max(least, self._tiling(op.gemm, op).tiles / sms * (1.0 if held is None else held)))
        if op.elements <= 0:
            return 1.0
        return min(1.0, max(op.elements / (sms * THREADS_PER_SM), 1.0 / sms, least))

    def units(self, op: Op) -> MatrixUnits | None:
        """Matrix units that `op`'s product finds on the device, if its architecture has constants for them.

        Batched or not, a product takes its precision's share of the peak; a convolution less, by what its family
        reaches over products. In a long run (`Op.reuse` infinite) the clock is what the board's power sustains: power
        goes as the cube of the clock, so a board with less for each multiprocessor than holds the full clock runs at
        the cube root of that share. Rows that are no multiple of 16 bytes have kernels of their own: at the
        architecture's share `unaligned` of the rate where they are a multiple of two or odd, and in between by powers
        of two.
        Of limited matrix units all this is a share of their full rate (`peak_share`).
        Where an efficiency of the family was given instead of the device's, it holds.
        """
        known = getattr(self.device, "product", None)
        block = op.kind == BLOCK_SCALED
        share = known.get(_BLOCK_RATES.get(op.dtype, op.dtype) if block else op.dtype) if known else None
        if not known or share is None or op.gemm is None or op.family not in ("gemm", "conv") or not self._quantisation:
            return None
        keys = [f"{family}{of}" for family in {op.family, "gemm"} for of in ("", f"-{op.dtype}")]
        if any(self._efficiency.get(key) != self.device.efficiency.get(key) for key in keys):
            return None
        from simperf.cost.products import MatrixUnits

        device, sms = self.device, max(1, self.device.sms)
        if op.alignment < ALIGNED:
            share *= known.get("unaligned", 1.0) ** (math.log2(ALIGNED / max(2, op.alignment)) / math.log2(ALIGNED / 2))
        if op.family == "conv":
            share *= self._matrix_share(op) / self._share("gemm", op.dtype, otherwise="gemm")
        power = getattr(device, "power", None)
        if power is not None and "power" in known and math.isinf(op.reuse):
            share *= min(1.0, power / sms / known["power"]) ** (1.0 / 3.0)
        return MatrixUnits(
            rate=peak_share(share, device) * self.peak(op.dtype),
            sms=sms,
            fixed=(known["fixed"] + known.get(f"{op.dtype}-fixed", 0.0)) / (pace := known.get("pace", 1.0)),
            fill=known["fill"] / pace,
            waves=known["waves"],
            memory=known["memory"] * device.memory_bandwidth,
            bandwidth=device.memory_bandwidth,
            l2=getattr(device, "l2", 0.0) or 1.0,
            block=block,
            pace=pace,
        )

    def accounts(self, op: Op) -> frozenset[str]:
        """Effects in the cost of `op`: ``"clock"`` under the board's power, ``"cache"``: operands in the L2."""
        found = set()
        units = self.units(op)
        known = getattr(self.device, "product", {})
        if units is not None and math.isinf(op.reuse) and "power" in known and getattr(self.device, "power", None):
            found.add("clock")
        shaped = units is not None or (op.experts is not None and self._quantisation) or self.attention_library(op)
        if math.isfinite(op.reuse) and shaped:
            found.add("cache")
        return frozenset(found)

    def cost(self, op: Op) -> OpCost:
        """Cost of `op` alone on the device."""
        if op.converted:
            share = self._share("copy", op.dtype, otherwise="elementwise")
            return converted_cost(op, self.cost, self.device.memory_bandwidth * share)
        if self._quantisation and is_recurrence(op):
            return recurrence_cost(op, self.cost, self.overhead)
        if op.family == "attention" and (found := self._by_shape(op)) is not None:
            return found
        if op.experts is not None and self._quantisation:
            from simperf.cost.experts import expert_cost

            return expert_cost(op, op.experts, self.device, peak=self.peak(op.dtype))
        units = self.units(op)
        if units is not None and op.gemm is not None:
            from simperf.cost.products import ProductTime, product_time

            gemm = op.gemm
            batch, nbytes = gemm.batch * op.turns, op.nbytes * op.turns
            times = product_time(batch, gemm.m, gemm.n, gemm.k, nbytes=nbytes, units=units, reuse=op.reuse)
            times = ProductTime(*(one / op.turns for one in (times.time, times.arithmetic, times.traffic)))
            return self._product(op, times, units.fixed)
        if op.kind in SCALING_KINDS and "scaling" in (known := getattr(self.device, "product", {})):
            return self._scaling(op, known)
        compute_rate, memory_rate = self.rates(op) if op.flops else (math.inf, self._memory_rate(op))
        compute, memory = op.flops / compute_rate, op.nbytes / memory_rate
        high, low = max(compute, memory), min(compute, memory)
        body = high
        if low > 0 and math.isfinite(self.sharpness):
            body = high * (1.0 + (low / high) ** self.sharpness) ** (1.0 / self.sharpness)
        return OpCost(
            time=max(body, self.floor(op)) + self.overhead,
            compute_time=compute,
            memory_time=memory,
            overhead=self.overhead,
            regime=regime_of(compute, memory, self.overhead),
            flops=op.flops,
            nbytes=op.nbytes,
            demand=self.demand(op),
        )

    def attention_library(self, op: Op) -> str:
        """Library whose kernels cost an attention; empty where its family's efficiency does.

        Raises
        ------
        InputError
            The operation names one, and an efficiency was given for attention, or the roofline is the textbook's.
        """
        if op.family != "attention":
            return ""
        flat = not self._quantisation or {"attention", f"attention-{op.dtype}"} & self._efficiency.keys()
        if not flat:
            if _named(op):
                return op.library
            default = "flash-attention"
            chosen = ATTENTION_CHOOSERS.get(op.library, {}).get(getattr(self.device, "architecture", ""), default)
            known = getattr(self.device, "attention", ())
            return chosen if any(key.startswith(f"{chosen}.") for key in known) else ""
        if _named(op):
            message = "attention is costed by an efficiency here, which no library has an effect on"
            expected = "no efficiency of attention, a smooth corner, and fp16, bf16 or fp8"
            raise InputError(Problem(message, key="library", value=repr(op.library), expected=expected))
        return ""

    def _by_shape(self, op: Op) -> OpCost | None:
        """Cost of attention by its shape, unless an efficiency was given for it or no kernel serves it."""
        library = self.attention_library(op)
        if not library:
            return None
        if library not in self._attention:
            from simperf.cost.attention import AttentionKernels

            memory = self.device.memory_bandwidth * self._share("elementwise", "fp32", otherwise="elementwise")
            self._attention[library] = AttentionKernels(
                self.device, memory=memory, floor=self.overhead, library=library
            )
        warm = math.isfinite(op.reuse)
        found = self._attention[library].cost(op, warm=warm)
        if found is None and _named(op):
            message = f"{library} has no kernel for this attention: its scores stay on chip, in fp16, bf16 or fp8"
            raise InputError(
                Problem(
                    message, key="library", value=repr(library), expected="no library, or a type of 2 bytes or less"
                )
            )
        least = (op.flops / self.peak(op.dtype, family=op.family) if warm else self.floor(op)) + self.overhead
        return found if found is None or found.time >= least else replace(found, time=least)

    def _scaling(self, op: Op, known: Mapping[str, float]) -> OpCost:
        """Cost of a kernel that finds or applies the factors of a scaled product: it streams."""
        memory = op.nbytes / (known["scaling"] * self.device.memory_bandwidth)
        fixed = known["scaling-fixed"] / known.get("pace", 1.0) if "scaling-fixed" in known else self.overhead
        regime = "overhead" if fixed > memory else "memory"
        return OpCost(fixed + memory, 0.0, memory, fixed, regime, op.flops, op.nbytes, self.demand(op))

    def _product(self, op: Op, found: ProductTime, fixed: float) -> OpCost:
        """Cost of a product on matrix units; no faster than the peak allows, nor than memory for what is not cached."""
        least = op.flops / self.peak(op.dtype) + fixed if math.isfinite(op.reuse) else self.floor(op) + fixed
        return OpCost(
            time=max(found.time, least),
            compute_time=found.arithmetic,
            memory_time=found.traffic,
            overhead=fixed,
            regime=regime_of(found.arithmetic, found.traffic, fixed),
            flops=op.flops,
            nbytes=op.nbytes,
            demand=self.demand(op),
        )

    def _tiling(self, gemm: Gemm, op: Op) -> Tiling:
        """How `op`'s product is cut: by the library's one tile, if that is known, else in the best way."""
        tile = library_tile(op, self.device)
        gemm = replace(gemm, batch=gemm.batch * op.turns) if op.turns > 1 else gemm
        return tiling(gemm, max(1, self.device.sms), least=tile or (0, 0), only=tile is not None)

    def _memory_rate(self, op: Op) -> float:
        family = "elementwise" if op.family in MATRIX_FAMILIES else op.family
        if op.kind.startswith("batchnorm"):  # statistics of a channel, then results: two passes, which its traffic has
            family = "reduction"
        return self.device.memory_bandwidth * self._share(family, op.dtype, otherwise="elementwise")

    def _share(self, family: str, dtype: str, *, otherwise: str) -> float:
        """Efficiency of a family in a precision: ``family-precision`` before ``family``."""
        for key in (f"{family}-{dtype}", family, f"{otherwise}-{dtype}", otherwise):
            if key in self._efficiency:
                return self._efficiency[key]
        return 1.0


def _named(op: Op) -> bool:
    """Whether an attention names the library whose kernel it is, and does not leave it to what calls it."""
    return bool(op.library) and op.library not in ATTENTION_CHOOSERS
