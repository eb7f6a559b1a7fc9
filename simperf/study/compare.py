"""Scenarios side by side: what differs, which is best, by how much and why, and whether that is significant."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from simperf.analysis.ranking import Ranking, rank_results
from simperf.analysis.verdict import Verdict, verdict
from simperf.errors import InputError, Problem, SimperfError
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.results import Result
from simperf.run import MOST_EVENTS, Attempt, run, settle_answers
from simperf.scenario import Scenario, load_scenario
from simperf.scenario.placing import placed
from simperf.scenario.profile_use import refuse_unused
from simperf.study.axes import make_axes, make_points
from simperf.study.points import SPEED, make_tasks, point_scenario
from simperf.study.preflight import refuse_kept, refuse_total
from simperf.study.sweep import check_axes
from simperf.study.uncertainty import predict

__all__ = ["SideBySide", "compare", "differences", "refuse_excess", "run_variants", "variants_of"]

#: tables that say nothing about what is run
_SILENT = ("scenario", "expect", "measured", "compare")


def differences(datas: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Keys of which scenarios' data say different things: key to what each says, ``"-"`` if nothing."""
    flats = [_flat({key: value for key, value in data.items() if key not in _SILENT}) for data in datas]
    keys = dict.fromkeys(key for flat in flats for key in flat)
    rows = {key: tuple(flat.get(key, "-") for flat in flats) for key in keys}
    return {key: row for key, row in rows.items() if len(set(row)) > 1}


def _flat(data: Mapping[str, Any], head: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{head}{key}.")
        else:
            found[f"{head}{key}"] = value if isinstance(value, str) else json.dumps(value, default=str)
    return found


def variants_of(scenario: Scenario, vary: Mapping[str, Any] | Sequence[str], *, samples: int = 0) -> list[Scenario]:
    """The scenario with each combination of values, named by them; `samples` says how often each will be drawn.

    Raises
    ------
    InputError
        Keys or values that the scenario does not take.
    """
    axes = make_axes(vary)
    points = make_points(axes, force=scenario.force)
    if samples and any(axis.key.startswith(f"{SPEED}.") for axis in axes):
        message = "draws are made before a resource is made faster"
        raise InputError(Problem(message, file="--samples", expected="simperf limits FILE --samples N"))
    if not points or not axes:
        raise InputError(Problem("nothing is varied", file="--vary", expected='"program.gpus=8,16,32"'))
    tasks = [{**task, "seed": task["set"].get("run.seed", scenario.seed)} for task in make_tasks(scenario, points)]
    check_axes(scenario, axes, tasks)
    made = []
    for task, point in zip(tasks, points, strict=True):
        one = point_scenario(task)
        name = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.items())
        data = {key: value for key, value in one.data.items() if key != "run"}
        made.append(replace(one, name=name, title=scenario.title, path=scenario.path, data=data))
    return made


