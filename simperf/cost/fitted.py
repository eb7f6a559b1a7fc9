"""Costs from constants that were fitted to measurements, and from the catalogue where there are none."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from simperf.cost.formulas import MatrixConstants, matrix_time, row_time, stream_time
from simperf.cost.processor import COLD, processor_time
from simperf.cost.roofline import Roofline
from simperf.cost.rows import pressure, row_launch
from simperf.cost.seams import GpuRates, OpCost
from simperf.cost.tiles import LOADING, tiling
from simperf.errors import InputError, Problem
from simperf.workload.layer_kernels import ATTENTION_CHOOSERS
from simperf.workload.op import MATRIX_FAMILIES, Gemm, Op
from simperf.workload.precision import element_size

if TYPE_CHECKING:
    from simperf.cost.roofline_draws import UnseenRoofline

__all__ = ["TILED", "FittedRoofline"]

#: constants that say how a product is cut into tiles: whether it is, the least height and width of a tile, and whether
#: that is the only tile; and the height of a tile at which loading takes as long as multiplying
TILED = ("tiled", "tile_m", "tile_n", "tile_only", "tile_half")


def _tile_share(gemm: Gemm, sms: int, constants: Mapping[str, float]) -> float:
    """What tiles and waves leave of a device's rate, as fitted `constants` have it [1]."""
    if not constants.get("tiled", 0.0) > 0:
        return 1.0
    least = (int(constants.get("tile_m", 0.0)), int(constants.get("tile_n", 0.0)))
    only, half = constants.get("tile_only", 0.0) > 0, constants.get("tile_half", LOADING)
    return tiling(gemm, sms, least=least, only=only, half=half).efficiency


