"""A recorded training step, simulated again: on the GPU that it was recorded on, or on another one and its network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from simperf.errors import InputError, Problem
from simperf.execution import Program, wait
from simperf.execution.process_group import ProcessGroup
from simperf.execution.profile import FREE
from simperf.execution.session import Session
from simperf.programs.fields import Fields
from simperf.programs.recorded_costs import KernelRatios, recorded_gpu
from simperf.programs.recorded_play import PlayedRank, RankMeeting, RankMember
from simperf.programs.registry import program
from simperf.workload.recorded.causes import record_step
from simperf.workload.recorded.recorded_step import RecordedActivity, RecordedStep
from simperf.workload.recorded.trace_file import read_trace_file

__all__ = ["Recording", "recorded_step"]

#: traces of one job at most
MOST_TRACES = 64
_A_MACHINE = "a [machine], or --on NAME of `simperf replay`"


@dataclass(frozen=True, slots=True)
class Recording:
    """Traces of a training step, and how they are simulated.

    Parameters
    ----------
    trace : tuple of str
        files that torch's profiler wrote, one of each rank that is simulated
    recorded_on : str
        GPU of the recording; empty for what the traces say
    step : int
        number of the profiler's step; -1 for all
    collectives : str
        recorded times, or the machine's network where the trace says what is communicated
    host_speed : float
        how many times as fast the host is [1]
    """

    trace: tuple[str, ...] = ()
    recorded_on: str = ""
    step: int = -1
    collectives: Literal["network", "recorded"] = "network"
    host_speed: float = 1.0

    def __post_init__(self) -> None:
        problems = []
        if len(self.trace) > MOST_TRACES:
            message = f"more than {MOST_TRACES} traces"
            problems.append(Problem(message, key="trace", value=str(len(self.trace)), expected="those of a few ranks"))
        if not 0 < self.host_speed < float("inf"):
            message = "a factor above 0 is expected"
            problems.append(Problem(message, key="host_speed", value=repr(self.host_speed)))
        if self.step < -1:
            problems.append(Problem("no such step", key="step", value=str(self.step), expected="0 or more, or -1"))
        if problems:
            raise InputError(problems)


class _TraceOptions(Fields):
    """Options of a recording; its files are looked for beside the scenario."""

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all parameters."""
        values = super().completed(given)
        if isinstance(values["trace"], list | tuple) and all(isinstance(one, str) for one in values["trace"]):
            values["trace"] = [str(Path(folder) / one) for one in values["trace"]]
        return values


@program("recorded-step", options=_TraceOptions(Recording))
def recorded_step(m: Session, recording: Recording) -> Program:
    """Simulate a recorded training step again, from traces of torch's profiler.

    Parameters
    ----------
    m : Session
    recording : Recording
    """
    if not recording.trace:
        raise InputError(Problem("no trace is given", key="trace", expected='files, as in ["rank0.json.gz"]'))
    if m.profile != FREE:
        message = "has no effect: the trace says what the host does"
        raise InputError(Problem(message, key="frontend", expected="no [frontend] table"))
    steps = _aligned([record_step(read_trace_file(path), recording.step) for path in recording.trace])
    seen: set[int] = set()
    for path, one in zip(recording.trace, steps, strict=True):
        if one.world > 1 and one.rank in seen:
            message = "another trace is of this rank"
            raise InputError(Problem(message, file=path, value=f"rank {one.rank}", expected="a trace of each rank"))
        seen.add(one.rank)
    origin = min(one.origin for one in steps)
    ranks = [
        PlayedRank(m, device, one, duration, recording.host_speed, one.origin - origin)
        for (device, duration), one in zip(_devices(m, recording, steps), steps, strict=True)
    ]
    _join(m, recording, ranks)
    threads = [m.spawn(program, name, host=_host(m, rank)) for rank in ranks for name, program in rank.threads()]
    for thread in threads:
        yield wait(thread.done, why="wait: ranks")
    for rank in ranks:
        for stream in range(rank.step.streams):
            yield wait(rank.device.stream(stream).drained(), why="wait: GPU")
            # no step is shorter than what one stream does, one activity after the other
            m.simulation.path = max(m.simulation.path, rank.device.stream(stream).path)
    _tell(m, ranks)


def _host(m: Session, rank: PlayedRank) -> str:
    return str(m.machine.host_of(rank.device.name)) if m.simulation.machine is not None else ""


def _devices(m: Session, recording: Recording, steps: Sequence[RecordedStep]) -> list[tuple[Any, Any]]:
    """Device of each rank, and the time of an activity there."""
    if m.simulation.machine is None:
        if recording.recorded_on:
            message = "has no effect: without a machine every kernel takes as long as recorded"
            raise InputError(Problem(message, key="recorded_on", value=recording.recorded_on, expected=_A_MACHINE))
        if recording.collectives == "recorded":
            message = "has no effect: without a machine every collective takes as long as recorded"
            raise InputError(Problem(message, key="collectives", value=recording.collectives, expected=_A_MACHINE))
        return [(m.simulation.device(f"gpu{index}"), _as_recorded) for index in range(len(steps))]
    nodes = m.machine.gpus
    if len(steps) > len(nodes):
        message = f"there are {len(steps)} traces, and the machine has {len(nodes)} GPUs"
        raise InputError(Problem(message, key="trace", value=str(len(steps)), expected=f"at most {len(nodes)}"))
    from simperf.hardware import Catalog

    recorded, found = recorded_gpu(steps, recording.recorded_on, Catalog.load()), []
    for node, one in zip(nodes, steps, strict=False):
        device = m.simulation.device(node)
        part: Any = device.part
        same = part is not None and part.name == recorded.name
        found.append((device, _as_recorded if same else KernelRatios(recorded, part).time))
        m.notes.append(f"rank {one.rank}: recorded on {recorded.name}, simulated on {part.name}")
    return found


