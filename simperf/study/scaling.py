"""Scaling of a scenario: the same program on fewer of its machine's devices, and variants that differ in a count.

The runs at half the count, a quarter and so on together cost about as much as the run itself, since each has
half the devices of the one before; they record no timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from simperf.analysis.scaling import COUNTS, ScalingCurve, from_rates, rate_of, scaling
from simperf.errors import InputError, SimperfError
from simperf.results import Result
from simperf.run import run
from simperf.scenario import Scenario
from simperf.study.compare import differences
from simperf.study.table import Table

__all__ = ["fewer", "halvings", "of_results", "of_table"]

#: parameters of a program that say how many of the machine's devices take part; 0 is all
_DEVICES = ("gpus", "workers")
#: parameters that tell devices apart: fewer of them would be another question
_UNLIKE = ("devices", "speeds", "stragglers")
#: counts of one line
_MOST = 12


def halvings(most: int) -> list[int]:
    """Counts below `most`, each half of the one before, rising.

    Examples
    --------
    >>> halvings(8), halvings(6), halvings(1)
    ([1, 2, 4], [1, 3], [])
    """
    found: list[int] = []
    while most > 1 and len(found) < _MOST - 1:
        most //= 2
        found.append(most)
    return found[::-1]


def fewer(
    scenario: Scenario, result: Result, *, play: Callable[..., Result] = run
) -> tuple[ScalingCurve | None, list[str]]:
    """Run a scenario on fewer devices, where its program has a parameter for their number and tells a rate of work.

    Parameters
    ----------
    scenario : Scenario
    result : Result
        Of the scenario itself, which is not run again.
    play : callable
        Runs one scenario; takes ``record``.

    Returns
    -------
    ScalingCurve or None
        None where there is nothing to vary, no rate to compare, or no other count that runs.
    list of str
        What was run for it, and what could not be; nothing where no other count runs.
    """
    key = next((name for name in _DEVICES if name in scenario.parameters), "")
    metrics = {name: metric.value for name, metric in result.metrics.items()}
    if not key or not rate_of(metrics):
        return None, []
    unlike = next((name for name in _UNLIKE if scenario.parameters.get(name)), "")
    if unlike:
        return None, [f"Not run on fewer devices: {unlike} tells them apart, and others would be left."]
    most = _count(scenario, result, key)
    results, failed = {most: result}, []
    for count in halvings(most):
        smaller = replace(scenario, parameters={**scenario.parameters, key: count}, expectations=(), measurements=())
        try:
            results[count] = play(smaller, record=False)
        except SimperfError as error:
            failed.append(f"{key} = {count} does not run: {_reason(error)}")
    found = scaling(results, key=key)
    if found is None:
        return None, []
    runs = ", ".join(str(point.count) for point in found.points[:-1])
    return found, [f"For this section the same program was also run with {key} = {runs}.", *failed]


def _reason(error: SimperfError) -> str:
    """The first line of an error, without the file that it names."""
    told = replace(error.problems[0], file="") if isinstance(error, InputError) else error
    return str(told).splitlines()[0]


def _count(scenario: Scenario, result: Result, key: str) -> int:
    """How many devices took part in a run."""
    given = int(scenario.parameters[key])
    if given:
        return given
    if "GPUs" in result.metrics:
        return round(result.metrics["GPUs"].value)
    busy = sum(use.kind == "device" and use.work > 0 for use in result.resources.values())
    return busy or (len(scenario.machine.gpus) if scenario.machine is not None else 0)


def of_results(results: Sequence[Result]) -> list[ScalingCurve]:
    """Lines of results that differ in a count, one for each value of all else that differs."""
    told = differences([result.scenario for result in results])
    key = _counted(told)
    if not key:
        return []
    lines: dict[str, dict[int, Result]] = {}
    for index, result in enumerate(results):
        others = {name: values[index] for name, values in told.items() if name != key and values[index] != "-"}
        label = ", ".join(f"{_short(name)} {value}" for name, value in others.items())
        if told[key][index].isdigit():
            lines.setdefault(label, {})[int(told[key][index])] = result
    return _lines((scaling(line, key=_short(key), label=label) for label, line in lines.items()))


def of_table(table: Table) -> list[ScalingCurve]:
    """Lines of a sweep over a count, one for each combination of the other keys."""
    key = _counted({name: tuple(map(str, table.column(name))) for name in table.keys})
    if not key:
        return []
    rows: dict[str, dict[int, tuple[float, Mapping[str, float]]]] = {}
    ends: dict[str, dict[int, tuple[float, float]]] = {}
    for row in table.rows:
        if row["error"] is not None:
            continue
        values: Mapping[str, Any] = row["set"]
        label = ", ".join(f"{_short(name)} {values[name]}" for name in table.keys if name != key)
        metrics = {name: value for name, (value, _) in row.get("metrics", {}).items()}
        rows.setdefault(label, {})[int(values[key])] = (row["time"], metrics)
        if "time" in row.get("intervals", {}):
            low, high = row["intervals"]["time"]
            ends.setdefault(label, {})[int(values[key])] = (low, high)
    return _lines(
        from_rates(line, key=_short(key), label=label, intervals=ends.get(label)) for label, line in rows.items()
    )


def _lines(found: Iterable[ScalingCurve | None]) -> list[ScalingCurve]:
    return [line for line in found if line is not None]


def _counted(values: Mapping[str, Sequence[str]]) -> str:
    """The key that counts what shares the work, if the values of one do."""
    for name in COUNTS:
        for key, listed in values.items():
            if _short(key) == name and sum(value.isdigit() and int(value) > 0 for value in listed) > 1:
                return key
    return ""


def _short(key: str) -> str:
    return key.rpartition(".")[2]
