"""What-if questions on a job: each change alone, all together, their interaction, and the critical path of each run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simperf.analysis.critical import Segment, critical_path
from simperf.errors import InputError, SimperfError
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.results import Result
from simperf.run import run
from simperf.scenario import Scenario, load_scenario
from simperf.scenario.load import change_scenario
from simperf.study.limiting_link import dimension_of, limiting_link
from simperf.study.what_if_changes import OPTION, WhatIfChange, read_changes, what_if_scenario
from simperf.units import format_quantity

__all__ = ["WhatIf", "WhatIfRun", "what_if"]

#: names of the runs without changes, and with all of them
AS_IS, TOGETHER = "as it is", "together"
#: relative change that is none [1]
_NOTHING = 1e-8
#: before the dimension of the layout along which communication is exposed
_EXPOSED = "exposed "


@dataclass(frozen=True, slots=True)
class WhatIfRun:
    """A run of a what-if question.

    Parameters
    ----------
    name : str
        Its change; ``"as it is"`` or ``"together"``.
    value : float
        The number that the scenario asks for, in its unit.
    change : float
        That number less the one of the run as it is.
    time : float
        Of the whole run [s].
    path : mapping of str to float
        Time of each activity on the critical path, which add up to the run's time [s].
    remark : str
        What else its change brings.
    limit : str
        The link that limits communication, where the change makes other links faster or brings another machine; else
        empty.
    """

    name: str
    value: float
    change: float
    time: float
    path: dict[str, float]
    remark: str = ""
    limit: str = ""


@dataclass(frozen=True)
class WhatIf:
    """Changes of a job, and what each contributes.

    Parameters
    ----------
    metric, unit : str
        The number that is watched.
    base, together : WhatIfRun
        Without any change, and with all.
    alone : tuple of WhatIfRun
        With one change each.
    result : Result
        Of the run as it is.
    """

    metric: str
    unit: str
    base: WhatIfRun
    alone: tuple[WhatIfRun, ...]
    together: WhatIfRun
    result: Result

    @property
    def interaction(self) -> float:
        """Effect of the changes together beyond the sum of each alone; with these it is the total change."""
        return self.together.change - sum(one.change for one in self.alone)

    @property
    def runs(self) -> tuple[WhatIfRun, ...]:
        """All runs; those of one change are as many as there are changes, and one change alone is all together."""
        return (self.base, *self.alone, *([self.together] if len(self.alone) > 1 else []))

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the contributions, for people."""
        rows = [[self.base.name, format_quantity(self.base.value, self.unit), "", ""]]
        rows += [self._row(one) for one in self.alone]
        if len(self.alone) > 1:
            rows.append(["interaction", "", *self._change(self.interaction)])
            rows.append(self._row(self.together))
        return ["what if", self.metric, "change", "%"], rows

    def path_rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the critical paths: a row a run; its time, and activities that add up to it."""
        names = dict.fromkeys(name for one in self.runs for name in one.path)
        ranked = sorted(names, key=lambda name: -max(one.path.get(name, 0.0) for one in self.runs))
        rows = [[one.name, format_quantity(one.time, "s"), *(_time(one, name) for name in ranked)] for one in self.runs]
        return ["run", "whole run", *ranked], rows

    def reason(self, one: WhatIfRun) -> str:
        """Part of the critical path that changed most, in words."""
        moved = {name: one.path.get(name, 0.0) - self.base.path.get(name, 0.0) for name in {*one.path, *self.base.path}}
        largest = sorted(moved, key=lambda name: (-abs(moved[name]), name))[:2]
        told = [f"{name} {_signed(moved[name], 's')}" for name in largest if abs(moved[name]) > 1e-6 * self.base.time]
        reason = ", ".join(told) or "the critical path is the same"
        if one.limit:
            reason = f"{reason}; {one.limit}"
        return f"{reason} ({one.remark})" if one.remark else reason

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in SI units."""
        return {
            "name": self.result.name,
            "metric": self.metric,
            "unit": self.unit,
            "runs": [
                {
                    "name": one.name,
                    "value": one.value,
                    "change": one.change,
                    "time": one.time,
                    "critical_path": one.path,
                    "remark": one.remark,
                    "limit": one.limit,
                }
                for one in self.runs
            ],
            "interaction": self.interaction,
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw what each change contributes, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("contributions").draw_what_if(self), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: contributions, critical paths, and the run as it is in detail.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        write_page(path, lambda pages: pages.what_if_report(self, machine=pages.machine_of(self.result)))

    def to_pandas(self) -> Any:
        """A row a run, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        keys = ["name", "value", "change", "time"]
        return data_frame([{key: getattr(one, key) for key in keys} for one in self.runs], keys)

    def __repr__(self) -> str:
        return f"<WhatIf of {self.result.name!r}: {_signed(self.together.change, self.unit)} of {self.metric}>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=self.result.name)

    def _row(self, one: WhatIfRun) -> list[str]:
        return [one.name, format_quantity(one.value, self.unit), *self._change(one.change)]

    def _change(self, change: float) -> list[str]:
        if abs(change) <= _NOTHING * abs(self.base.value):
            return ["0", "0 %"]
        share = f"{100 * change / self.base.value:+.3g} %" if self.base.value else "-"
        return [_signed(change, self.unit), share]


def what_if(
    scenario: Scenario | str | os.PathLike[str],
    changes: str | Sequence[str],
    *,
    play: Callable[[Scenario], Result] = run,
) -> WhatIf:
    """Simulate a job as it is, with each of several changes alone, and with all of them.

    Parameters
    ----------
    scenario : Scenario or path
    changes : str or sequence of str
        ``network=2x`` (links between servers), ``nvlink=2x`` (links among the GPUs of one), ``domain=72`` (servers
        whose NVLink joins so many GPUs), ``host1=0.8x`` (speed of a server's GPUs), ``precision=fp8`` (products),
        ``batch=0.5x``, ``speed.NAME=2x`` (a resource of `simperf.limits`), or ``KEY=VALUE`` of the scenario.
    play : callable
        Runs a scenario.

    Raises
    ------
    InputError
        A change that there is not, that changes nothing, or that the job does not take.

    Examples
    --------
    >>> found = what_if("d2l/sync-160mb", ["program.nbytes=320 MB"])
    >>> found.alone[0].change > 0 and abs(found.interaction) < 1e-12
    True
    """
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    found = read_changes(scenario, [changes] if isinstance(changes, str) else list(changes))
    sets = [(), *((one,) for one in found), *([found] if len(found) > 1 else [])]
    scenarios = [_made(scenario, chosen) for chosen in sets]  # all are made before any is run
    result = play(scenarios[0])
    metric, number = result.headline
    base = _run(AS_IS, result, metric, number.value)
    rest = [
        _limited(
            _run(_name(chosen), played := _played(play, one, chosen), metric, number.value, _remark(chosen)),
            played,
            one,
            chosen,
        )
        for chosen, one in zip(sets[1:], scenarios[1:], strict=True)
    ]
    alone = tuple(rest[: len(found)])
    return WhatIf(metric, number.unit, base, alone, rest[-1], result)


def _path_activities(segments: Sequence[Segment]) -> dict[str, float]:
    """Time on the critical path by activity [s], the largest first; communication by the dimension of the layout."""
    found: dict[str, float] = {}
    for one in segments:
        along = dimension_of(one.track, one.category)
        name = f"{_EXPOSED}{along}" if along else one.category
        found[name] = found.get(name, 0.0) + one.end - one.start
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _made(scenario: Scenario, changes: Sequence[WhatIfChange]) -> Scenario:
    names = ", ".join(one.name for one in changes)
    try:
        return what_if_scenario(scenario, changes, change_scenario)
    except InputError as error:
        raise _told(error, names) from None


def _played(play: Callable[[Scenario], Result], scenario: Scenario, changes: Sequence[WhatIfChange]) -> Result:
    try:
        return play(scenario)
    except SimperfError as error:
        if not isinstance(error, InputError):
            raise
        raise _told(error, ", ".join(one.name for one in changes)) from None


def _told(error: InputError, names: str) -> InputError:
    """The problems of a run, with the changes that it was made with; what is in no line of a file is of the option."""
    told = [replace(one, message=f"{one.message} (with {names})") for one in error.problems]
    return InputError([one if one.file and one.line else replace(one, file=OPTION, line=0) for one in told])


def _name(changes: Sequence[WhatIfChange]) -> str:
    return changes[0].name if len(changes) == 1 else TOGETHER


def _remark(changes: Sequence[WhatIfChange]) -> str:
    return "; ".join(one.remark for one in changes if one.remark)


def _run(name: str, result: Result, metric: str, base: float, remark: str = "") -> WhatIfRun:
    value = result.number(metric).value
    path = _path_activities(critical_path(result).segments)
    return WhatIfRun(name, value, value - base, result.time, path, remark)


def _limited(run: WhatIfRun, result: Result, scenario: Scenario, changes: Sequence[WhatIfChange]) -> WhatIfRun:
    """The run with the link that limits its exposed communication: beside faster ones, or of a new machine."""
    faster = {name for one in changes for name, factor in one.speeds.items() if factor > 1}
    other = any("machine" in one.values for one in changes)
    exposed = {name.removeprefix(_EXPOSED) for name in run.path if name.startswith(_EXPOSED)}
    if "communication" in run.path:  # sends, whose dimension their collectives' spans say
        exposed |= {dimension_of(one.track, one.category) for one in result.spans} - {""}
    if not (faster or other) or not exposed or scenario.machine is None:
        return run
    found = limiting_link(result, scenario.machine, faster, exposed)
    return replace(run, limit=str(found)) if found is not None else run


def _time(one: WhatIfRun, name: str) -> str:
    return format_quantity(one.path[name], "s") if one.path.get(name) else "-"


def _signed(value: float, unit: str) -> str:
    text = format_quantity(abs(value), unit)
    return f"{'-' if value < 0 else '+'}{text}"