def _as_recorded(one: RecordedActivity) -> float:
    return one.duration


def _collectives(step: RecordedStep) -> list[int]:
    return [number for number, one in enumerate(step.activities) if one.kind.kind == "collective"]


def _aligned(steps: Sequence[RecordedStep]) -> list[RecordedStep]:
    """The steps on one clock: collectives that ranks do together end at one time."""
    from dataclasses import replace

    if len(steps) == 1:
        return list(steps)
    first, found = steps[0], [steps[0]]
    ends = [first.origin + first.activities[one].start + first.activities[one].duration for one in _collectives(first)]
    for step in steps[1:]:
        own = [step.origin + step.activities[one].start + step.activities[one].duration for one in _collectives(step)]
        if not own or not ends:
            message = "no collective, by whose end the clocks of several ranks are aligned"
            expected = "traces of ranks that communicate with each other, or one trace by itself"
            raise InputError(Problem(message, file=first.file if own else step.file, expected=expected))
        if len(own) != len(ends):
            message = f"{len(own)} collectives, and {len(ends)} in {first.file}"
            expected = "traces of the same steps of ranks that communicate with each other alone"
            raise InputError(Problem(message, file=step.file, expected=expected))
        found.append(replace(step, origin=step.origin - median(a - b for a, b in zip(own, ends, strict=True))))
    return found


def _join(m: Session, recording: Recording, ranks: Sequence[PlayedRank]) -> None:
    """Let ranks do their collectives together, on the network where it is known what they communicate."""
    numbers = [_collectives(one.step) for one in ranks]
    groups: dict[int, ProcessGroup] = {}
    members: dict[int, list[RankMember]] = {}
    meetings: list[dict[int, tuple[RankMeeting, float]]] = [{} for _ in ranks]
    played: list[dict[int, tuple[ProcessGroup, RankMember]]] = [{} for _ in ranks]
    kept, machine, asked, possible = 0, m.simulation.machine, recording.collectives == "network", False
    for same in zip(*numbers, strict=True):
        several = [one.step.activities[number] for one, number in zip(ranks, same, strict=True)]
        known = several[0].kind.collective
        size = (known.ranks or ranks[0].step.world) if known is not None else 0
        sized = known is not None and known.name and known.nbytes and size >= max(2, len(ranks))
        fits = machine is not None and sized and size <= len(machine.gpus)
        possible = possible or fits
        if machine is not None and asked and fits:
            if size not in groups:
                last = tuple(range(len(ranks) - 1, size))
                own = [(rank,) for rank in range(len(ranks) - 1)] + [last]
                members[size] = [RankMember(each, one.device) for each, one in zip(own, ranks, strict=True)]
                groups[size] = ProcessGroup(m, list(machine.gpus[:size]), members[size])
                m.groups["recorded", size] = groups[size]
            for its, number, member in zip(played, same, members[size], strict=True):
                its[number] = groups[size], member
            continue
        kept += 1
        if len(ranks) > 1:
            time, meeting = min(one.duration for one in several), RankMeeting(m.simulation.env, len(ranks))
            for each, number in zip(meetings, same, strict=True):
                each[number] = meeting, time
    if machine is not None and not asked and not possible and len(ranks) == 1:
        message = "has no effect: no collective of the trace can be simulated on the machine's network"
        expected = "a trace that says what they are, and a machine of as many GPUs as they have ranks"
        raise InputError(Problem(message, key="collectives", value=recording.collectives, expected=expected))
    for one, meeting_of, group_of in zip(ranks, meetings, played, strict=True):
        one.meetings, one.groups = meeting_of, group_of
    if machine is not None and kept:
        unknown = ": the trace does not say what they are, or the machine has fewer GPUs than they have ranks"
        m.notes.append(f"{kept} collectives take as long as recorded{unknown if asked else ''}")
    if groups and len(ranks) == 1:
        m.notes.append("collectives begin when this rank comes to them: one trace does not say when others do")


def _tell(m: Session, ranks: Sequence[PlayedRank]) -> None:
    """Report the metrics of a run."""
    steps = ranks[0].step.steps
    recorded = max(one.offset + one.step.time for one in ranks)
    m.metric("time per step", m.now / steps, "s")
    m.metric("recorded time per step", recorded / steps, "s")
    m.metric("steps", steps)
    m.metric("times as fast as recorded", recorded / m.now if m.now else 1.0)
    for kind, count in sorted(ranks[0].step.classes.items()):
        total = sum(one.duration for one in ranks[0].step.activities if one.kind.kind == kind)
        m.metric(f"{kind}: recorded time", total, "s")
        m.metric(f"{kind}: activities", count)
    shaped = sum(one.kind.op is not None for one in ranks[0].step.activities)
    m.metric("products of known shapes", shaped)
    if dropped := sum(one.step.dropped for one in ranks):
        m.notes.append(f"{dropped} activities are left out: the trace has no launch of them")
