"""The plan: candidates are bounded, simulated, counted with their failures, ranked, with the reason why each loses."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem
from simperf.json_file import read_json
from simperf.json_format import FORMAT, finite
from simperf.outputs import data_frame, drawn, html_table, report_module, write_document, write_page
from simperf.run import MOST_EVENTS, run
from simperf.scenario import Scenario, make_scenario
from simperf.scenario.own_constants import estimated_architecture, own_constants
from simperf.study.executors import check_engine
from simperf.study.planning.candidates import (
    CandidateBound,
    Configuration,
    bound_of,
    choices,
    gpu_of,
    scenario_data,
)
from simperf.study.planning.lifetime import Lifetime, lifetime, refuse_histories
from simperf.study.planning.plan_file import read_plan
from simperf.study.planning.precision import AUTO, lacks_peak
from simperf.study.planning.ranked import Candidate, candidate_of, cells, plain, ranked
from simperf.study.planning.refusal import Bounded, nearest_bounds, refusal
from simperf.study.planning.request import Request, load_request, make_request
from simperf.study.planning.rounding import dollars, hours
from simperf.study.planning.spread import candidate_spread
from simperf.study.points import Row, Task, refuse_unused_in
from simperf.study.preflight import refuse_runs
from simperf.study.run_point import run_task
from simperf.study.sweep import Progress, run_tasks

__all__ = ["Candidate", "TrainingPlan", "plan"]

_RATE, _EXPOSED, _STEP = "samples per second", "exposed communication", "time per step"
#: share of a step's time from which waiting for communication is what a loser is told [1]
_WAITS = 0.15
#: candidates that a line names by their numbers
_NAMED = 6
#: time to simulate a candidate, and for each of its nodes [s], about; and of all from which on processes are worth it
_EACH, _NODE, _LONG = 0.04, 0.002, 5.0
#: engine that is chosen here
_AUTO = "auto"
#: candidates, and their nodes together, that are simulated: two minutes
_MOST_SIMULATED, _MOST_TOGETHER = 2_500, 50_000


@dataclass(frozen=True)
class TrainingPlan:
    """Candidates in their order.

    Parameters
    ----------
    request : Request
    ranked : tuple of Candidate
        Those that were simulated, the feasible ones first, by the objective.
    pruned : tuple of Candidate
        Those that bounds ruled out, and those whose run failed.
    """

    request: Request
    ranked: tuple[Candidate, ...]
    pruned: tuple[Candidate, ...]

    @property
    def winner(self) -> Candidate:
        """The first."""
        return self.ranked[0]

    def scenario(self, number: int) -> Scenario:
        """The scenario that simulated candidate `number`, for `simperf.run` and `simperf.limits`.

        Raises
        ------
        InputError
            No such candidate.
        """
        found = [one for one in self.ranked if one.number == number]
        if not found:
            raise InputError(
                Problem(f"there is no candidate {number}", file="--explain", expected=f"1 to {len(self.ranked)}")
            )
        return make_scenario(scenario_data(self.request, found[0].choice), folder=self.request.folder)

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the ranking, for people."""
        assumed = self.request.precision == AUTO
        header = ["#", "group", "candidate", "GPUs", *(["precision"] if assumed else []), "time", "cost"]
        header += ["samples/s", "memory/GPU", "busiest", "verdict"]
        return header, [cells(one, precision=assumed) for one in self.ranked]

    def interval_lines(self) -> list[str]:
        """Sources of the intervals of the ranking, and why candidates have none, a line each."""
        made = dict.fromkeys(f"{name}: {text}" for one in self.ranked for name, text in one.spread.sources.items())
        missing = dict[str, list[int]]()
        for one in self.ranked:
            if one.spread.time is None:
                missing.setdefault(re.sub(r": difficulty .*", "", one.spread.why_not), []).append(one.number)
        without = (f"No 90 % interval{self._of(own)}: {text}" for text, own in missing.items())
        return [*(f"90 % intervals from {text}" for text in made), *without]

    def _of(self, numbers: Sequence[int]) -> str:
        """Which candidates a line is about; empty if it is about all."""
        if len(numbers) == len(self.ranked):
            return ""
        more = f" and {len(numbers) - _NAMED} more" if len(numbers) > _NAMED else ""
        return f" of {', '.join(f'#{number}' for number in numbers[:_NAMED])}{more}"

    def precision_line(self) -> str:
        """The precision that was assumed on each GPU; empty if the plan names one."""
        if self.request.precision != AUTO:
            return ""
        gpus: dict[str, list[str]] = {}
        for one in (*self.ranked, *self.pruned):
            part = gpu_of(self.request.catalog, one.choice.instance)
            name = f"{part.name} (no peak of {part.fp32_products} is given)" if lacks_peak(part) else part.name
            if name not in (names := gpus.setdefault(one.choice.precision, [])):
                names.append(name)
        told = "; ".join(f"{precision} on {', '.join(names)}" for precision, names in gpus.items())
        return f"No precision is given. Assumed, as frameworks compute products of fp32 tensors: {told}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in SI units, as the file has it (`simperf.study.planning.plan_file`)."""
        return {
            "format": FORMAT,
            "title": self.request.title,
            "samples": self.request.samples,
            "deadline": finite(self.request.deadline),
            "budget": finite(self.request.budget),
            "objective": self.request.objective,
            "request": dict(self.request.toml.data),
            "ranked": [plain(one, self.request) for one in self.ranked],
            "pruned": [plain(one, self.request) for one in self.pruned],
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw time and cost of all candidates, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("plans").draw_plan(self), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: the ranking, why the others lose, and some steps of the winner.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        first = self.scenario(1)
        write_page(path, lambda pages: pages.plan_report(self, winner=run(first), machine=first.machine))

    def to_pandas(self) -> Any:
        """A row a candidate, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        document = self.to_dict()
        rows = [*document["ranked"], *document["pruned"]]
        return data_frame(rows, list(rows[0]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path`, ``.json`` or ``.json.gz``, whole or not at all; the same plan gives the same bytes."""
        write_document(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TrainingPlan:
        """Read what `save` wrote; what the plan's file names by a path is looked up here.

        Raises
        ------
        InputError
            The file is missing, not a finished plan, or of another format.
        """
        name = os.fspath(path)
        saved = read_json(name, what="not a finished plan", expected="what `simperf plan --save` wrote")
        found = read_plan(saved.data, file=saved)
        plan = found.request.get("plan", {})
        head = {"title": found.title, **plan} if isinstance(plan, Mapping) else plan
        try:
            request = make_request({**found.request, "plan": head})
        except InputError as error:
            placed = [
                replace(
                    saved.problem(("request", *one.key.split(".")), one.message),
                    value=one.value,
                    key=f"request.{one.key}",
                    expected=one.expected,
                )
                for one in error.problems
            ]
            raise InputError(placed) from None
        ranking, others = (
            tuple(candidate_of(row, request.precision) for row in rows) for rows in (found.ranked, found.pruned)
        )
        return cls(request, ranking, others)

    def __repr__(self) -> str:
        first = self.winner
        what = f"{first.choice.name}: {hours(first.time)}, {dollars(first.cost)}"
        return f"<TrainingPlan {self.request.title!r}: {len(self.ranked)} simulated, {len(self.pruned)} not; {what}>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=self.request.title)


def plan(
    request: Request | Mapping[str, Any] | str | os.PathLike[str],
    *,
    engine: str | Executor = "serial",
    samples: int = 0,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> TrainingPlan:
    """Find the machines that train a model in time and within a budget.

    Parameters
    ----------
    request : Request, mapping or path
        A plan's file, or plain data with its tables and keys.
    engine, samples, cache, progress
        As in `simperf.study.sweep.sweep`. Engine ``"auto"`` is ``"local"`` where runs are long, else ``"serial"``.

    Raises
    ------
    InputError
        The file is wrong; too many candidates or draws, without ``plan.force``; or nothing is feasible: then the
        nearest candidate is named, and what would have to give.
    """
    check_engine(engine, chosen=_AUTO)
    if isinstance(request, Mapping):
        request = make_request(request)
    elif not isinstance(request, Request):
        request = load_request(request)
    made = [(choice, bound_of(request, choice)) for choice in choices(request)]
    kept = [(choice, verdict) for choice, verdict in made if not verdict.reason]
    ruled_out = [(choice, verdict) for choice, verdict in made if verdict.reason]
    _refuse_excess(request, [choice for choice, _ in kept])
    if engine == _AUTO:
        time = max(1, samples) * sum(_EACH + _NODE * choice.nodes for choice, _ in kept)
        engine = "local" if time >= _LONG else "serial"

    def play(bounded: Sequence[Bounded]) -> tuple[list[Candidate], list[Candidate]]:
        return _simulate(request, bounded, engine=engine, samples=samples, cache=cache, progress=progress)

    simulated, failed = play(kept)
    pruned = [*(_pruned(request, choice, verdict) for choice, verdict in ruled_out), *failed]
    if not any(one.feasible for one in simulated):
        near, _ = play(nearest_bounds(request, ruled_out, simulated))
        raise refusal(request, [*simulated, *near], pruned)
    return TrainingPlan(request, tuple(ranked(request, simulated)), tuple(pruned))


def _simulate(
    request: Request,
    bounded: Sequence[Bounded],
    *,
    engine: str | Executor,
    samples: int,
    cache: bool,
    progress: Callable[[Progress], None] | None,
) -> tuple[list[Candidate], list[Candidate]]:
    """Simulate candidates: those that ran, and those that failed, each with its reason."""
    refuse_runs(len(bounded), samples, force=request.force, key="plan.force")
    histories = [(choice.nodes, choice.precision, verdict.time) for choice, verdict in bounded]
    refuse_histories(request, histories, MOST_EVENTS)
    tasks = [_task(request, index, choice, samples) for index, (choice, _) in enumerate(bounded)]
    rows = run_tasks(tasks, engine=engine, cache=cache, progress=progress, work=run_candidate, needs=(_RATE,))
    refuse_unused_in(rows)
    ran, failed = [], []
    for (choice, verdict), row in zip(bounded, rows, strict=True):
        if row["error"] is None:
            ran.append(_candidate(request, choice, row))
            continue
        reason = str(row["error"]).splitlines()[0]
        reason += "; --force simulates it" if "--force" in row["error"] and "--force" not in reason else ""
        failed.append(_pruned(request, choice, replace(verdict, reason=reason)))
    return ran, failed


def _refuse_excess(request: Request, kept: Sequence[Configuration]) -> None:
    """Refuse candidates that bounds leave, and that take too long to be simulated, without ``plan.force``.

    Raises
    ------
    InputError
        With the number, and what to change.
    """
    nodes = sum(choice.nodes for choice in kept)
    for number, most, what, key in (
        (len(kept), _MOST_SIMULATED, "candidates would be simulated", ()),
        (nodes, _MOST_TOGETHER, f"nodes would be simulated, of {len(kept):,} candidates together", ("nodes",)),
    ):
        if number > most and not request.force:
            expected = "fewer of them, or [limits] that rule some out; or --force (plan.force = true)"
            message = f"{number:,} {what}, more than {most:,}"
            raise InputError(request.toml.problem(("candidates", *key), message, expected=expected))


def run_candidate(task: Task) -> Row:
    """Simulate a candidate's steps; what a worker does."""
    return run_task(task)


def _task(request: Request, index: int, choice: Configuration, samples: int) -> Task:
    return {
        "point": index,
        "set": {},
        "seed": 0,
        "samples": samples,
        "record": False,
        "data": scenario_data(request, choice),
        "folder": request.folder,
        "path": str(Path(request.toml.path).absolute()) if request.toml.path else "",
        "name": choice.name,
    }


def _own_constants(request: Request, choice: Configuration) -> str:
    """What stands for the catalogue's constants in a choice, in words; parts of one's own come from a folder."""
    if not request.toml.data.get("candidates", {}).get("folder"):
        return ""
    return own_constants(make_scenario(scenario_data(request, choice), folder=request.folder))


def _candidate(request: Request, choice: Configuration, row: Mapping[str, Any]) -> Candidate:
    """From the pace of some steps to the whole job, its failures and its price."""
    metrics = {name: value for name, (value, _) in row["metrics"].items()}
    rate = metrics[_RATE]
    work = request.samples / rate
    price = request.prices.of(choice.instance) * choice.nodes / 3600
    found = lifetime(request, choice.nodes, choice.precision, work) if request.failures else Lifetime(work, work, work)
    drawn = row.get("intervals", {}).get(_RATE)
    spread = candidate_spread(
        metrics,
        found,
        model=request.use,
        gpus=choice.gpus,
        drawn=None if drawn is None else (drawn[0], drawn[1]),
        calibrated=bool(request.calibration),
        changed=_own_constants(request, choice),
        estimated=estimated_architecture(request.catalog.machine(choice.instance)),
        histories=request.failures.runs if request.failures else 0,
    )
    interval = spread.time
    memory = math.fsum(value for name, value in metrics.items() if name.startswith("memory: "))
    cost = found.time * price
    feasible = found.time <= request.deadline and not cost > request.budget
    share = metrics.get(_EXPOSED, 0.0) / metrics[_STEP] if metrics.get(_STEP) else 0.0
    waits = f"; GPUs wait {100 * share:.0f} % of a step for communication" if share > _WAITS else ""
    return Candidate(
        0,
        choice,
        found.time,
        cost,
        interval,
        None if interval is None or math.isnan(price) else (interval[0] * price, interval[1] * price),
        rate,
        work / found.time,
        memory,
        row["limited_by"],
        feasible,
        False,
        waits,
        spread,
    )


def _pruned(request: Request, choice: Configuration, verdict: CandidateBound) -> Candidate:
    cost = verdict.time / 3600 * request.prices.of(choice.instance) * choice.nodes
    return Candidate(0, choice, verdict.time, cost, memory=verdict.memory, reason=verdict.reason)
