"""Products on any GPU from its data sheet: shares of the peaks, and a clock that the board's power allows.

What is the same in all tables of products: the share of its peak that a GPU reaches, and the energy of an operation.
What is not: how long a board may run above its limit, which depends on what ran before. NeuSight's layers take 0.36 s
on a T4, in the mean, 25 times in a row, and the short ones run no faster than the long ones (a median of 3.7 to 4.1
TFLOP/s from 0.3 ms to seconds); its batches take a tenth of that, and a quarter of those below 10 ms run at 5.5 TFLOP/s
and more (``python -m tests.truth.layers linear.csv bmm.csv``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model
from simperf.calibrate.fit.products import COLUMNS, Cut, matrix_seconds
from simperf.hardware import GpuPart

__all__ = ["allowed_clock", "efficiency_models", "energy_scale", "held_clock"]

#: half sizes of a matrix product that are searched [1]
_HALF = 4096.0
#: share of its memory's rate that a product reaches at least: what elementwise kernels of all other GPUs reach is 0.80
#: to 0.87, whichever is left out
_MEMORY = 0.8
#: what an architecture is made in, by its process's name [nm], and fp32 lanes of a multiprocessor (NVIDIA's whitepapers
#: of P100, V100, Turing, A100, Ada and H100)
_PROCESSES: Mapping[str, tuple[float, int]] = {
    "pascal": (16.0, 64),
    "volta": (12.0, 64),
    "turing": (12.0, 64),
    "ampere": (7.0, 64),
    "ada": (4.0, 128),
    "hopper": (4.0, 128),
}
#: that energies are told for: an A100 [nm], [1/s]
_PROCESS, _CLOCK = 7.0, 1.41e9
#: energy of an operation at the lowest voltage over that at the highest: GPUs run between some 0.65 to 0.7 and 1.05 to
#: 1.1 V, and the energy goes as the square (X. Mei, Q. Wang, X. Chu, "A survey and measurement study of GPU DVFS on
#: energy conservation", Digital Communications and Networks 3(2), 2017)
_LOWEST = 0.4


def allowed_clock(power: Any, peak: Any, energy: Any) -> Array:
    """Share of its clock at which a board can carry out arithmetic all the time [1].

    The power of arithmetic at a share f of the clock is ``energy peak f (v + (1 - v) f^2)``: the voltage falls with the
    clock, and the energy of an operation with its square, down to a share v at the lowest voltage. Where that takes
    more than the board's limit at full clock, the clock goes down until it does not.

    Parameters
    ----------
    power : float or ndarray
        Limit of the board [W].
    peak : float or ndarray
        Arithmetic at full clock [FLOP/s].
    energy : float or ndarray
        Of an operation at the highest voltage [J/FLOP].

    Examples
    --------
    >>> allowed_clock(250.0, 10e12, 20e-12).item()
    1.0
    >>> f = allowed_clock(72.0, 30e12, 20e-12).item()
    >>> round(20e-12 * 30e12 * f * (0.4 + 0.6 * f**2), 6)
    72.0
    """
    wanted = np.minimum(np.asarray(power, dtype=float) / (np.asarray(peak, dtype=float) * energy), 1.0)
    share = np.minimum(wanted / _LOWEST, 1.0)
    for _ in range(40):  # Newton's steps from above on a convex, rising function
        rise = _LOWEST + 3.0 * (1.0 - _LOWEST) * share**2
        share = share - (share * (_LOWEST + (1.0 - _LOWEST) * share**2) - wanted) / rise
    return np.asarray(share)


def held_clock(values: Mapping[str, float], columns: Columns) -> Array:
    """`allowed_clock` of each point's board, by the constants of `efficiency_models`; 1 where they know no energy."""
    if "energy" not in values:
        return np.ones(len(columns["peak"]))
    return allowed_clock(columns["power"], values["rate"] * columns["peak"], values["energy"] * columns["scale"])


def energy_scale(part: GpuPart) -> float:
    """Energy of an operation at the highest voltage over that of an A100, by data sheets; 1 if they do not tell.

    It is a capacitance, which goes as the size of what is switched, times the square of a voltage, which goes as the
    clock that is to be reached: size of the process times clock squared.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> round(energy_scale(Catalog.load().gpu("a100-pcie-40gb")), 2), round(energy_scale(Catalog.load().gpu("t4")), 2)
    (1.0, 2.16)
    """
    process, lanes = _PROCESSES.get(part.architecture, (0.0, 1))
    clock = part.peak.get("fp32", 0.0) / (2.0 * lanes * part.sms)
    return process / _PROCESS * (clock / _CLOCK) ** 2 or 1.0


def efficiency_models(name: str, title: str, *, one: float) -> list[Model]:
    """Products on any GPU, from its data sheet: shares of the peak and of memory's rate, and the energy of arithmetic.

    Columns ``peak``, ``bandwidth``, ``power`` and ``scale`` (`energy_scale`) are those of each point's GPU, ``known``
    is what the tiles leave that its library is known to have, ``late`` the time that a layer waits for the addresses of
    its rows (`simperf.cost.longsums`) [s]; work is counted in times that the peaks take, times `one`. Where ``rested``
    is above 0, kernels shorter than `lag` run at full clock, as in `limited_model`.
    """
    cuts = (Cut(32, 32), Cut(64, 64), Cut(128, 64), None)
    return [
        _efficiency(name, title, one=one, cut=cut, sharpness=sharpness, faces=faces, energy=energy)
        for energy in (False, True)
        for sharpness in (8.0, 1.0)
        for cut in cuts
        for faces in ("", "k")
    ]


def _efficiency(
    name: str, title: str, *, one: float, cut: Cut | None, sharpness: float, faces: str, energy: bool
) -> Model:
    """A form of `efficiency_models`; without a `cut` by the tiles that each library is known to have."""
    fixed = ({} if cut is None else cut.constants) | {"sharpness": sharpness}
    constants = [
        FitConstant("rate", 0.8, low=0.05, high=1.0, unit="1"),
        FitConstant("memory", 0.85, low=_MEMORY, high=1.0, unit="1"),
        *(FitConstant(f"half_{face}", 10.0, high=_HALF, unit="1") for face in faces),
    ]
    if energy:
        constants.append(FitConstant("energy", 2e-11, low=1e-12, high=1e-10, unit="J/FLOP"))
        constants.append(FitConstant("lag", 3e-3, high=0.1))

    def every(values: Mapping[str, float], columns: Columns) -> Array:
        peak, bandwidth = columns["peak"], columns["bandwidth"]
        real = {"flops": columns["flops"] * peak / one, "nbytes": columns["nbytes"] * bandwidth / one}
        if cut is None:
            real["share"] = columns["known"]
        given = {key: value for key, value in values.items() if key not in ("energy", "lag")}
        rates: dict[str, Any] = {"rate": values["rate"] * peak, "memory": values["memory"] * bandwidth}
        if energy:  # a time a FLOP at the clock that is allowed, as an energy at a power of 1 W
            clock = held_clock(values, columns)
            rates |= {"power": 1.0, "stored": values["lag"] * columns["rested"]}
            rates["flop_energy"] = np.where(clock < 1.0, 1.0 / (rates["rate"] * clock), 0.0)
        return matrix_seconds({**given, **rates}, {**columns, **real}) + columns["late"]

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        return [{"rate": rate, "energy": each} for rate, each in ((0.8, 1.2e-11), (0.95, 2e-11))]

    columns = (*COLUMNS, "peak", "bandwidth", "power", "scale", "known", "late", "rested")
    return Model(name, title, tuple(constants), every, fixed=fixed, starts=starts, columns=columns)
