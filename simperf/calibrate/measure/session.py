"""A measuring session: what is done is kept, what is not is measured, and an interruption loses nothing.

What the host of a virtual machine disturbed is measured again when all else is done, as far as there is time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.measure.budget import Budget, OutOfTime, time_limit
from simperf.calibrate.measure.facts import anonymous
from simperf.calibrate.measure.remeasure import AGAIN, calmer, repeat
from simperf.calibrate.measure.sensors import Sensors, throttled
from simperf.calibrate.measure.steal_time import Stolen, taken_away
from simperf.calibrate.measure.task import Task, note_text
from simperf.calibrate.sessions import refuse_another

__all__ = ["NO_TIME", "Interrupted", "MeasuringSession"]

#: what measuring again may take after however short a first round [s]
LEAST = 30.0
#: is told as a family while the end of a disturbance is waited for
WAITING = "the host of this machine is elsewhere: waiting"
#: what a point whose time nobody took may need besides its readings: processes start, and load torch [s]
_START = 5.0
#: what ends a task, and no session: all that a library of another version may raise
_FAILURES = (Exception,)
#: end of a note on points that there was no time for
NO_TIME = "of its points: no time was left"
#: conditions that are the same in a whole file
_EVERYWHERE = ("device", "threads")


class Interrupted(KeyboardInterrupt):
    """The user ended the session; what was measured is in the file."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__("interrupted")
        self.dataset = dataset


