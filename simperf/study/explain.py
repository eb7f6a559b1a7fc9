"""A recorded step beside the simulated one: the difference by kernel family, communication, host and waits."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from simperf.analysis.step_parts import HOST, WAIT, GpuInterval
from simperf.engine.simulation import Simulation
from simperf.engine.tracks import split_track
from simperf.errors import InputError, Problem
from simperf.hardware import Catalog
from simperf.hardware.gpu_names import gpu_of_driver
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.results import Result
from simperf.run import run_placed
from simperf.scenario import Scenario, load_scenario
from simperf.study.recorded_step import COPY, ELEMENTWISE, MESSAGES, StepSide, recorded_step, step_side
from simperf.units import format_quantity
from simperf.workload.recorded.trace_file import TraceFile, read_trace_file

__all__ = ["Explained", "ExplainedPart", "explain"]

#: family of a simulated kernel -> part; all others are parts of their own name
_FAMILIES = {"gemm": "products", "conv": "convolutions", "attention": "attention", "optimizer": "optimizer"}
#: how many times as many matrix products a step has that is of another job
_ANOTHER = 1.5
#: difference of two steps that are called alike [1]
_ALIKE = 0.01
_COPY_FAMILY = {"copy": "copy kernels"}


class ExplainedPart(NamedTuple):
    """A part of a step: recorded and simulated time [s], and how many activities count to it in each."""

    part: str
    recorded: float
    simulated: float
    recorded_count: float
    simulated_count: float

    @property
    def difference(self) -> float:
        """Time that the recorded step takes longer [s]."""
        return self.recorded - self.simulated


@dataclass(frozen=True)
class Explained:
    """The difference between a recorded step and the simulated one, in parts that add up to it.

    Parameters
    ----------
    parts : tuple of ExplainedPart
        The largest difference first.
    recorded, simulated : float
        Time of a step, from its begin to its end [s].
    device : str
        Whose time it is in the simulation.
    notes : tuple of str
        What differs between trace and scenario besides times.
    """

    parts: tuple[ExplainedPart, ...]
    recorded: float
    simulated: float
    device: str
    notes: tuple[str, ...] = ()

    @property
    def difference(self) -> float:
        """Time that the recorded step takes longer [s]: the sum of all parts."""
        return self.recorded - self.simulated

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows, for people."""
        rows = [
            [
                one.part,
                format_quantity(one.recorded, "s"),
                format_quantity(one.simulated, "s"),
                _signed(one.difference),
                f"{one.recorded_count:g}" if one.recorded_count else "-",
                f"{one.simulated_count:g}" if one.simulated_count else "-",
            ]
            for one in self.parts
        ]
        whole = [format_quantity(self.recorded, "s"), format_quantity(self.simulated, "s"), _signed(self.difference)]
        return ["part", "recorded", "simulated", "difference", "count", "simulated count"], [
            *rows,
            ["a step", *whole, "", ""],
        ]

    @property
    def told(self) -> str:
        """Cause of the difference, in a sentence."""
        first = self.parts[0] if self.parts else None
        if first is None or abs(first.difference) < 1e-6 * max(self.recorded, self.simulated):
            return "the recorded step takes as long as the simulated one, part by part"
        counts = ""
        if round(first.recorded_count) != round(first.simulated_count):
            counts = f", {first.recorded_count:g} activities and not {first.simulated_count:g}"
        way = "longer" if first.difference > 0 else "less"
        verb = "take" if first.part.endswith("s") else "takes"
        told = f"{first.part} {verb} {format_quantity(abs(first.difference), 's')} {way}{counts}"
        if abs(self.difference) < _ALIKE * self.simulated:
            return f"both steps take the same time; of their parts {told}: kernels may count as another family"
        return f"most of it: {told}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, in SI units."""
        return {
            "recorded": self.recorded,
            "simulated": self.simulated,
            "difference": self.difference,
            "device": self.device,
            "parts": [{**one._asdict(), "difference": one.difference} for one in self.parts],
            "notes": list(self.notes),
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the parts of the difference, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("contributions").draw_differences(self), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: the parts of the difference.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        write_page(path, lambda pages: pages.difference_report(self))

    def to_pandas(self) -> Any:
        """A row a part, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        rows = self.to_dict()["parts"]
        return data_frame(rows, [*ExplainedPart._fields, "difference"])

    def __repr__(self) -> str:
        return f"<Explained: {_signed(self.difference)} of {format_quantity(self.recorded, 's')}, {self.told}>"

    def _repr_html_(self) -> str:
        return html_table(*self.rows(), caption=self.told)


def explain(
    trace: str | os.PathLike[str],
    scenario: Scenario | str | os.PathLike[str],
    *,
    step: int = -1,
    rank: int = -1,
    play: Callable[..., Result] = run_placed,
) -> Explained:
    """Align a step that torch's profiler recorded on one GPU with the simulated one.

    Parameters
    ----------
    trace : path
        What the profiler wrote: ``.json`` or ``.json.gz``.
    scenario : Scenario or path
        The same job, as a scenario.
    step : int
        Step of the profiler; -1 for the mean of all.
    rank : int
        Whose time is compared; -1 for the rank of the trace.
    play : callable
        Runs the scenario, as `simperf.run.run_placed`.

    Raises
    ------
    InputError
        No trace of a GPU, no such step or rank, or a scenario without a GPU's timeline.
    """
    file = read_trace_file(trace)
    recorded, steps = recorded_step(file, step)
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    seen: list[Simulation] = []
    result = play(scenario, watch=seen.append)
    recorder = seen[0].recorder if seen else None
    families = recorder.families if recorder is not None else {}
    number = rank if rank >= 0 else file.rank
    device, member = _device(scenario, result, number, given=rank >= 0)
    simulated = _simulated(result, device, families, _steps_of(scenario))
    notes = [*_products(recorded, simulated), *recorded.notes]
    notes += _notes(file, scenario, number, device, member, steps)
    names = dict.fromkeys([*recorded.parts, *simulated.parts])
    parts = [
        ExplainedPart(
            name,
            recorded.parts.get(name, 0.0),
            simulated.parts.get(name, 0.0),
            recorded.counts.get(name, 0.0),
            simulated.counts.get(name, 0.0),
        )
        for name in names
    ]
    parts.sort(key=lambda one: (-abs(round(one.difference, 12)), one.part))
    return Explained(tuple(parts), recorded.time, simulated.time, member, tuple(notes))


def _steps_of(scenario: Scenario) -> int:
    steps = scenario.parameters.get("steps", 1)
    return steps if isinstance(steps, int) and steps > 0 else 1


def _device(scenario: Scenario, result: Result, rank: int, *, given: bool) -> tuple[str, str]:
    """The device that was simulated for a rank, and the rank's own."""
    machine = scenario.machine
    gpus: Sequence[str] = tuple(machine.gpus) if machine is not None else ()
    layout = scenario.parameters.get("layout")
    count = getattr(layout, "ranks", 0) or len(gpus)
    spans = {split_track(span.track)[0] for span in result.spans}
    if not gpus or not spans & set(gpus):
        message = "no GPU of a machine has a timeline in it"
        raise InputError(Problem(message, file=scenario.path or "scenario", expected="a job on GPUs of a [machine]"))
    if rank >= min(count, len(gpus)):
        message = "the scenario has no such rank"
        where = "--rank" if given else "the trace"
        expected = f"--rank 0 to {min(count, len(gpus)) - 1}"
        raise InputError(Problem(message, file=where, value=str(rank), expected=expected))
    mine = gpus[rank]
    if mine in spans:
        return mine, mine
    for row in result.times:
        if mine in row.ranks:
            stands = next((one for one in row.ranks if one in spans), "")
            if stands:
                return stands, mine
    stands = next(one for one in gpus if one in spans)
    return stands, mine


def _simulated(result: Result, device: str, families: Mapping[str, str], steps: int) -> StepSide:
    """Parts of a simulated step of a device."""
    launched = {(one.to_track, one.to_time): one.from_time for one in result.arrows}
    threads = {one.from_track for one in result.arrows if split_track(one.to_track)[0] == device}
    hosts = {one for one in threads if split_track(one)[0] != device}
    found = []
    for span in result.spans:
        if span.end <= span.start or split_track(span.track)[0] != device:
            if span.category == "wait" and span.track in hosts:
                found.append(GpuInterval(span.start, span.end, "wait", WAIT, span.start))
            continue
        at = launched.get((span.track, span.start), 0.0)
        if span.category == "wait":
            found.append(GpuInterval(span.start, span.end, "wait", WAIT, at))
        if span.category in ("compute", "memory"):
            family = families.get(span.name, ELEMENTWISE)
            part = _FAMILIES.get(family) or _COPY_FAMILY.get(family, family)
            found.append(GpuInterval(span.start, span.end, "kernel", part, at))
        elif span.category == "communication":
            messages = span.name.startswith(("send", "receive"))
            label = MESSAGES if messages else span.name.split(" ")[0]
            found.append(GpuInterval(span.start, span.end, "communication", f"exposed {label}", at))
        elif span.category == "copy":
            found.append(GpuInterval(span.start, span.end, "copy", COPY, at))
    return step_side(found, [(0.0, result.time)], steps)


def _products(recorded: StepSide, simulated: StepSide) -> Iterator[str]:
    """A note on steps of far different numbers of matrix products, which are not of one job."""
    mine, other = recorded.counts.get("products", 0.0), simulated.counts.get("products", 0.0)
    if max(mine, other) > _ANOTHER * min(mine, other):
        told = f"the trace has {mine:,.6g} matrix products a step, the simulated step {other:,.6g}"
        yield f"{told}: of another model, batch or layout, or with other kernels"


def _notes(file: TraceFile, scenario: Scenario, rank: int, device: str, member: str, steps: int) -> Iterable[str]:
    """What differs besides times."""
    machine = scenario.machine
    if machine is not None and file.gpu:
        part = machine.nodes[member].part
        name = part.name if part is not None else ""
        known = gpu_of_driver(file.gpu, Catalog.load())
        chip = name.partition("-")[0].lower()
        words = re.split(r"[^a-z0-9]+", file.gpu.lower())
        if known.name != name if known is not None else chip and chip not in words:
            yield f"the trace is of {file.gpu}, the scenario of {name}"
    layout = scenario.parameters.get("layout")
    ranks = getattr(layout, "ranks", 0)
    if ranks and file.world > 1 and ranks != file.world:
        yield f"the trace is of a job of {file.world} ranks, the scenario of {ranks}"
    if device != member:
        yield f"rank {rank} is simulated as {device}, which does the same"
    if steps > 1:
        yield f"recorded times are means of {steps} steps"
    yield f"{HOST}: nothing runs until the host has launched it; {WAIT}: nothing runs of what is launched"


def _signed(value: float) -> str:
    """A difference of times, for people; 0 below a nanosecond, which is what traces resolve."""
    return "0" if abs(value) < 1e-9 else f"{'-' if value < 0 else '+'}{format_quantity(abs(value), 's')}"
