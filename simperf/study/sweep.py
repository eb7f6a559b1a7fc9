"""Many runs of one scenario: points, an engine that does them, and a file that survives all that may happen."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from simperf.answer import Answer
from simperf.errors import EngineError, InputError, Problem, SimperfError, refuse_removed
from simperf.scenario import Scenario, load_scenario
from simperf.study.axes import OPTION, Axis, Design, make_axes, make_points
from simperf.study.cache import Cache, cache_folder, folder_hash, point_key
from simperf.study.executors import check_engine, using, workers_of
from simperf.study.journal import Journal, canonical
from simperf.study.points import Row, Task, failed_row, make_tasks, point_scenario, refuse_unused_in
from simperf.study.rows import read_row, row_problem
from simperf.study.run_point import run_task
from simperf.study.table import Table, check_output

__all__ = ["Progress", "answer_of", "journal_of", "run_tasks", "sweep"]

#: tasks handed to the engine for each of its workers
_AHEAD = 4
#: time without a result after which an engine is asked whether one can come [s]
_LOOK = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a study.

    Parameters
    ----------
    done, total, failed : int
        Points; `done` counts all that have a row.
    known : int
        Points that an earlier run had done.
    elapsed : float
        Since this run began [s].
    """

    done: int
    total: int
    failed: int
    known: int
    elapsed: float

    @property
    def left(self) -> float | None:
        """Time that the rest will take at the pace so far [s]; None while there is none."""
        fresh = self.done - self.known
        return self.elapsed / fresh * (self.total - self.done) if fresh else None


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    vary: Mapping[str, Any] | Sequence[str],
    *,
    design: Design = "grid",
    engine: str | Executor = "serial",
    output: str | os.PathLike[str] | None = None,
    samples: int = 0,
    record: bool = True,
    fresh: bool = False,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    **removed: Any,
) -> Table:
    """Run a scenario at many points.

    Parameters
    ----------
    scenario : Scenario or path
        The base; every point changes the keys of `vary`.
    vary : mapping or sequence of str
        ``{"program.gpus": [8, 16]}``, or texts as ``--vary`` takes them (`simperf.study.axes.parse_axis`).
        A key ``speed.RESOURCE`` makes a resource of `simperf.study.virtual` so many times as fast.
    design : {"grid", "list", "lhs"} or LatinHypercube
        Every combination; the values side by side; or a `simperf.LatinHypercube` over ranges.
    engine : str or Executor
        As `simperf.study.executors.executor` takes it, or an executor that is used and left open.
    output : path, optional
        The table, ``.jsonl``, ``.json``, ``.csv`` or ``.parquet``. While the sweep runs, finished points are kept in
        a journal beside it, from which the same call continues after an interruption.
    samples : int
        Draws of the calibration a point, for intervals.
    record : bool
        Keep timelines while points run: without them there is no regime, and points are faster.
    fresh : bool
        Throw away the journal of an interrupted sweep.
    cache : bool
        Take rows of points that were run before with this version of simperf, and keep new ones.
    progress : callable, optional
        Called after every point.

    Returns
    -------
    Table
        A row a point, in order. A point that failed has an error and does not stop the others.

    Raises
    ------
    InputError
        Keys that the scenario does not know, values that cannot be read, a journal of another sweep; or too many
        points or samples, without ``run.force`` (`simperf.study.preflight`).
    """
    refuse_removed("sweep", removed, {"points": "design=LatinHypercube(points)"})
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario)
    if output is not None:
        check_output(output)
    axes = make_axes(vary)
    if not axes:
        raise InputError(Problem("nothing is varied", file="--vary", expected='"program.gpus=8,16,32"'))
    made = make_points(axes, design, seed=scenario.seed, force=scenario.force)
    tasks = make_tasks(scenario, made, samples=samples, record=record)
    check_axes(scenario, axes, tasks)
    rows = run_tasks(tasks, engine=engine, journal=journal_of(output), fresh=fresh, cache=cache, progress=progress)
    refuse_unused_in(rows)
    table = Table(tuple(rows), tuple(axis.key for axis in axes), scenario.title, answer_of(scenario, rows))
    if output is not None:
        table.save(output)
        Path(journal_of(output) or "").unlink(missing_ok=True)
    return table


def answer_of(scenario: Scenario, rows: Sequence[Row]) -> Answer | None:
    """Answer that a scenario asks for, by these points' metrics; None where it does not say or no point gave a result.

    Raises
    ------
    InputError
        None of the points has that metric.
    """
    units: dict[str, str] = {}
    for row in rows:
        units |= {name: unit for name, (_, unit) in row.get("metrics", {}).items()}
    good = any(row["error"] is None for row in rows)
    return scenario.answer.of(units) if scenario.answer is not None and good else None


def journal_of(output: str | os.PathLike[str] | None) -> str | None:
    """File of the finished points of a sweep until its table is written."""
    return None if output is None else f"{os.fspath(output)}.journal"