@dataclass
class MeasuringSession:
    """Measurements that go to one file.

    Parameters
    ----------
    path : str or os.PathLike
        The file: continued if it is there.
    machine : mapping of str to Value
    versions : mapping of str to str
    conditions : mapping of str to Value
        That must be the same in all of it: ``device``, ``threads``.
    command : str
        For the record.
    fresh : bool
        Begin again, whatever is in the file.
    seconds : float
        Within which disturbed points are measured again, all else included [s].
    now : callable
        A clock [s], for tests.
    budget : Budget, optional
        Time that the whole session has; by default as much as it takes.
    sensors : Sensors, optional
        Of the device, read over each point.
    recover : callable
        Makes the device usable again after a task that failed; fails itself if it is not.

    Raises
    ------
    InputError
        The file is not a data set, or of another machine, torch or condition.
    """

    path: str | os.PathLike[str]
    machine: Mapping[str, Value]
    versions: Mapping[str, str]
    conditions: Mapping[str, Value] = field(default_factory=dict)
    command: str = ""
    fresh: bool = False
    seconds: float = float("inf")
    now: Callable[[], float] = time.monotonic
    budget: Budget = field(default_factory=Budget)
    sensors: Sensors | None = None
    recover: Callable[[], object] = lambda: None
    dataset: Dataset = field(init=False)
    resumed: int = field(init=False, default=0)
    repeated: set[str] = field(init=False, default_factory=set)
    late: int = field(init=False, default=0)
    failed: dict[str, str] = field(init=False, default_factory=dict)
    unmeasured: dict[str, int] = field(init=False, default_factory=dict)
    _known: dict[str, Measurement] = field(init=False, default_factory=dict)
    _took: dict[str, float] = field(init=False, default_factory=dict)
    _notes: dict[str, None] = field(init=False, default_factory=dict)
    _now_there: set[str] = field(init=False, default_factory=set)
    _started: float = field(init=False, default=0.0)
    _began: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._began = self._started = self.now()
        made: dict[str, Value] = {"command": self.command, "date": _today(), "seconds": 0.0, **self.conditions}
        title = f"{self.machine.get('gpu') or self.machine.get('cpu') or 'machine'}, measured with torch"
        self.dataset = Dataset(title, dict(self.machine), dict(self.versions), made)
        if not self.fresh and Path(self.path).exists():
            old = Dataset.load(self.path)
            refuse_another(old, self.path, self.machine, self.versions, conditions=self.conditions)
            self.dataset = replace(old, made={**made, **old.made})
            self.resumed = len(old)
        self._known = {point.key: point for point in self.dataset}

    def run(self, tasks: Iterable[tuple[str, Task | str]], *, tell: Callable[[str, str, int], None]) -> Dataset:
        """Measure what is missing, then again what was disturbed; save as it continues, and return all.

        Points that were measured again are in `repeated` then, by key; `late` counts tasks that there was no time for;
        `failed` says of others why they could not be measured again; `unmeasured`, for how many points of each series
        there was no time at all.

        Parameters
        ----------
        tasks : iterable of (family, Task or note)
            In the order in which they are measured: one that does not fit into the time left makes way for the next.
        tell : callable
            Called with the family, the series and how many points more are done: before each task, and after each
            point; and while the end of a disturbance is waited for.

        Raises
        ------
        Interrupted
            By the user; everything measured is saved.
        """
        listed: list[tuple[str, Task]] = []
        lacking = 0
        try:
            for family, task in sorted(tasks, key=lambda item: self._failed_before(item[1])):
                if isinstance(task, str):
                    self._notes[task] = None
                    continue
                listed.append((family, task))
                wanted = [index for index, key in enumerate(task.keys) if key not in self._known]
                lacking += len(wanted)
                tell(family, task.title, len(task.points) - len(wanted))
                left = len(wanted)
                if wanted and not self.budget.fits(task, left):
                    self.unmeasured[task.title] = self.unmeasured.get(task.title, 0) + left
                    continue
                begin = self.now()
                with closing(self._task(task, wanted)) as measured:  # so that its processes end with an interruption
                    for _ in measured if wanted else ():
                        tell(family, task.title, 1)
                        left -= 1
                if wanted:
                    self.budget.took(task, len(wanted), self.now() - begin)
                tell(family, task.title, left)  # what could not be measured
            self._again(listed, first=lacking > 0, tell=tell)
        except KeyboardInterrupt:
            self.save()
            raise Interrupted(self.dataset) from None
        except BaseException:
            self.save()
            raise
        self.save()
        return self.dataset

    def _failed_before(self, task: Task | str) -> bool:
        """Whether a point of the task failed in an earlier session: what may stop the device for good comes last."""
        if isinstance(task, str) or not self.dataset.notes:
            return False
        starts = tuple(note_text(_place(series, at), "") for series, at in task.points)
        return any(text.startswith(starts) for text in self.dataset.notes)

    def _task(self, task: Task, wanted: Sequence[int]) -> Generator[None, None, None]:
        """Measure points of a task, one by one."""
        taken: set[str] = set()
        reason = ""
        try:
            for measured in self._readings(task, wanted):
                taken.add(measured.key)
                self._now_there.add(note_text(_place(measured.series, measured.at), ""))
                self._keep([measured])
                yield
        except OutOfTime:
            reason = "it was stopped at the end of the time"
        except _FAILURES as error:
            reason = _words(error)
        if reason:  # the error is gone here, and with it what its frames held of the device's memory
            lost = [task.points[index] for index in wanted if task.keys[index] not in taken]
            more = f" (and {len(lost) - 1} points more)" if len(lost) > 1 else ""
            for series, at in lost[:1]:
                self._notes[note_text(_place(series, at), reason + more)] = None
            self.recover()

    def _readings(self, task: Task, wanted: Sequence[int]) -> Generator[Measurement, None, None]:
        """What a task gives, with what was taken away meanwhile."""
        watch, begin = Stolen(), self.now()
        share: float | None = None
        sensors: Mapping[str, float] = {}
        running, count = task.run(wanted), 0
        while True:
            with time_limit(self.budget.left):
                measured = next(running, None)
            if measured is None:
                return
            if not (task.together and count):
                share = watch.lap()
                sensors = self.sensors.lap() if self.sensors is not None else {}
            # seven digits are more than any clock has, and a file of them is half as large
            samples = tuple(float(f"{reading:.7g}") for reading in measured.samples)
            warnings = (*measured.warnings, *taken_away(share), *throttled(sensors))
            self._took[measured.key] = self.now() - begin
            yield replace(measured, samples=samples, warnings=warnings, stolen=share, sensors=sensors)
            begin, count = self.now(), count + 1

    def _keep(self, points: Iterable[Measurement]) -> None:
        """Points from now on; they are in the file at once, which takes 30 ms where it has a thousand."""
        self._known.update((point.key, point) for point in points)
        self.save()

    def disturbed(self, tasks: Iterable[tuple[str, Task | str]]) -> list[tuple[str, Task, list[int]]]:
        """Points of tasks that are disturbed: families, tasks, and the indices of all that is read in the same go."""
        found = []
        for family, task in tasks:
            if isinstance(task, str):
                continue
            known = [self._known.get(key) for key in task.keys]
            wanted = [index for index, one in enumerate(known) if one is not None and taken_away(one.stolen)]
            if wanted:
                found.append((family, task, list(range(len(known))) if task.together else wanted))
        return found

    def _again(self, listed: Sequence[tuple[str, Task]], *, first: bool, tell: Callable[[str, str, int], None]) -> None:
        """Measure again what is disturbed, as long as there is time; `first` is whether there was a first round."""

        def take(item: tuple[str, Task, list[int]]) -> bool:
            family, task, wanted = item
            place = _place(*task.points[wanted[0]])
            tell(f"{family}, again", f"{task.title}, again", 0)
            made: list[Measurement] = []
            try:
                with closing(self._readings(task, wanted)) as measured:
                    for point in measured:
                        made.append(point)
                        if not task.together:
                            self._keep_calmer([point])
            except (*_FAILURES, OutOfTime) as error:  # the earlier readings stay
                self.failed[place] = _words(error)
                return False
            self.failed.pop(place, None)
            if task.together and made:
                self._keep_calmer(made)
            return any(taken_away(point.stolen) for point in made)

        spent = self.now() - self._began
        seconds = min(self.seconds, spent + max(AGAIN * spent, LEAST)) if first else self.seconds
        self.late = repeat(
            lambda: self.disturbed(listed),
            take,
            until=min(self._began + seconds, self.budget.end),
            duration=lambda item: self._duration(item[1], item[2]),
            waiting=lambda: tell(WAITING, WAITING, 0),
            now=self.now,
        )

    def _keep_calmer(self, made: Sequence[Measurement]) -> None:
        """Of what was read in one go, or was known of the same points, what was disturbed less."""
        before = [self._known[point.key] for point in made if point.key in self._known]
        self.repeated.update(point.key for point in made)
        self._keep(made if len(before) < len(made) else calmer(before, made))

    def _duration(self, task: Task, wanted: Sequence[int]) -> float:
        """How long points of a task will take: as long as before, with what its first point took to begin [s]."""
        asked = {task.keys[index]: None for index in (0, *wanted)}
        total = 0.0 if any(key in self._took for key in asked) else _START
        for key in asked:
            known = self._known.get(key)
            readings = 2.0 * sum(known.samples) if known is not None and known.unit == "s" else 0.0
            total += self._took.get(key, readings)
        return total

    def save(self) -> None:
        """Write what is there to the file."""
        made = dict(self.dataset.made)
        now = self.now()
        made["seconds"] = round(float(made.get("seconds", 0.0)) + now - self._started, 1)
        self._started = now
        kept = (text for text in self.dataset.notes if not text.startswith(tuple(self._now_there)))
        kept = (text for text in kept if not text.endswith(NO_TIME))
        late = (note_text(series, f"{count} {NO_TIME}") for series, count in self.unmeasured.items())
        notes = tuple(dict.fromkeys((*kept, *self._notes, *late)))
        self.dataset = replace(self.dataset.with_points(self._known.values()), made=made, notes=notes)
        self.dataset.save(self.path)


def _words(error: BaseException) -> str:
    """What went wrong, in a line without names of users and hosts."""
    return anonymous(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")[:200]


def _place(series: str, at: Mapping[str, Value]) -> str:
    """A point in words, for a note."""
    return f"{series} at " + ", ".join(f"{key} {value}" for key, value in at.items() if key not in _EVERYWHERE)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