class FittedRoofline:
    """Cost of one operation from the constants of a profile.

    Parameters
    ----------
    device : GpuRates
        The GPU part that was measured.
    kernels : mapping of str to mapping of str to float
        Constants of `simperf.cost.formulas` by ``"family-precision:kind"``, ``"family-precision"`` or ``"family"``; the
        first that is there holds; the kind of attention with many queries is its library; those of experts are
        ``"moe-precision"``. ``tiled`` above zero says that tiles and waves were counted in the fit, ``tile_m``,
        ``tile_n`` and ``tile_only`` which tiles the library has, ``tile_half`` how fast they load. ``lattice``
        above zero says that the others are factors of `other`'s times by shape, and spreads about these
        (`simperf.cost.lattice`), drawn where there is a ``draw``.
    other : Roofline, optional
        For operations that have no constants, and what factors correct; default: `Roofline` on the device.
    unseen : UnseenRoofline, optional
        Costs operations without constants in place of `other`: they are drawn where the constants are, too.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> from simperf.workload.kinds import unary
    >>> gpu = Catalog.load().gpu("v100-sxm2-16gb")
    >>> model = FittedRoofline(gpu, {"elementwise": {"overhead": 1e-6, "rate": 800e9}})
    >>> round(model.cost(unary("relu", 10**8)).time * 1e6)
    1001
    """

    __slots__ = ("_matrix", "_other", "_unseen", "device", "kernels")

    def __init__(
        self,
        device: GpuRates,
        kernels: Mapping[str, Mapping[str, float]],
        *,
        other: Roofline | None = None,
        unseen: UnseenRoofline | None = None,
    ) -> None:
        self.device, self.kernels = device, kernels
        for name, constants in kernels.items():
            if constants.get("lattice", 0.0) > 0:
                from simperf.cost.lattice import verify_lattice

                verify_lattice(name, constants)
        self._matrix: dict[str, MatrixConstants] = {}
        self._other = Roofline(device) if other is None else other
        self._unseen = unseen

    def key(self, op: Op) -> str | None:
        """Name of the constants that hold for `op`, the most special first; None if there are none."""
        if op.experts is not None:
            return name if (name := f"moe-{op.experts.precision}") in self.kernels else None
        if op.family in MATRIX_FAMILIES and op.gemm is None:
            return None
        kind = op.kind.removesuffix(COLD)
        if kind == "attention" and any(name.startswith("attention-") and ":" in name for name in self.kernels):
            decodes = op.gemm is not None and op.gemm.m == 1
            kind = "" if decodes else self._other.attention_library(op)
        keys = (f"{op.family}-{op.dtype}:{kind}", f"{op.family}-{op.dtype}", op.family)
        return next((key for key in keys if key in self.kernels), None)

    @property
    def processor(self) -> bool:
        """Whether the constants are those of a CPU, which runs a traced step in its own way."""
        return any(constants.get("processor", 0.0) > 0 for constants in self.kernels.values())

    @property
    def corrects(self) -> bool:
        """Whether constants are factors of the catalogue's times by shape."""
        return any(constants.get("lattice", 0.0) > 0 for constants in self.kernels.values())

    def accounts(self, op: Op) -> frozenset[str]:
        """Effects that the cost of `op` accounts for, as `Roofline.accounts`: none where constants are its own."""
        key, other = self.key(op), self._other
        return other.accounts(op) if key is None or self.kernels[key].get("lattice", 0.0) > 0 else frozenset()

    def step(self, model: str, precision: str) -> float:
        """Time of a training step over that of its kernels [1], see `simperf.cost.Unseen.step`."""
        return 1.0 if self._unseen is None else self._unseen.step(model, precision)

    def cost(self, op: Op) -> OpCost:
        """Cost of `op` alone on the device."""
        key = self.key(op)
        if key is None:
            return (self._unseen or self._other).cost(op)
        found = self.kernels[key]
        if op.library and op.library not in ATTENTION_CHOOSERS and not found.get("lattice", 0.0) > 0:
            message = "the profile's constants of attention are of what was measured, which no library has an effect on"
            expected = "a profile without constants of attention"
            raise InputError(Problem(message, key="library", value=repr(op.library), expected=expected))
        if found.get("processor", 0.0) > 0:
            return self._processor(op, found)
        if found.get("lattice", 0.0) > 0:
            return self._corrected(op, key, found)
        # kernels that follow one another have no energy in store, and the host is simulated
        known = {key: value for key, value in found.items() if key not in (*TILED, "stored", "floor")}
        overhead = known.get("overhead", 0.0)
        if op.family in MATRIX_FAMILIES and op.gemm is not None:
            gemm = op.gemm
            share = _tile_share(replace(gemm, batch=gemm.batch * op.turns), self.device.sms, found)
            memory = op.nbytes / known["memory"] if "memory" in known else 0.0
            constants = self._matrix.get(key) or self._matrix.setdefault(key, MatrixConstants(**known))
            time = float(matrix_time(constants, op.flops, op.nbytes, gemm.m, gemm.n, gemm.k, share=share))
            compute = op.flops / known["rate"] / share
        else:
            compute = 0.0
            time = self._rows(op, known) if "kept" in known else float(stream_time(op.nbytes, **known))
            memory = time - overhead
        other = self._other.cost(op)
        regime = "overhead" if overhead > time - overhead else "compute" if compute >= memory else "memory"
        return OpCost(time, compute, memory, overhead, regime, op.flops, op.nbytes, other.demand)

    def attention_library(self, op: Op) -> str:
        """Library whose kernels cost an attention where the profile has no constants of it; empty elsewhere."""
        return "" if self.key(op) is not None else self._other.attention_library(op)

    def _corrected(self, op: Op, key: str, found: Mapping[str, float]) -> OpCost:
        """Cost by the catalogue's constants times a factor of the shape (`simperf.cost.lattice`)."""
        from simperf.cost.lattice import correction, lattice_kind, op_sizes, spread_at

        cost, sizes = self._other.cost(op), op_sizes(op)
        if sizes is None:
            return cost
        kind = lattice_kind(key)
        factor = correction(sizes, found, kind)
        draw = int(found.get("draw", 0.0))
        if draw > 0 and "alike" in found:
            from simperf.cost.lattice_draws import drawn_factor

            spread, about = spread_at(sizes, found, kind), f"{self.device.name} {key}"
            factor *= drawn_factor(sizes, spread=spread, alike=found["alike"], draw=draw, about=about)
        time = cost.time * factor
        if factor < 1.0:
            # factors that no measured shape lies near go on as their neighbours do, and those of operands in the L2
            # meet operands in memory: neither may beat the device
            time = max(time, min(cost.time, self._least(op)))
        return replace(
            cost,
            time=time,
            compute_time=cost.compute_time * factor,
            memory_time=cost.memory_time * factor,
            overhead=cost.overhead * factor,
        )

    def _least(self, op: Op) -> float:
        """Time that no kernel can beat: its arithmetic, and its traffic where operands come from memory [s]."""
        roofline = Roofline(self.device)
        return op.flops / roofline.peak(op.dtype, family=op.family) if math.isfinite(op.reuse) else roofline.floor(op)

    def _rows(self, op: Op, known: Mapping[str, float]) -> float:
        """Time of a kernel on rows; of rows whose length is unknown none is read again."""
        launch = row_launch(op.kind, int(op.row), element_size(op.dtype))
        return float(row_time(op.nbytes, pressure(op, self.device), launch.again, launch.tail, **known))

    def _processor(self, op: Op, found: Mapping[str, float]) -> OpCost:
        """Cost by the forms of a CPU, which runs one operation at a time: it fills the device."""
        time, overhead = processor_time(op, found), found.get("overhead", 0.0)
        compute = op.flops / found["rate"] if op.gemm is not None else 0.0
        body = max(0.0, time - overhead)
        regime = "overhead" if overhead > body else "compute" if compute > 0.5 * body else "memory"
        return OpCost(time, min(compute, body), body, overhead, regime, op.flops, op.nbytes)