def check_axes(scenario: Scenario, axes: Sequence[Axis], tasks: Sequence[Task]) -> None:
    """Refuse keys that none of their values goes with, before anything is run.

    Raises
    ------
    InputError
        What is wrong with the first value of each such key.
    """
    problems: list[Problem] = []
    for axis in axes:
        first: list[Problem] = []
        for task in tasks:
            try:
                point_scenario({**task, "set": {axis.key: task["set"][axis.key]}})
                break
            except SimperfError as error:
                wrong = error.problems if isinstance(error, InputError) else (Problem(str(error), key=axis.key),)
                first = first or list(wrong)
            except Exception:
                break  # what its code raises is a row's error
        else:
            problems += [Problem(p.message, OPTION, 0, p.key or axis.key, p.value, p.expected) for p in first]
    if problems and not _fits_together(tasks):
        raise InputError(list(dict.fromkeys(problems)))


def _fits_together(tasks: Sequence[Task]) -> bool:
    """Whether the first point as a whole is sound: keys that only go together are sound too."""
    try:
        point_scenario(tasks[0])
    except SimperfError:
        return False
    return True


def run_tasks(
    tasks: Sequence[Task],
    *,
    engine: str | Executor = "serial",
    journal: str | None = None,
    fresh: bool = False,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
    work: Callable[[Task], Row] = run_task,
    needs: Collection[str] = (),
) -> list[Row]:
    """Do tasks on an engine, each once, and give their rows in order; the parameters are those of `sweep`.

    `work` is what a worker does; other studies have their own. A row of an earlier run that lacks one of the metrics
    `needs` is none.
    """
    from simperf.version import __version__

    check_engine(engine)
    began = time.monotonic()
    study = {"simperf": __version__, "points": len(tasks), "study": _identity(tasks)}
    with ExitStack() as stack:
        numbers = {task["point"]: task for task in tasks}
        reader = partial(_read_kept, tasks=numbers, needs=needs)
        book = stack.enter_context(Journal(journal, study, read=reader, fresh=fresh)) if journal else None
        rows: dict[int, Row] = dict(book.rows) if book else {}
        known, failed = len(rows), sum(row["error"] is not None for row in rows.values())
        memory = Cache(cache_folder() if cache else None)
        stack.callback(memory.close)
        files = _files(tasks) if cache else ""
        keys = {task["point"]: point_key(task, files=files) for task in tasks} if cache else {}

        def keep(row: Row) -> None:
            nonlocal failed
            rows[row["point"]] = row
            failed += row["error"] is not None
            if book:
                book.add(row)
            if progress:
                progress(Progress(len(rows), len(tasks), failed, known, time.monotonic() - began))

        waiting = []
        for task in tasks:
            if task["point"] in rows:
                continue
            row = memory.get(keys[task["point"]], partial(_read_cached, task=task, needs=needs)) if cache else None
            if row is None:
                waiting.append(task)
            else:
                known += 1
                keep({**row, "point": task["point"]})
        if waiting:
            for task, row, sound in _work(waiting, engine, work, stack):
                if cache and sound:
                    memory.put(keys[task["point"]], row)
                keep(row)
    return [rows[task["point"]] for task in tasks]


def _read_kept(text: bytes, *, tasks: Mapping[int, Task], needs: Collection[str]) -> Row:
    """The row of a journal's line, if it is that of one of the tasks."""
    row = read_row(text)
    number = row.get("point")
    task = tasks.get(number) if type(number) is int else None
    if task is None:
        raise InputError(Problem("point: not one of the study"))
    if wrong := row_problem(row, task, needs=needs):
        raise InputError(Problem(wrong))
    return row


def _read_cached(text: bytes, *, task: Task, needs: Collection[str]) -> Row:
    """The row of a cache, if it is that of the task."""
    row = read_row(text)
    if wrong := row_problem(row, task, numbered=False, needs=needs):
        raise InputError(Problem(wrong))
    return row


def _files(tasks: Sequence[Task]) -> str:
    """Hash of people's own files that the tasks read."""
    if not tasks or "data" not in tasks[0]:
        return ""
    named = dict.fromkeys(value for task in tasks for value in task["set"].values() if isinstance(value, str))
    return folder_hash(tasks[0]["data"], tasks[0]["folder"], named=named)


def _identity(tasks: Sequence[Task]) -> str:
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(canonical(task).encode())
    return digest.hexdigest()


def _work(
    tasks: Sequence[Task], engine: str | Executor, work: Callable[[Task], Row], stack: ExitStack
) -> Iterator[tuple[Task, Row, bool]]:
    """Tasks with their rows as they come, and whether the row is the task's own doing (no worker died).

    An engine may have `check`, a method without arguments that raises an error where no result can come any more.
    """
    pool = stack.enter_context(using(engine))
    ahead = workers_of(pool) * _AHEAD if workers_of(pool) > 1 else 1
    coming = iter(tasks)
    running: dict[Future[Row], Task] = {}
    check = getattr(pool, "check", None)
    while True:
        for task in coming:
            running[pool.submit(work, task)] = task
            if len(running) >= ahead:
                break
        if not running:
            return
        done, _ = wait(running, _LOOK if check else None, return_when=FIRST_COMPLETED)
        if check and not done:
            check()
        for future in sorted(done, key=lambda one: int(running[one]["point"])):
            task = running.pop(future)
            error = future.exception()
            if error is None:
                yield task, future.result(), True
            elif isinstance(error, Exception) and not isinstance(error, EngineError):
                yield task, failed_row(task, f"{type(error).__name__}: {error}"), False
            else:
                raise error
