"""Matrix products, as `simperf.cost.formulas` has them: tiles and waves, half sizes, memory, and the board's power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model
from simperf.cost import GpuRates, tiling
from simperf.cost.fitted import TILED
from simperf.cost.formulas import MatrixConstants, matrix_time
from simperf.cost.tiles import LOADING, loading
from simperf.workload.op import Gemm

__all__ = [
    "COLUMNS",
    "CORNERS",
    "CUTS",
    "LEAST",
    "Cut",
    "Roof",
    "limited_model",
    "matrix_model",
    "matrix_seconds",
    "pooled_limited_model",
    "power_limited",
    "product_columns",
    "product_models",
]

#: half sizes of a matrix product that are searched [1]
_HALF = 4096.0
#: smallest tiles that a library may have, height and width: of 32 x 32 it has all
LEAST = ((32, 32), (64, 32), (32, 64), (64, 64), (128, 32), (32, 128), (128, 64), (64, 128), (128, 128))
#: length of a sum at which rows of operands fill a page of memory each (64 KiB, the smallest that a GPU maps)
_LONG = 16384.0
#: tiles that a library may have alone, as for batches of fp32 products (the names of kernels in NeuSight's tables:
#: 64 x 128 on P100 and T4, 128 x 128 on A100 and L4); of a height and a width
_ALONE = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 32), (32, 128))
#: exponents of the roofline's corner that are tried: arithmetic hides traffic, hides part of it, or none
CORNERS = (8.0, 2.0, 1.0)
#: share of the peak that large products reach where nothing but arithmetic holds them back (see `simperf.cost.tiles`)
_REACHED = 0.93
#: power for a rate of fp32 arithmetic below which a board cannot keep its clock up [W / (FLOP/s)]. Of the GPUs in the
#: catalogue T4 has 8.6, L4 2.4 W for each TFLOP/s; those that reach their peak have 10.5 (H100) to 27 (P100).
_ENOUGH = 10e-12


@dataclass(frozen=True, slots=True)
class Cut:
    """Tiles that a library has for products.

    Parameters
    ----------
    height, width : int
        Of the smallest.
    only : bool
        Whether it has no others.
    """

    height: int
    width: int
    only: bool = False

    @property
    def column(self) -> str:
        """Of `product_columns`: what these tiles leave of the rate."""
        plain = (self.height, self.width) == LEAST[0] and not self.only
        return "share" if plain else f"share {'only ' if self.only else ''}{self.height}x{self.width}"

    @property
    def constants(self) -> dict[str, float]:
        """For a profile, as `simperf.cost.fitted` reads them."""
        tile = {} if self.column == "share" else {"tile_m": float(self.height), "tile_n": float(self.width)}
        return {"tiled": 1.0} | tile | ({"tile_only": 1.0} if self.only else {})

    @classmethod
    def of(cls, constants: Mapping[str, float]) -> Cut:
        """From the constants of a profile."""
        height, width = constants.get("tile_m", LEAST[0][0]), constants.get("tile_n", LEAST[0][1])
        return cls(int(height), int(width), only=constants.get("tile_only", 0.0) > 0)


#: all choices of tiles, those of several before those of one
CUTS = (*(Cut(*least) for least in LEAST), *(Cut(*tile, only=True) for tile in _ALONE))


@dataclass(frozen=True, slots=True)
class Roof:
    """Limits of a product's rate, and how they meet.

    Parameters
    ----------
    peak : float
        Of the data sheet, which no fitted rate exceeds [FLOP/s].
    memory : float
        Rate of memory [B/s]; zero leaves traffic out.
    sharpness : float
        Exponent of the roofline's corner; 1 adds arithmetic and traffic.
    """

    peak: float = np.inf
    memory: float = 0.0
    sharpness: float = CORNERS[0]


def power_limited(part: GpuRates, dtype: str = "fp32") -> bool:
    """Whether a board has too little power for its clock, by its data sheet."""
    power, peak = getattr(part, "power", None), part.peak.get("fp32", 0.0)
    return dtype == "fp32" and bool(power) and peak > 0 and float(power or 0.0) / peak < _ENOUGH


def product_columns(gemms: Sequence[Gemm], part: GpuRates | None, *, dtype: str = "fp32") -> dict[str, Array]:
    """Columns for `product_models`: ``m``, ``n``, ``k``, and what each choice of tiles leaves of the rate."""
    found = {key: np.array([float(getattr(gemm, key)) for gemm in gemms]) for key in "mnk"}
    if part is None:
        return found | {"share": np.ones(len(gemms))}
    half = loading(part, dtype)
    for cut in CUTS:
        least = (cut.height, cut.width)
        cuts = (tiling(gemm, part.sms, least=least, only=cut.only, half=half) for gemm in gemms)
        found[cut.column] = np.array([one.efficiency for one in cuts])
    return found


def product_models(
    name: str, title: str, part: GpuRates | None, *, dtype: str = "fp32", overhead: float | None = None
) -> list[Model]:
    """All models of products that `simperf.cost` simulates, the plain ones first; the strict criterion chooses.

    No rate can exceed the peak of the data sheet.

    Parameters
    ----------
    name, title : str
    part : GpuRates, optional
        The GPU, for its multiprocessors, memory and power.
    dtype : str
    overhead : float, optional
        A fixed time that is known [s]; models with it and with a fitted one are both there.
    """
    plain: list[dict[str, Any]] = [{"faces": faces} for faces in ("", "k", "m", "n", "mnk")]
    choices = [*plain, *({"faces": faces, "deep": True} for faces in ("mnk", "", "k"))]
    choices.append({"faces": "", "deep": True, "strips": True})
    if part is None:
        return [matrix_model(name, title, **choice) for choice in choices]
    peak, half = part.peak.get(dtype, np.inf), loading(part, dtype)
    roof = Roof(peak, part.memory_bandwidth * part.efficiency.get("elementwise", 1.0))
    given: dict[str, Any] = {"overhead": overhead, "half": half}
    found = [
        matrix_model(name, title, faces=faces, roof=replace(roof, sharpness=sharpness), cut=cut, host=host, **given)
        for sharpness in CORNERS
        for cut in CUTS
        for faces in ("", "k")
        for host in ((False,) if overhead is None else (False, True))
    ]
    found += [
        matrix_model(name, title, faces="", roof=roof, cut=cut, deep=True, strips=strips, **given)
        for strips in (False, True)
        for cut in CUTS
    ]
    if power_limited(part, dtype):
        found += [limited_model(name, title, part, cut=cut, overhead=overhead) for cut in CUTS]
    given = {"roof": Roof(peak, part.memory_bandwidth), "cut": CUTS[0], "half": half}
    return found + [matrix_model(name, title, **choice, **given) for choice in choices]


def matrix_model(
    name: str,
    title: str,
    *,
    faces: str = "mnk",
    roof: Roof = Roof(),
    deep: bool = False,
    strips: bool = False,
    cut: Cut | None = None,
    half: float = LOADING,
    overhead: float | None = None,
    host: bool = False,
) -> Model:
    """Time over work and shape: matrix product, convolution, attention.

    Parameters
    ----------
    name, title : str
    faces : str
        Dimensions whose smallness costs: any of ``"m"``, ``"n"``, ``"k"``.
    roof : Roof
        What is known of the rates.
    deep, strips : bool
        Also fit the loss of long sums, and how it grows with the strips of the result.
    cut : Cut, optional
        Tiles that the library has: they and their waves are counted before (column `share`); if left out, they are not.
    half : float
        How fast the tiles load (`simperf.cost.tiles.loading`).
    overhead : float, optional
        A fixed time that is known, instead of a fitted one [s].
    host : bool
        Also fit `floor`, what a call takes on the host at least.
    """
    constants = [FitConstant("rate", 1e12, low=1e6, high=min(roof.peak, 1e18), unit="FLOP/s")]
    if overhead is None:
        constants.append(FitConstant("overhead", 5e-6, high=1.0))
    constants += [FitConstant(f"half_{face}", 10.0, high=_HALF, unit="1") for face in faces]
    if host:
        constants.append(FitConstant("floor", 2e-5, high=1.0))
    if deep:
        constants.append(FitConstant("deep", 0.2, high=10.0, unit="1"))
    if strips:
        constants.append(FitConstant("deep_m", 1024.0, low=128.0, high=16384.0, unit="1"))
    fixed = (cut.constants if cut is not None else {}) | ({"deep_at": _LONG} if deep else {})
    if cut is not None and half != LOADING:
        fixed["tile_half"] = half
    if roof.sharpness != CORNERS[0]:
        fixed["sharpness"] = roof.sharpness
    if roof.memory:
        fixed["memory"] = roof.memory
    fixed |= {} if overhead is None else {"overhead": overhead}
    return Model(name, title, tuple(constants), matrix_seconds, fixed=fixed, starts=_starts, columns=COLUMNS)


#: that the models of products read, beside those of `product_columns`
COLUMNS = ("flops", "nbytes", "m", "n", "k", "share")


def limited_model(
    name: str,
    title: str,
    part: GpuRates,
    *,
    cut: Cut = CUTS[0],
    sharpness: float = 2.0,
    overhead: float | None = None,
    byte_energy: float | None = None,
    lag: float | None = None,
) -> Model:
    """Products on a board that has too little power for its clock: energy of arithmetic and traffic at that power.

    Parameters
    ----------
    name, title : str
    part : GpuRates
        With its `power`.
    cut : Cut
        Tiles that the library has.
    sharpness : float
        Exponent of the corner, as of a `Roof`.
    overhead, byte_energy, lag : float, optional
        What is known: a fixed time [s], the energy of a byte [J/B], and for how long the board runs above its limit
        before it slows down [s]. With a known overhead `floor` is fitted, too.
    """
    power = float(getattr(part, "power", None) or 0.0)
    memory = part.memory_bandwidth * part.efficiency.get("elementwise", 1.0)
    fixed = cut.constants | {
        "rate": _REACHED * part.peak["fp32"],
        "memory": memory,
        "power": power,
        "sharpness": sharpness,
    }
    constants = [FitConstant("flop_energy", 1e-11, low=1e-14, high=1e-9, unit="J/FLOP")]
    if byte_energy is None:
        # a kernel that only moves bytes reaches the memory's rate within the limit of the board
        constants.append(FitConstant("byte_energy", 1e-10, high=power / memory, unit="J/B"))
    else:
        fixed["byte_energy"] = byte_energy
    if lag is None:
        constants.append(FitConstant("stored", 0.1, high=1e3, unit="J"))
    else:
        fixed["stored"] = lag * power
    if overhead is None:
        constants.append(FitConstant("overhead", 5e-6, high=1.0))
    else:
        fixed["overhead"] = overhead
        constants.append(FitConstant("floor", 2e-5, high=1.0))

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        floor = float(data.measured.min())
        energy = float(np.median(data.measured * power / data.columns["flops"]))
        return [
            {
                "flop_energy": share * energy,
                "byte_energy": byte,
                "stored": stored,
                "floor": floor,
                "overhead": 0.5 * floor,
            }
            for share, byte, stored in ((0.8, 1e-10, 0.2), (0.8, 1e-10, 0.01), (0.4, 2e-10, 0.1))
        ]

    return Model(name, title, tuple(constants), matrix_seconds, fixed=fixed, starts=starts, columns=COLUMNS)


def pooled_limited_model(
    name: str, title: str, parts: Sequence[GpuRates], *, cuts: Sequence[Cut], sharpness: float
) -> Model:
    """Products on several boards of too little power: what a byte takes, and for how long more is granted, are shared.

    Column ``gpu`` counts the boards from zero; column ``fixed`` is the time that is known [s].
    """
    energies = [FitConstant(f"flop_energy_{i}", 1e-11, low=1e-14, high=1e-9, unit="J/FLOP") for i in range(len(parts))]
    floors = [FitConstant(f"floor_{i}", 2e-5, high=1.0) for i in range(len(parts))]
    known = [
        limited_model(name, title, part, cut=cut, sharpness=sharpness, overhead=0.0).fixed
        for part, cut in zip(parts, cuts, strict=True)
    ]
    most = min(fixed["power"] / fixed["memory"] for fixed in known)
    shared = [FitConstant("byte_energy", 1e-10, high=most, unit="J/B"), FitConstant("lag", 3e-3, high=1.0)]

    def every(values: Mapping[str, float], columns: Columns) -> Array:
        found = np.zeros(len(columns["flops"]))
        for i, fixed in enumerate(known):
            here = columns["gpu"] == i
            one = {"flop_energy": values[f"flop_energy_{i}"], "byte_energy": values["byte_energy"]}
            given = {**fixed, **one, "stored": values["lag"] * fixed["power"]}
            body = columns["fixed"][here] + matrix_seconds(
                given, {key: column[here] for key, column in columns.items()}
            )
            found[here] = np.maximum(body, values[f"floor_{i}"])
        return found

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        found: dict[str, float] = {}
        for i, fixed in enumerate(known):
            here = data.columns["gpu"] == i
            energy = data.measured[here] * fixed["power"] / data.columns["flops"][here]
            found |= {
                f"flop_energy_{i}": 0.8 * float(np.median(energy)),
                f"floor_{i}": float(data.measured[here].min()),
            }
        return [{**found, "byte_energy": byte, "lag": lag} for byte in (1e-10, 2e-10) for lag in (1e-3, 5e-3)]

    columns = (*COLUMNS, "gpu", "fixed")
    corner = {"sharpness": sharpness}
    return Model(name, title, (*shared, *energies, *floors), every, fixed=corner, starts=starts, columns=columns)


def matrix_seconds(values: Mapping[str, Any], columns: Columns) -> Array:
    """`simperf.cost.formulas.matrix_time` of columns, with the tiles that `values` name [s]."""
    sizes: tuple[Any, ...] = tuple(columns[key] for key in ("flops", "nbytes", "m", "n", "k"))
    constants = MatrixConstants(**{key: value for key, value in values.items() if key not in TILED})
    return np.asarray(matrix_time(constants, *sizes, share=columns[Cut.of(values).column]))


def _starts(data: Data) -> Sequence[Mapping[str, float]]:
    rate = float(np.quantile(data.columns["flops"] / data.columns["share"] / data.measured, 0.9))
    floor = float(data.measured.min())
    return [
        {
            "rate": 1.1 * rate,
            "overhead": share * floor,
            "half_m": half,
            "half_n": half,
            "half_k": half,
            "deep": deep,
            "floor": floor,
        }
        for share, half, deep in ((0.3, 10.0, 0.5), (0.8, 100.0, 0.05))
    ]
