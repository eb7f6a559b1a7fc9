"""Baselines of a validation: predictions of two constants, beside which it can be seen what the other constants add.

Of a series that is: a fixed time and one rate, for each of the models that the profile has, fitted to the very points
that these were fitted to (Hockney's line, in relative terms). Of whole training steps: a roofline of two constants, the
best rates of arithmetic and of memory that were reached, summed over the operations of the step (S. Williams, A.
Waterman, D. Patterson, "Roofline: an insightful visual performance model", Communications of the ACM 52(4), 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.steps import measured_part
from simperf.calibrate.validate import Checked, Validation
from simperf.errors import SimperfError
from simperf.hardware import ProfilePart
from simperf.workload.op import MATRIX_FAMILIES

__all__ = ["Line", "lines_of", "roofline_steps", "with_baseline", "work_of"]

#: points that a line is fitted to at least
_LEAST = 3
#: conditions that say how much there is to do
_AMOUNTS = ("nbytes", "parameters", "nodes", "elements")


@dataclass(frozen=True, slots=True)
class Line:
    """A fixed time and a time for each unit of work.

    Parameters
    ----------
    fixed : float
        [s]
    slope : float
        [s] a FLOP, a byte, or whatever `work_of` counts
    """

    fixed: float
    slope: float

    def at(self, amount: float) -> float:
        """Time for so much work [s]."""
        return self.fixed + self.slope * amount


def work_of(point: Measurement) -> float | None:
    """Amount of work of a point: FLOP of products, bytes of other operations, else what the conditions count.

    Examples
    --------
    >>> work_of(Measurement("copy/host", {"nbytes": 8}, (1.0,))), work_of(Measurement("sync/item", {}, (1.0,)))
    (8.0, None)
    """
    at = point.at
    if "nbytes_read" in at:
        if at.get("family") in MATRIX_FAMILIES:
            return point.number("flops")
        return point.number("nbytes_read") + point.number("nbytes_written")
    return next((point.number(name) for name in _AMOUNTS if name in at), None)


def lines_of(found: Validation, dataset: Dataset) -> dict[str, Line]:
    """A line for each model of a validation, through its fitted points; none where they are too few or no line.

    Parameters
    ----------
    found : Validation
        Of the data set that the profile was fitted to.
    dataset : Dataset
    """
    amounts = {point.key: work_of(point) for point in dataset}
    groups: dict[str, list[tuple[float, float]]] = {}
    for point in found.points:
        amount = amounts.get(point.key)
        if point.fitted and amount is not None:
            groups.setdefault(point.model, []).append((amount, point.measured))
    lines = {}
    for name, rows in groups.items():
        amount, time = np.array(rows).T
        if len(set(amount)) >= _LEAST:
            design = np.stack((np.ones(len(rows)), amount), axis=1) / time[:, None]
            fixed, slope = np.linalg.lstsq(design, np.ones(len(rows)), rcond=None)[0]
            lines[name] = Line(float(fixed), float(slope))
    return lines


def roofline_steps(profile: ProfilePart) -> Callable[[Measurement], float | None]:
    """A function that says how long a step of ``step/MODEL`` takes by a roofline of two constants [s]."""
    from simperf.workload.zoo import load

    device = measured_part(profile)

    def step(point: Measurement) -> float | None:
        words = [str(point.at.get(name, default)) for name, default in (("precision", "fp32"), ("optimizer", ""))]
        try:
            model = load(str(point.at.get("model", "")))
            found = model.at(int(point.number("batch")), words[0], optimizer=words[1])
        except SimperfError:
            return None
        part = str(point.at.get("part", "step"))
        parts = ("forward", "backward", "update") if part == "step" else (part,)
        return float(
            sum(
                max(op.flops / device.peak.get(op.dtype, device.peak["fp32"]), op.nbytes / device.memory_bandwidth)
                for name in parts
                for op in getattr(found, name)
            )
        )

    return step


def with_baseline(
    found: Validation, dataset: Dataset, lines: Mapping[str, Line], steps: Callable[[Measurement], float | None]
) -> Validation:
    """The validation with what two constants say of each point."""
    points = {point.key: point for point in dataset}

    def plain(one: Checked) -> float | None:
        point = points.get(one.key)
        if point is None:
            return None
        if one.series.startswith("step/"):
            return steps(point)
        amount = work_of(point)
        return lines[one.model].at(amount) if amount is not None and one.model in lines else None

    return replace(found, points=tuple(replace(one, plain=plain(one)) for one in found.points))
