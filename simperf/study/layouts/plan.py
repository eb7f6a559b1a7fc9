"""The answer of a search: layouts in their order, why the others lose, and what nothing beats."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from simperf.analysis.intervals import intervals_of
from simperf.errors import InputError, Problem, SimperfError
from simperf.json_format import FORMAT, finite
from simperf.outputs import data_frame, drawn, html_table, report_module, write_document, write_page
from simperf.results import Result
from simperf.run import MOST_EVENTS, run
from simperf.scenario import Scenario, make_scenario
from simperf.scenario.own_constants import own_constants
from simperf.study.executors import check_engine
from simperf.study.layouts.axes import LayoutChoice
from simperf.study.layouts.nearest import SIMULATED, nothing_fits, reasons_of
from simperf.study.layouts.ranked_layout import RankedLayout
from simperf.study.layouts.reasons import losses, step_parts
from simperf.study.layouts.request import LayoutRequest, load_layouts, make_layouts
from simperf.study.layouts.scenarios import layout_scenario
from simperf.study.layouts.search import MEMORY, STEP, TOKENS, Searched, search
from simperf.study.layouts.ties import TIE, groups
from simperf.study.layouts.weighing import WeighedMachine, weigh
from simperf.study.planning.lifetime import failing_lifetime, history_events
from simperf.study.sweep import Progress
from simperf.training.pipelined.excess import refused_events
from simperf.training.pipelined.whole_run import state_nbytes
from simperf.training.replica import Dimensions

__all__ = ["LayoutPlan", "RankedLayout", "plan_layouts"]

#: engine that is chosen here, and the events of a run from which on processes are worth their start: a second or more
_AUTO, _LONG = "auto", 50_000.0
_USED = "model FLOP utilisation"


@dataclass(frozen=True)
class LayoutPlan:
    """Layouts in their order.

    Parameters
    ----------
    request : LayoutRequest
    ranked : tuple of RankedLayout
        Those that were simulated, the feasible ones first, by the time of a step.
    failed : tuple of (str, str)
        Those whose run failed, and why.
    searched : tuple of Searched
        Of each machine.
    why_not : str
        Why there are no intervals; empty if there are.
    """

    request: LayoutRequest
    ranked: tuple[RankedLayout, ...]
    failed: tuple[tuple[str, str], ...]
    searched: tuple[Searched, ...]
    why_not: str = ""

    @property
    def winner(self) -> RankedLayout:
        """The first."""
        return self.ranked[0]

    def scenario(self, number: int = 1) -> Scenario:
        """The scenario that simulated layout `number`, for `simperf.run` and `simperf.limits`.

        Raises
        ------
        InputError
            No such layout.
        """
        if not 1 <= number <= len(self.ranked):
            expected = f"1 to {len(self.ranked)}"
            raise InputError(Problem(f"there is no layout {number}", file="--explain", expected=expected))
        one = self.ranked[number - 1]
        data = layout_scenario(self.request, one.machine, one.choice)
        if self.large(one):
            data["run"] = {"force": True}  # the search took its many events upon itself
        return make_scenario(data, folder=self.request.folder)

    def detailed(self, play: Callable[[Scenario], Result] = run) -> dict[str, Any]:
        """A run of the winner with its timeline, and its machine, for a page; nothing where it has too many events."""
        if self.large(self.winner):
            return {}
        data = layout_scenario(self.request, self.winner.machine, self.winner.choice)
        data.pop("run", None)  # forced runs have no limit, and what is drawn has one
        scenario = make_scenario(data, folder=self.request.folder)
        try:
            return {"winner": play(scenario), "machine": scenario.machine}
        except SimperfError as error:
            if self.request.force and refused_events(str(error)) is not None:
                return {}
            raise

    def large(self, one: RankedLayout) -> bool:
        """Whether a layout has more events than a run simulates unasked."""
        return any(one.choice in each.large for each in self.searched if each.machine.machine == one.machine)

    def counts(self) -> dict[str, int]:
        """Number of layouts that were looked at, and what became of them."""
        return {
            "layouts": sum(one.machine.layouts for one in self.searched),
            "do not fit": sum(len(one.machine.full) for one in self.searched),
            "simulated": sum(row["error"] is None for one in self.searched for _, row in one.played),
            "without result": sum(row["error"] is not None for one in self.searched for _, row in one.played),
            "ruled out by bound": sum(len(one.left) for one in self.searched if one.finished),
            "not reached": sum(len(one.left) for one in self.searched if not one.finished),
            "cannot be simulated": sum(sum(one.machine.refusals.values()) for one in self.searched),
        }

    def gap(self) -> float:
        """By how much a layout that gave no result may be faster than the fastest on its machine, at most [1].

        Such are those that were not reached, or whose run failed or is refused, as one of too many events without
        ``plan.force``.
        """
        found = 0.0
        for one in self.searched:
            steps = [each.step for each in self.ranked if each.machine == one.machine.machine]
            bounds = [weighed.bound for weighed, row in one.played if row["error"] is not None]
            bounds += [weighed.bound for weighed in (*one.left[:1], *one.machine.crowded)]
            found = max([found, *(min(steps) / bound - 1.0 for bound in bounds if steps)])
        return found

    def bound_gap(self) -> float:
        """By how much the time of the fastest layout is above its own bound [1]."""
        fastest = min(self.ranked, key=lambda one: one.step)
        return fastest.step / fastest.bound - 1.0

    def near(self) -> int:
        """Layouts not simulated whose bound is so near to the fastest on their machine that they may be as fast.

        They cannot be faster, but might not be distinguished from it.
        """
        found = 0
        for one in self.searched:
            steps = [each.step for each in self.ranked if each.machine == one.machine.machine]
            found += sum(each.bound <= TIE * min(steps) for each in one.left) if steps else 0
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in SI units."""
        request = self.request
        return {
            "format": FORMAT,
            "title": request.title,
            "model": request.name,
            "batch": request.batch,
            "sequence": request.model.sequence,
            "assumed": list(request.assumed),
            "tokens": request.tokens or None,
            "deadline": finite(request.deadline),
            "budget": finite(request.budget),
            "counts": self.counts(),
            "gap": self.gap(),
            "gap of the bound": self.bound_gap(),
            "tie": TIE,
            "may be as fast": self.near(),
            "no_interval": self.why_not,
            "ranked": [_plain(one) for one in self.ranked],
            "failed": [{"layout": name, "reason": why} for name, why in self.failed],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path`, ``.json`` or ``.json.gz``, whole or not at all; the same search gives the same bytes."""
        write_document(path, self.to_dict())

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the time of a step and the memory of a GPU of each layout; write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("layout_pictures").draw_layouts(self), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: the ranking, the search, and a step of the winner in detail.

        The winner is simulated once more, for its timeline, unless that would have too many events.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        winner = self.detailed()
        write_page(path, lambda pages: pages.layouts_report(self, **winner))

    def _repr_html_(self) -> str:
        header = ["#", "group", "layout", "GPUs", "step [s]", "MFU", "memory [GB]", "why"]
        rows = [
            [
                str(one.number),
                str(one.group or ""),
                one.choice.name,
                str(one.machine.gpus),
                f"{one.step:.4g}",
                f"{one.used:.3f}",
                f"{one.memory / 1e9:.1f}",
                one.reason,
            ]
            for one in self.ranked
        ]
        return html_table(header, rows, caption=self.request.title)

    def to_pandas(self) -> Any:
        """A row a layout, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        rows = self.to_dict()["ranked"]
        return data_frame(rows, list(dict.fromkeys(key for row in rows for key in row)))

    def __repr__(self) -> str:
        return f"<LayoutPlan {self.request.title!r}: {len(self.ranked)} simulated; {self.winner.choice.name}>"


def plan_layouts(
    request: LayoutRequest | Mapping[str, Any] | str | os.PathLike[str],
    *,
    engine: str | Executor = "serial",
    journal: str | None = None,
    fresh: bool = False,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> LayoutPlan:
    """Find the layouts with which a model trains fastest on one machine or several.

    Parameters
    ----------
    request : LayoutRequest, mapping or path
        A file with a table ``[layouts]``, or plain data with its tables and keys.
    engine, fresh, cache, progress
        As in `simperf.study.sweep.sweep`. Engine ``"auto"`` is ``"local"`` where runs are long, else ``"serial"``.
    journal : str, optional
        File that keeps each finished layout, from which an interrupted search continues.

    Raises
    ------
    InputError
        The file is wrong; no layout divides the model; none fits, then with the nearest that does; or none can be
        simulated.
    """
    check_engine(engine, chosen=_AUTO)
    if isinstance(request, Mapping):
        request = make_layouts(request)
    elif not isinstance(request, LayoutRequest):
        request = load_layouts(request)
    machines = [weigh(request, one) for one in request.machines]
    if not any(one.fitting for one in machines):
        raise nothing_fits(request, machines)
    if engine == _AUTO:
        engine = "local" if max(one.least_events() for one in machines) >= _LONG else "serial"
    found = search(request, machines, engine=engine, journal=journal, fresh=fresh, cache=cache, progress=progress)
    return _answer(request, found)


def _answer(request: LayoutRequest, found: list[Searched]) -> LayoutPlan:
    """The layouts in their order."""
    ranked, failed, why_not = list[RankedLayout](), list[tuple[str, str]](), ""
    for one in found:
        for weighed, row in one.played:
            if row["error"] is not None:
                failed.append((weighed.choice.name, _failure(str(row["error"]))))
                continue
            made, why_not = _ranked_layout(request, one.machine, weighed.choice, weighed.bound, row)
            ranked.append(made)
    if not ranked:
        reasons = reasons_of(why for _, why in failed)
        raise InputError(
            request.toml.problem(("layouts",), f"no layout can be simulated: {reasons}", expected=SIMULATED)
        )
    ranked.sort(key=lambda one: (not one.feasible, one.time or one.step, one.cost or 0.0, one.choice.name))
    good = [index for index, one in enumerate(ranked) if one.feasible]
    keys = [(one.time or one.step, one.cost, float(one.machine.gpus)) for one in (ranked[index] for index in good)]
    front = {index for index, key in zip(good, keys, strict=True) if not any(_beats(other, key) for other in keys)}
    told = tuple(
        replace(one, number=number, group=group, best=number - 1 in front, reason=losses(request, one, ranked, group))
        for number, (one, group) in enumerate(zip(ranked, groups(ranked), strict=True), 1)
    )
    return LayoutPlan(request, told, tuple(failed), tuple(found), why_not)


def _beats(one: tuple[float | None, ...], other: tuple[float | None, ...]) -> bool:
    """Whether a point is as low as another one everywhere, and lower somewhere; an unknown cost is not below any."""
    pairs = zip(one, other, strict=True)
    return one != other and all(a == b or (a is not None and b is not None and a <= b) for a, b in pairs)


def _ranked_layout(
    request: LayoutRequest, machine: WeighedMachine, choice: LayoutChoice, bound: float, row: Mapping[str, Any]
) -> tuple[RankedLayout, str]:
    """A layout with the numbers of its run, and why it has no interval."""
    metrics = {name: value for name, (value, _) in row["metrics"].items()}
    numbers = {name: (value, unit) for name, (value, unit) in row["metrics"].items() if value is not None}
    step, place = float(metrics[STEP]), machine.machine
    parameters = {
        "strategy": "model-parallel",
        "layout": choice.layout,
        "model": request.model,
        "batch": request.batch,
        "microbatch": choice.microbatch,
    }
    played = make_scenario(layout_scenario(request, place, choice), folder=request.folder)
    ends, _, why_not = intervals_of("train", parameters, numbers, gpus=place.gpus, changed=own_constants(played))
    time, work = None, request.steps * step
    if request.tokens:
        time = _with_failures(request, place.servers, choice.precision, work) if request.failures else work
    cost = None if place.price is None or time is None else place.price * time / 3600
    late = (time or 0.0) > request.deadline or (cost or 0.0) > request.budget
    made = RankedLayout(
        0,
        place,
        choice,
        bound,
        step,
        ends.get(STEP),
        float(metrics.get(_USED) or 0.0),
        float(metrics[TOKENS]),
        float(metrics[MEMORY]),
        time,
        cost,
        step_parts(metrics),
        work / time if time else 1.0,
        not late,
    )
    return made, why_not


def _failure(error: str) -> str:
    """Why a run failed, in a line; of one that is refused for its events, that it can be asked for."""
    first, *more = error.splitlines()
    if any("--force" in line for line in more):
        return f"{first.partition(': ')[2].partition(' (read:')[0] or first}; --force simulates it"
    return first


def _with_failures(request: LayoutRequest, servers: int, precision: str, work: float) -> float:
    """The mean time of a job that trains for `work` [s], with its failures and checkpoints [s].

    Raises
    ------
    InputError
        Histories of too many events, without ``plan.force``.
    """
    said = request.failures
    assert said is not None
    size = state_nbytes(Dimensions(request.model, precision=precision))
    events = history_events(said, servers, size, work)
    if events > MOST_EVENTS and not request.force:
        message = f"histories of about {events:.3g} events would be simulated, more than {MOST_EVENTS:.3g}"
        fewer = max(1, int(said.runs * MOST_EVENTS / events))
        expected = f"at most {fewer}; or --force (plan.force = true), which simulates them all"
        raise InputError(request.toml.problem(("failures", "runs"), message, value=said.runs, expected=expected))
    return failing_lifetime(said, servers, size, work).time


def _plain(one: RankedLayout) -> dict[str, Any]:
    """A row of the ranking as plain data."""
    layout = one.choice.layout
    return {
        "number": one.number,
        "machine": one.machine.name,
        "gpus": one.machine.gpus,
        **{key: getattr(layout, key) for key in ("tp", "cp", "ep", "pp", "dp", "sharding")},
        **one.choice.options(),
        "step": one.step,
        "step_interval": list(one.interval) if one.interval else None,
        "bound": one.bound,
        "utilisation": one.used,
        "tokens_per_second": one.tokens,
        "memory": one.memory,
        "time": one.time,
        "goodput": one.goodput,
        "cost": one.cost,
        "price": one.machine.price,
        "price_source": one.machine.price_source,
        "feasible": one.feasible,
        "best": one.best,
        "group": one.group,
        "parts": dict(one.parts),
        "reason": one.reason,
    }
