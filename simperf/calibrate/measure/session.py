"""A measuring session: what is done is kept, what is not is measured, and an interruption loses nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.measure.facts import anonymous
from simperf.calibrate.measure.stolen import Stolen, taken_away
from simperf.calibrate.measure.task import Task, note_text
from simperf.errors import InputError, Problem

__all__ = ["Interrupted", "Session", "measure", "refuse_another"]

#: time between two savings [s]
SAVE_EVERY = 5.0
#: versions that must not change between the parts of one data set
_SAME = ("torch", "cuda", "driver")
#: conditions that are the same in a whole file
_EVERYWHERE = ("device", "threads")
#: facts that may: memory by some pages between two starts of a system
_MAY_DIFFER = frozenset({"memory"})


class Interrupted(KeyboardInterrupt):
    """The user ended the session; what was measured is in the file."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__("interrupted")
        self.dataset = dataset


@dataclass
class Session:
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
        Begin anew, whatever is in the file.
    now : callable
        A clock [s], for tests.

    Raises
    ------
    InputError
        The file is no data set, or of another machine, torch or condition.
    """

    path: str | os.PathLike[str]
    machine: Mapping[str, Value]
    versions: Mapping[str, str]
    conditions: Mapping[str, Value] = field(default_factory=dict)
    command: str = ""
    fresh: bool = False
    now: Callable[[], float] = time.monotonic
    dataset: Dataset = field(init=False)
    resumed: int = field(init=False, default=0)
    _fresh_points: dict[str, Measurement] = field(init=False, default_factory=dict)
    _notes: dict[str, None] = field(init=False, default_factory=dict)
    _now_there: set[str] = field(init=False, default_factory=set)
    _saved: float = field(init=False, default=0.0)
    _started: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._started = self._saved = self.now()
        made: dict[str, Value] = {"command": self.command, "date": _today(), "seconds": 0.0, **self.conditions}
        title = f"{self.machine.get('gpu') or self.machine.get('cpu') or 'machine'}, measured with torch"
        self.dataset = Dataset(title, dict(self.machine), dict(self.versions), made)
        if not self.fresh and Path(self.path).exists():
            old = Dataset.load(self.path)
            refuse_another(old, self.path, self.machine, self.versions, conditions=self.conditions)
            self.dataset = replace(old, made={**made, **old.made})
            self.resumed = len(old)

    def run(self, tasks: Iterable[tuple[str, Task | str]], *, tell: Callable[[str, str, int], None]) -> Dataset:
        """Measure what is missing, save as it goes on, and return all.

        Parameters
        ----------
        tasks : iterable of (family, Task or note)
        tell : callable
            Is told the family, the series and how many points more are done: before each task, and after each point.

        Raises
        ------
        Interrupted
            By the user; everything measured is saved.
        """
        done = {point.key for point in self.dataset}
        try:
            for family, task in tasks:
                if isinstance(task, str):
                    self._notes[task] = None
                    continue
                wanted = [index for index, key in enumerate(task.keys) if key not in done]
                tell(family, task.title, len(task.points) - len(wanted))
                left = len(wanted)
                with closing(self._task(task, wanted)) as measured:  # so that its processes end with an interruption
                    for _ in measured if wanted else ():
                        tell(family, task.title, 1)
                        left -= 1
                tell(family, task.title, left)  # what could not be measured
        except KeyboardInterrupt:
            self.save()
            raise Interrupted(self.dataset) from None
        except BaseException:
            self.save()
            raise
        self.save()
        return self.dataset

    def _task(self, task: Task, wanted: Sequence[int]) -> Generator[None, None, None]:
        """Measure points of a task, one by one."""
        taken: set[str] = set()
        watch = Stolen()
        try:
            for measured in task.run(wanted):
                share = watch.lap()
                taken.add(measured.key)
                self._now_there.add(note_text(_place(measured.series, measured.at), ""))
                # seven digits are more than any clock has, and a file of them is half as large
                samples = tuple(float(f"{reading:.7g}") for reading in measured.samples)
                warnings = (*measured.warnings, *taken_away(share))
                told = replace(measured, samples=samples, warnings=warnings, stolen=share)
                self._fresh_points[told.key] = told
                if self.now() - self._saved > SAVE_EVERY:
                    self.save()
                yield
        except (RuntimeError, OSError, ImportError, NotImplementedError, ValueError) as error:
            lost = [task.points[index] for index in wanted if task.keys[index] not in taken]
            words = anonymous(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
            more = f" (and {len(lost) - 1} points more)" if len(lost) > 1 else ""
            for series, at in lost[:1]:
                self._notes[note_text(_place(series, at), words[:200] + more)] = None

    def save(self) -> None:
        """Write what is there to the file."""
        made = dict(self.dataset.made)
        now = self.now()
        made["seconds"] = round(float(made.get("seconds", 0.0)) + now - self._started, 1)
        self._started = self._saved = now
        kept = (text for text in self.dataset.notes if not text.startswith(tuple(self._now_there)))
        notes = tuple(dict.fromkeys((*kept, *self._notes)))
        self.dataset = replace(self.dataset.with_points(self._fresh_points.values()), made=made, notes=notes)
        self._fresh_points.clear()
        self.dataset.save(self.path)


def refuse_another(
    old: Dataset,
    path: str | os.PathLike[str],
    machine: Mapping[str, Value],
    versions: Mapping[str, str],
    *,
    conditions: Mapping[str, Value],
) -> None:
    """Refuse to go on with a file of another machine, another torch or other conditions.

    Parameters
    ----------
    old : Dataset
        What is in the file.
    path : str or os.PathLike
        The file, for messages.
    machine, versions, conditions : mapping
        As they are now.

    Raises
    ------
    InputError
        All that differs.
    """
    pairs: list[tuple[str, object, object]] = []
    for name in dict.fromkeys((*old.machine, *machine)):
        if name not in _MAY_DIFFER:
            pairs.append((name, old.machine.get(name), machine.get(name)))
    pairs += [(name, old.versions.get(name), versions.get(name)) for name in _SAME]
    pairs += [(name, old.made.get(name), value) for name, value in conditions.items()]
    problems = [
        Problem(
            "holds measurements of another machine or set-up",
            file=os.fspath(path),
            key=name,
            value=repr(was),
            expected=f"{is_!r}, as here; --fresh begins anew, another -o keeps both",
        )
        for name, was, is_ in pairs
        if was != is_
    ]
    if problems:
        raise InputError(problems)


def measure(
    session: Session,
    tasks: Iterable[tuple[str, Task | str]],
    *,
    tell: Callable[[str, str, int], None] = lambda family, series, count: None,
) -> Dataset:
    """Run a session to its end: see `Session.run`."""
    return session.run(tasks, tell=tell)


def _place(series: str, at: Mapping[str, Value]) -> str:
    """A point in words, for a note."""
    return f"{series} at " + ", ".join(f"{key} {value}" for key, value in at.items() if key not in _EVERYWHERE)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
