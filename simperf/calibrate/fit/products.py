"""Matrix products, as `simperf.cost.formulas` has them: tiles and waves, half sizes, memory, and the board's power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Constant, Data, Model
from simperf.cost import Device, tiling
from simperf.cost.fitted import TILED
from simperf.cost.formulas import matrix_time
from simperf.workload.op import Gemm

__all__ = [
    "CORNERS",
    "LEAST",
    "efficiency_models",
    "limited_model",
    "matrix_model",
    "pooled_limited_model",
    "power_limited",
    "product_columns",
    "product_models",
]

#: half sizes of a matrix product that are searched [1]
_HALF = 4096.0
#: smallest tiles that a library may have, height and width: of 32 x 32 it has all
LEAST = ((32, 32), (64, 32), (32, 64), (64, 64), (128, 32), (32, 128), (128, 64), (64, 128), (128, 128))
#: exponents of the roofline's corner that are tried: arithmetic hides traffic, hides part of it, or none
CORNERS = (8.0, 2.0, 1.0)
#: share of the peak that large products reach where nothing but arithmetic holds them back (see `simperf.cost.tiles`)
_REACHED = 0.93
#: power for a rate of fp32 arithmetic below which a board cannot keep its clock up [W / (FLOP/s)]. Of the GPUs in the
#: catalogue T4 has 8.6, L4 2.4 W for each TFLOP/s; those that reach their peak have 10.5 (H100) to 27 (P100).
_ENOUGH = 10e-12


def power_limited(part: Device, dtype: str = "fp32") -> bool:
    """Whether a board has too little power for its clock, by its data sheet."""
    power, peak = getattr(part, "power", None), part.peak.get("fp32", 0.0)
    return dtype == "fp32" and bool(power) and peak > 0 and float(power or 0.0) / peak < _ENOUGH


def product_columns(gemms: Sequence[Gemm], part: Device | None) -> dict[str, Array]:
    """Columns for `product_models`: ``m``, ``n``, ``k``, and what each choice of tiles leaves of the rate."""
    found = {key: np.array([float(getattr(gemm, key)) for gemm in gemms]) for key in "mnk"}
    if part is None:
        return found | {"share": np.ones(len(gemms))}
    for least in LEAST:
        shares = [tiling(gemm, part.sms, least=least).efficiency for gemm in gemms]
        found["share" if least == LEAST[0] else _share(*least)] = np.array(shares)
    return found


def _share(height: float, width: float) -> str:
    return f"share {height:g}x{width:g}"


def product_models(
    name: str, title: str, part: Device | None, *, dtype: str = "fp32", overhead: float | None = None
) -> list[Model]:
    """All models of products that `simperf.cost` plays, the plain ones first: the strict criterion chooses among them.

    No rate can exceed the peak of the data sheet.

    Parameters
    ----------
    name, title : str
    part : Device, optional
        The GPU, for its multiprocessors, memory and power.
    dtype : str
    overhead : float, optional
        A fixed time that is known [s]; models with it and with a fitted one are both there.
    """
    choices = (
        ("", False),
        ("k", False),
        ("m", False),
        ("n", False),
        ("mnk", False),
        ("mnk", True),
        ("", True),
        ("k", True),
    )
    if part is None:
        return [matrix_model(name, title, faces=faces, wide=wide) for faces, wide in choices]
    reached = part.memory_bandwidth * part.efficiency.get("elementwise", 1.0)
    most = part.peak.get(dtype, np.inf)
    given: dict[str, Any] = {"tiled": True, "overhead": overhead, "most": most}
    found = [
        matrix_model(name, title, faces=faces, memory=reached, least=least, sharpness=sharpness, host=host, **given)
        for sharpness in CORNERS
        for least in LEAST
        for faces in ("", "k")
        for host in ((False,) if overhead is None else (False, True))
    ]
    if power_limited(part, dtype):
        found += [limited_model(name, title, part, least=least, overhead=overhead) for least in LEAST]
    given["overhead"] = None
    return found + [
        matrix_model(name, title, faces=faces, memory=part.memory_bandwidth, wide=wide, **given)
        for faces, wide in choices
    ]


def matrix_model(
    name: str,
    title: str,
    *,
    faces: str = "mnk",
    memory: float = 0.0,
    wide: bool = False,
    tiled: bool = False,
    least: tuple[int, int] = LEAST[0],
    sharpness: float = 8.0,
    fit_memory: bool = False,
    overhead: float | None = None,
    most: float = np.inf,
    host: bool = False,
) -> Model:
    """Time over work and shape: matrix product, convolution, attention.

    Parameters
    ----------
    name, title : str
    faces : str
        Dimensions whose smallness costs: any of ``"m"``, ``"n"``, ``"k"``.
    memory : float
        Rate of memory, if it is known [B/s]; zero leaves traffic out.
    wide : bool
        Also fit the loss of wide results.
    tiled : bool
        Tiles and waves are counted before (column `share`).
    least : tuple of int
        Smallest tile that the library has.
    sharpness : float
        Exponent of the roofline's corner; 1 adds arithmetic and traffic.
    fit_memory : bool
        Fit how much of `memory` is reached.
    overhead : float, optional
        A fixed time that is known, instead of a fitted one [s].
    most : float
        Peak of the data sheet [FLOP/s].
    host : bool
        Also fit `floor`, what a call takes on the host at least.
    """
    constants = [Constant("rate", 1e12, low=1e6, high=min(most, 1e18), unit="FLOP/s")]
    if overhead is None:
        constants.append(Constant("overhead", 5e-6, high=1.0))
    constants += [Constant(f"half_{face}", 10.0, high=_HALF, unit="1") for face in faces]
    if host:
        constants.append(Constant("floor", 2e-5, high=1.0))
    if wide:
        constants += [
            Constant("wide", 0.2, high=10.0, unit="1"),
            Constant("wide_at", 16384.0, low=2048.0, high=65536.0, unit="1"),
        ]
    fixed = _cut(least) if tiled else {}
    if sharpness != 8.0:
        fixed["sharpness"] = sharpness
    if memory and fit_memory:
        constants.append(Constant("memory", 0.8 * memory, low=0.3 * memory, high=memory, unit="B/s"))
    elif memory:
        fixed["memory"] = memory
    fixed |= {} if overhead is None else {"overhead": overhead}
    return Model(name, title, tuple(constants), _matrix, fixed=fixed, starts=_starts, columns=_COLUMNS)


_COLUMNS = ("flops", "nbytes", "m", "n", "k", "share")


def _cut(least: tuple[int, int]) -> dict[str, float]:
    return {"tiled": 1.0} | ({} if least == LEAST[0] else {"tile_m": float(least[0]), "tile_n": float(least[1])})


def limited_model(
    name: str,
    title: str,
    part: Device,
    *,
    least: tuple[int, int] = LEAST[0],
    sharpness: float = 2.0,
    overhead: float | None = None,
    byte_energy: float | None = None,
    lag: float | None = None,
) -> Model:
    """Products on a board that has too little power for its clock: energy of arithmetic and traffic at that power.

    Parameters
    ----------
    name, title : str
    part : Device
        With its `power`.
    least, sharpness : tuple of int, float
        As of `matrix_model`.
    overhead, byte_energy, lag : float, optional
        What is known: a fixed time [s], the energy of a byte [J/B], and for how long the board runs above its limit
        before it slows down [s]. With a known overhead `floor` is fitted, too.
    """
    power = float(getattr(part, "power", None) or 0.0)
    memory = part.memory_bandwidth * part.efficiency.get("elementwise", 1.0)
    fixed = _cut(least) | {
        "rate": _REACHED * part.peak["fp32"],
        "memory": memory,
        "power": power,
        "sharpness": sharpness,
    }
    constants = [Constant("flop_energy", 1e-11, low=1e-14, high=1e-9, unit="J/FLOP")]
    if byte_energy is None:
        # a kernel that only moves bytes reaches the memory's rate within the limit of the board
        constants.append(Constant("byte_energy", 1e-10, high=power / memory, unit="J/B"))
    else:
        fixed["byte_energy"] = byte_energy
    if lag is None:
        constants.append(Constant("stored", 0.1, high=1e3, unit="J"))
    else:
        fixed["stored"] = lag * power
    if overhead is None:
        constants.append(Constant("overhead", 5e-6, high=1.0))
    else:
        fixed["overhead"] = overhead
        constants.append(Constant("floor", 2e-5, high=1.0))

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

    return Model(name, title, tuple(constants), _matrix, fixed=fixed, starts=starts, columns=_COLUMNS)


def pooled_limited_model(
    name: str, title: str, parts: Sequence[Device], *, least: tuple[int, int], sharpness: float
) -> Model:
    """Products on several boards of too little power: what a byte takes, and for how long more is granted, are shared.

    Column ``gpu`` counts the boards from zero; column ``fixed`` is the time that is known [s].
    """
    energies = [Constant(f"flop_energy_{i}", 1e-11, low=1e-14, high=1e-9, unit="J/FLOP") for i in range(len(parts))]
    floors = [Constant(f"floor_{i}", 2e-5, high=1.0) for i in range(len(parts))]
    known = [limited_model(name, title, part, least=least, sharpness=sharpness, overhead=0.0).fixed for part in parts]
    most = min(fixed["power"] / fixed["memory"] for fixed in known)
    shared = [Constant("byte_energy", 1e-10, high=most, unit="J/B"), Constant("lag", 3e-3, high=1.0)]

    def every(values: Mapping[str, float], columns: Columns) -> Array:
        found = np.zeros(len(columns["flops"]))
        for i, fixed in enumerate(known):
            here = columns["gpu"] == i
            one = {"flop_energy": values[f"flop_energy_{i}"], "byte_energy": values["byte_energy"]}
            given = {**fixed, **one, "stored": values["lag"] * fixed["power"]}
            body = columns["fixed"][here] + _matrix(given, {key: column[here] for key, column in columns.items()})
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

    columns = (*_COLUMNS, "gpu", "fixed")
    cut = {"tile_m": float(least[0]), "tile_n": float(least[1]), "sharpness": sharpness}
    return Model(name, title, (*shared, *energies, *floors), every, fixed=cut, starts=starts, columns=columns)


def _matrix(values: Mapping[str, float], columns: Columns) -> Array:
    sizes: tuple[Any, ...] = tuple(columns[key] for key in ("flops", "nbytes", "m", "n", "k"))
    known = {key: value for key, value in values.items() if key not in TILED}
    least = values.get("tile_m", 0.0), values.get("tile_n", 0.0)
    return np.asarray(matrix_time(*sizes, share=columns[_share(*least) if any(least) else "share"], **known))


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
            "wide": wide,
            "floor": floor,
        }
        for share, half, wide in ((0.3, 10.0, 0.5), (0.8, 100.0, 0.05))
    ]


def efficiency_models(name: str, title: str, *, one: float) -> list[Model]:
    """Products on any GPU, from its data sheet: shares of the peak and of memory's rate, and the energy of arithmetic.

    Columns ``peak``, ``bandwidth`` and ``power`` are those of each point's GPU; work is counted in times that the
    peaks take, times `one`.
    """
    return [
        _efficiency(name, title, one=one, least=least, sharpness=sharpness, faces=faces, energy=energy)
        for energy in (False, True)
        for sharpness in (8.0, 1.0)
        for least in ((32, 32), (64, 64), (128, 64))
        for faces in ("", "k")
    ]


def _efficiency(
    name: str, title: str, *, one: float, least: tuple[int, int], sharpness: float, faces: str, energy: bool
) -> Model:
    fixed = _cut(least) | {"sharpness": sharpness}
    constants = [
        Constant("rate", 0.8, low=0.05, high=1.0, unit="1"),
        Constant("memory", 0.85, low=0.6, high=1.0, unit="1"),
        *(Constant(f"half_{face}", 10.0, high=_HALF, unit="1") for face in faces),
    ]
    if energy:
        constants.append(Constant("flop_energy", 1e-11, low=1e-14, high=1e-9, unit="J/FLOP"))

    def every(values: Mapping[str, float], columns: Columns) -> Array:
        peak, bandwidth = columns["peak"], columns["bandwidth"]
        real = {"flops": columns["flops"] * peak / one, "nbytes": columns["nbytes"] * bandwidth / one}
        rates = {"rate": values["rate"] * peak, "memory": values["memory"] * bandwidth, "power": columns["power"]}
        return _matrix({**values, **rates}, {**columns, **real})  # type: ignore[dict-item]

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        return [{"rate": rate, "flop_energy": each} for rate, each in ((0.8, 5e-12), (0.95, 1.5e-11))]

    columns = (*_COLUMNS, "peak", "bandwidth", "power")
    return Model(name, title, tuple(constants), every, fixed=fixed, starts=starts, columns=columns)
