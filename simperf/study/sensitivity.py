"""Sensitivity to several uncertain parameters, over their whole ranges: Morris's screening and Sobol's indices.

Both methods come from SALib (Herman and Usher, J. Open Source Software 2(9), 2017; Iwanaga, Usher and Herman,
Socio-Environmental Systems Modelling 4, 2022).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from simperf.answer import TIME
from simperf.errors import InputError, Problem, SimperfError
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.scenario import Scenario
from simperf.study.axes import Axis, make_axes
from simperf.study.points import Row, Task, make_tasks, refuse_unused_in
from simperf.study.preflight import refuse_points
from simperf.study.sweep import Progress, answer_of, check_axes, run_tasks
from simperf.units import format_quantity

__all__ = ["METHODS", "Influence", "Screening", "Sensitivity", "screening", "sensitivity"]

Method = Literal["morris", "sobol"]
METHODS: tuple[Method, ...] = ("morris", "sobol")
#: levels of Morris's grid, as he recommends
_LEVELS = 4


@dataclass(frozen=True, slots=True)
class Influence:
    """Influence of one parameter on the number that is looked at.

    Parameters
    ----------
    key : str
    total : float
        Morris: mean size of its elementary effects (mu*), in the number's unit. Sobol: share of the variance that
        goes with it, alone or with others (ST) [1].
    alone : float
        Morris: spread of its effects (sigma): large if it is not linear or depends on others. Sobol: share of
        the variance that it makes alone (S1) [1].
    margin : float
        Half width of the 95 % interval of `total`.
    """

    key: str
    total: float
    alone: float
    margin: float


@dataclass(frozen=True)
class Sensitivity:
    """Influences, the largest first, of so many `runs` of a `method` on `metric` (of `unit`)."""

    method: Method
    metric: str
    unit: str
    runs: int
    influences: tuple[Influence, ...]

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows for people."""
        unit = self.unit if self.method == "morris" else "1"
        names = ["mu*", "sigma"] if self.method == "morris" else ["total (ST)", "alone (S1)"]
        rows = [
            [one.key, *(format_quantity(value, unit, digits=3) for value in (one.total, one.margin, one.alone))]
            for one in self.influences
        ]
        return ["parameter", names[0], "+-", names[1]], rows

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the influences, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("contributions").draw_influences(self), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: the influences.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        write_page(path, lambda pages: pages.sensitivity_report(self))

    def to_pandas(self) -> Any:
        """A row a parameter, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        keys = ["key", "total", "alone", "margin"]
        return data_frame([{key: getattr(one, key) for key in keys} for one in self.influences], keys)

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=f"{self.metric}: {self.method}, {self.runs} runs")


@dataclass(frozen=True, slots=True)
class Screening:
    """Points at which parameters are varied together, checked and ready to be run; `screening` makes it.

    Parameters
    ----------
    scenario : Scenario
    axes : sequence of Axis
    method : {"morris", "sobol"}
    grid : numpy.ndarray, shape (points, axes)
        Shares of each range [1].
    tasks : sequence of Task
        A point each.
    """

    scenario: Scenario
    axes: Sequence[Axis]
    method: Method
    grid: np.ndarray[Any, Any]
    tasks: Sequence[Task]

    def play(
        self,
        *,
        metric: str = "",
        engine: str | Executor = "serial",
        cache: bool = True,
        progress: Callable[[Progress], None] | None = None,
    ) -> Sensitivity:
        """Run the points; the parameters are those of `sensitivity`."""
        from SALib.analyze import morris as morris_indices
        from SALib.analyze import sobol as sobol_indices

        rows = run_tasks(self.tasks, engine=engine, cache=cache, progress=progress)
        refuse_unused_in(rows)
        asked = answer_of(self.scenario, rows)
        metric = metric or (asked.metric if asked is not None else TIME)
        values, unit = _values(rows, metric)
        problem = _problem(self.axes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a number that never changes has no variance to share
            if self.method == "morris":
                found = morris_indices.analyze(problem, self.grid, values, num_levels=_LEVELS, seed=0)
                columns = found["mu_star"], found["sigma"], found["mu_star_conf"]
            else:
                found = sobol_indices.analyze(problem, values, calc_second_order=False, seed=0)
                columns = found["ST"], found["S1"], found["ST_conf"]
        clean = [[float(value) if np.isfinite(value) else 0.0 for value in column] for column in columns]
        made = [Influence(axis.key, *row) for axis, *row in zip(self.axes, *clean, strict=True)]
        made.sort(key=lambda one: (-one.total, one.key))
        return Sensitivity(self.method, metric, unit, len(rows), tuple(made))


def screening(
    scenario: Scenario, vary: Mapping[str, Any] | Sequence[str], *, method: Method = "morris", samples: int = 16
) -> Screening:
    """Make the points of `sensitivity`, and refuse what is wrong with them before anything is run.

    Raises
    ------
    InputError
        Something that is no range, a sample size that the method cannot take, too many of them, or SALib is missing.
    """
    try:
        from SALib.sample import morris as morris_points
        from SALib.sample import sobol as sobol_points
    except ImportError:
        message = "SALib is not installed, which screening needs"
        raise InputError(Problem(message, expected="pip install SALib")) from None
    axes = make_axes(vary)
    problems = [
        Problem("a range is expected", file="--vary", key=axis.key, expected='"program.nbytes=1..100 MB"')
        for axis in axes
        if not axis.is_range
    ]
    if method not in METHODS:
        problems.append(Problem("no such method", key="--method", value=str(method), expected=" or ".join(METHODS)))
    if len(axes) < 2:
        problems.append(Problem("two ranges or more are expected", file="--vary", value=str(len(axes))))
    if samples < 2 or (method == "sobol" and samples & (samples - 1)):
        message = "a number of 2 or more is expected, for sobol a power of 2"
        problems.append(Problem(message, key="--trajectories", value=str(samples)))
    if problems:
        raise InputError(problems)
    count = samples * (len(axes) + (1 if method == "morris" else 2))
    refuse_points(count, force=scenario.force, expected="fewer", option="--trajectories")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SALib's own, on deprecated calls
        if method == "morris":
            grid = morris_points.sample(_problem(axes), samples, num_levels=_LEVELS, seed=scenario.seed % 2**32)
        else:
            grid = sobol_points.sample(_problem(axes), samples, calc_second_order=False, seed=scenario.seed % 2**32)
    points = [{axis.key: axis.at(float(x)) for axis, x in zip(axes, row, strict=True)} for row in grid]
    tasks = [{**task, "seed": scenario.seed} for task in make_tasks(scenario, points, record=False)]
    check_axes(scenario, axes, tasks)
    return Screening(scenario, axes, method, np.asarray(grid), tasks)


def _problem(axes: Sequence[Axis]) -> dict[str, Any]:
    """The axes as SALib has them."""
    return {"num_vars": len(axes), "names": [axis.key for axis in axes], "bounds": [[0.0, 1.0]] * len(axes)}


def sensitivity(
    scenario: Scenario,
    vary: Mapping[str, Any] | Sequence[str],
    *,
    method: Method = "morris",
    samples: int = 16,
    metric: str = "",
    engine: str | Executor = "serial",
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Sensitivity:
    """Vary several parameters over their ranges at once and say how much each of them matters.

    Parameters
    ----------
    scenario : Scenario
    vary : mapping or sequence of str
        Ranges, such as ``"program.nbytes=1..100 MB"``.
    method : {"morris", "sobol"}
        Screening with (number of keys + 1) runs a sample; or shares of the variance with (number of keys + 2).
    samples : int
        Trajectories; for Sobol a power of 2.
    metric : str
        The number that is looked at: ``"time"`` or a metric; if empty, what the scenario asks for, or else the time.
    engine, cache, progress
        As in `simperf.study.sweep.sweep`.

    Raises
    ------
    InputError
        Something that is no range, a sample size that the method cannot take, too many of them, or SALib is missing.
    """
    made = screening(scenario, vary, method=method, samples=samples)
    return made.play(metric=metric, engine=engine, cache=cache, progress=progress)


def _values(rows: Sequence[Row], metric: str) -> tuple[Any, str]:
    failed = [row for row in rows if row["error"] is not None]
    if failed:
        what = ", ".join(f"{key} = {value}" for key, value in failed[0]["set"].items())
        raise SimperfError(f"{len(failed)} of {len(rows)} points cannot be run, such as {what}: {failed[0]['error']}")
    if metric == TIME:
        return np.asarray([row["time"] for row in rows]), "s"
    if any(metric not in row["metrics"] for row in rows):
        known = ", ".join(["time", *rows[0]["metrics"]])
        raise InputError(Problem("no such metric", key="--metric", value=metric, expected=known))
    return np.asarray([row["metrics"][metric][0] for row in rows]), str(rows[0]["metrics"][metric][1])