def refuse_excess(scenarios: Sequence[Scenario], *, samples: int = 0) -> None:
    """Refuse runs, and `samples` draws of each, that would simulate too many events together.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    events = [min(one.program.events(one.parameters), MOST_EVENTS) for one in scenarios if not one.force]
    if samples and events:
        refuse_total(len(events) * (1 + samples), math.fsum(events) / len(events))
    if len(events) > 1:
        files = ", ".join(dict.fromkeys(one.path for one in scenarios if one.path))
        refuse_kept(events, MOST_EVENTS, file=files)


def run_variants(
    scenarios: Sequence[Scenario],
    *,
    samples: int = 0,
    engine: str | Executor = "serial",
    play: Callable[..., Result] = run,
    progress: Callable[[Sequence[Scenario]], Iterable[Scenario]] = iter,
) -> list[Attempt]:
    """Run scenarios that are to be compared; an error of one ends none of the others.

    Parameters
    ----------
    scenarios : sequence of Scenario
    samples : int
        Draws of the calibration, for intervals.
    engine : str or Executor
        Where draws are run.
    play : callable
        Runs one scenario.
    progress : callable
        Passes the scenarios on, each before it is run.

    Raises
    ------
    InputError
        Together they would simulate too many events.
    """
    refuse_excess(scenarios, samples=samples)
    attempts = []
    for one in progress(scenarios):
        unasked = replace(one, answer=None)  # a variant may lack the metric that others have
        try:
            if samples:
                result = predict(unasked, samples=samples, executor=engine, play=play, unused="tell")
            else:
                result = play(unasked, unused="tell")
            attempts.append(Attempt(one.name, one, result, None))
        except SimperfError as error:
            attempts.append(Attempt(one.name, one, None, error))
    return [
        new if old.result is None or new.error is None else new._replace(error=placed(new.error, new.scenario))
        for old, new in zip(attempts, settle_answers(attempts), strict=True)
    ]


@dataclass(frozen=True)
class SideBySide:
    """Result of a comparison: an attempt a scenario, and what they differ in."""

    attempts: tuple[Attempt, ...]
    differences: Mapping[str, tuple[str, ...]]

    @property
    def results(self) -> tuple[Result, ...]:
        """Those that gave one."""
        return tuple(one.result for one in self.attempts if one.result is not None)

    @property
    def ranking(self) -> Ranking:
        """The results by what the scenarios ask for; by time if they do not say, and did the same work."""
        return rank_results(self.results)

    @property
    def best(self) -> tuple[Result, ...]:
        """Those that none is better than: several if they tie, none if there is no winner to be named."""
        return tuple(self.results[place] for place in self.ranking.best)

    @property
    def winner(self) -> Result | None:
        """The best one; None if every one failed, several tie, or `ranking` refuses to name one."""
        return self.best[0] if len(self.best) == 1 else None

    def verdicts(self) -> list[Verdict | None]:
        """Verdict on each attempt against the best value.

        None for that itself, for failures, for those without such a value, and where nothing is ranked.
        """
        ranking = self.ranking
        first = self.results[ranking.reference] if ranking.reference is not None else None
        found: list[Verdict | None] = []
        for one in self.attempts:
            result = one.result
            if first is None or result is None or result is first or not result.has(ranking.answer.metric):
                found.append(None)
            else:
                found.append(verdict(first, result))
        return found

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows for people: the differences first, then the number that is ranked."""
        ranking, best = self.ranking, self.best
        answer = ranking.answer.metric
        rows = []
        for index, (one, told) in enumerate(zip(self.attempts, self.verdicts(), strict=True)):
            result = one.result
            numbers = ["failed" if result is None else str(result.number("time"))]
            if answer != "time":
                numbers.insert(0, str(result.number(answer)) if result is not None and result.has(answer) else "-")
            tie = "tie" if len(best) > 1 else "best"
            text = str(told) if told is not None else "-"
            if any(result is other for other in best):
                text = f"{tie}: {told}" if told is not None else tie
            text = str(one.error).splitlines()[0] if one.error else text
            rows.append([one.name, *(values[index] for values in self.differences.values()), *numbers, text])
        return ["name", *self.differences, *dict.fromkeys((answer, "time")), "verdict"], rows

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the results side by side, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InputError
            Every run failed; the name says no picture.
        """
        return drawn(report_module("plots").draw_comparison(self._shown()), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: which is best, by how much and why, and each run.

        Raises
        ------
        InputError
            Every run failed; the name does not end in ``.html``.
        """
        title = " and ".join(dict.fromkeys(one.scenario.title for one in self.attempts))
        machines = [one.scenario.machine for one in self.attempts]
        write_page(path, lambda pages: pages.comparison_report(self._shown(), title=title, machines=machines))

    def to_pandas(self) -> Any:
        """A row an attempt, as a `pandas.DataFrame`, which the extra ``tables`` brings: what differs, then the numbers.

        Times and metrics are in SI units; an attempt that failed has an error instead.
        """
        metrics = dict.fromkeys(name for result in self.results for name in result.metrics)
        columns = ["name", *self.differences, "time", *metrics, "error"]
        rows = []
        for index, one in enumerate(self.attempts):
            row: dict[str, Any] = {"name": one.name, "error": str(one.error) if one.error is not None else None}
            row |= {key: values[index] for key, values in self.differences.items()}
            if one.result is not None:
                row |= {"time": one.result.time} | {key: metric.value for key, metric in one.result.metrics.items()}
            rows.append(row)
        return data_frame(rows, columns)

    def _shown(self) -> list[Any]:
        """The results, and what stands for those that failed."""
        failure = report_module("data").FailedRun
        return [one.result if one.result is not None else failure(one.name, str(one.error)) for one in self.attempts]

    def __repr__(self) -> str:
        told = self.ranking.headline or "all failed"
        return f"<{len(self.attempts)} side by side; {told}>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=self.ranking.headline)


def compare(
    *scenarios: Scenario | str | os.PathLike[str],
    vary: Mapping[str, Any] | Sequence[str] | None = None,
    samples: int = 0,
    engine: str | Executor = "serial",
    play: Callable[..., Result] = run,
) -> SideBySide:
    """Run scenarios and hold them against the best.

    Parameters
    ----------
    *scenarios : Scenario or path
        A file's ``[[compare]]`` variants count as one each.
    vary : mapping or sequence of str, optional
        Values of keys: every combination of the one scenario that is given.
    samples : int
        Draws of the calibration, for intervals.
    engine : str or Executor
        Where draws are run.
    play : callable
        Runs one scenario.

    Raises
    ------
    InputError
        What cannot be read; `vary` with several scenarios.
    """
    loaded = [one if isinstance(one, Scenario) else load_scenario(one) for one in scenarios]
    if vary is not None:
        if len(loaded) != 1:
            raise InputError(
                Problem("one scenario is varied at a time", file="--vary", value=str(len(loaded)), expected="one file")
            )
        chosen = variants_of(loaded[0], vary, samples=samples)
    else:
        chosen = [variant for one in loaded for variant in one.variants or (one,)]
    attempts = run_variants(chosen, samples=samples, engine=engine, play=play)
    refuse_unused(attempt.result.unused for attempt in attempts if attempt.result is not None)
    return SideBySide(tuple(attempts), differences([one.data for one in chosen]))
