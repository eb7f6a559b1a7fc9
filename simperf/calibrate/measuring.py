"""Measuring this machine: every task of a set, or as many as there is time for, to a file that is continued."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from simperf.calibrate.dataset import Dataset
from simperf.errors import InputError, Problem, nearest
from simperf.outputs import DATA, check_name

if TYPE_CHECKING:
    from simperf.calibrate.measure.bench import Bench
    from simperf.calibrate.measure.budget import Budget
    from simperf.calibrate.measure.sensors import Sensors
    from simperf.calibrate.measure.session import MeasuringSession

__all__ = ["TRAINING_FILE", "families_of", "measure"]

#: what may be measured: all that the model has a constant for, or the kernels of training steps
_SETS = ("machine", "training")
#: where the set ``training`` is written if nobody says
TRAINING_FILE = "training.json"
#: series that are named of those that there was no time for
_NAMED = 6

#: is told of a family, a series and how many points of it are done
Progress = Callable[[str, str, int], None]


def measure(
    output: str | os.PathLike[str],
    *,
    device: str = "",
    quick: bool = False,
    threads: int = 0,
    only: Sequence[str] = (),
    fresh: bool = False,
    set: str = _SETS[0],
    minutes: float | None = None,
    tell: Callable[[str], object] | None = None,
    progress: Callable[[int], AbstractContextManager[Progress]] | None = None,
) -> Dataset:
    """Time operations, copies, collectives and whole training steps of this machine with torch (extra ``torch``).

    Parameters
    ----------
    output : path
        ``.json`` or ``.json.gz``; continued if it is there. An interruption loses nothing.
    device : str
        ``"cpu"`` or such as ``"cuda:0"``; by default the CPU, and of the set ``"training"`` the first GPU if there is
        one.
    quick : bool
        Fewer points: two minutes instead of ten.
    threads : int
        Of one operation on the CPU; 0: as torch chooses.
    only : sequence of str
        Some families of series, of those of `families_of` the set.
    fresh : bool
        Begin again, whatever is in the file.
    set : str
        ``"machine"``, all that the model has a constant for, or ``"training"``, kernels of training steps of
        transformers, the most useful first, each saved as it is measured.
    minutes : float, optional
        When to end, from the call on [min]; families take turns then, and what there was no time for is named. By
        default, all is measured.
    tell : callable, optional
        Is given what there is to say: what is continued, what was disturbed, warnings.
    progress : callable, optional
        Is given the number of points, and gives a context that receives the progress.

    Returns
    -------
    Dataset
        All points of the file.

    Raises
    ------
    InputError
        No such set, family or device; no time; the file is of another machine.
    SimperfError
        Torch is missing, or the device answers no more.
    KeyboardInterrupt
        `simperf.calibrate.measure.session.Interrupted`: the file holds what was measured.
    """
    from simperf.calibrate.measure.allocator import keep_memory
    from simperf.calibrate.measure.bench import Bench
    from simperf.calibrate.measure.budget import Budget
    from simperf.calibrate.measure.clock import FULL, QUICK, TRAINING
    from simperf.calibrate.measure.facts import busy
    from simperf.calibrate.measure.session import NO_TIME
    from simperf.calibrate.measure.steal_time import disturbed, taken_away
    from simperf.calibrate.measure.task import check_families

    budget = Budget(_seconds(minutes))  # torch is still to be loaded, which takes its time too
    say = tell or (lambda text: None)
    wanted, training = _families(only), set == _SETS[1]
    check_families(wanted, families_of(set))
    check_name(output, DATA)
    if training and quick:
        message = "says nothing of the set training, whose points are many and short"
        raise InputError(Problem(message, key="--quick", expected="--minutes"))
    kept, care = keep_memory(), TRAINING if training else QUICK if quick else FULL
    bench = Bench(device or _device(training), threads=threads, quick=quick, care=care, low=-1.0 if training else 0.1)
    words = ["simperf calibrate measure", *(["--set training"] if training else []), f"--device {bench.device}"]
    words += ["--quick"] * quick + ([f"--minutes {minutes:g}"] if minutes is not None else [])
    words += [f"--threads {threads}"] * bool(threads) + [f"--only {','.join(wanted)}"] * bool(wanted)
    conditions = {"device": bench.device, "threads": bench.threads, "quick": quick, "memory_kept": kept}
    session = _session(
        bench,
        output,
        conditions={**conditions, **({"set": set} if training else {})},
        command=" ".join(words),
        fresh=fresh,
        budget=budget,
        again=care.session,
    )
    try:
        if session.resumed:
            say(f"{output} holds {session.resumed} points: they are kept, if calm (--fresh begins again)")
        if busy():
            say(f"warning: {busy()}")
        listed = _tasks(bench, wanted, training=training, turns=budget.limited)
        count = sum(len(each.points) for _, each in listed if not isinstance(each, str))
        with progress(count) if progress is not None else nullcontext(_silent) as shown:
            data = session.run(listed, tell=shown)
    finally:
        if session.sensors is not None:
            session.sensors.close()
    doubtful = sum(1 for point in data if point.warnings)
    for text in data.notes:
        if not text.endswith(NO_TIME):  # told below, all together
            say(f"note: {text}")
    say(
        f"wrote {output}: {len(data)} points of {len(data.series)} series in {float(data.made['seconds']):.0f} s"
        + (f", {doubtful} of them with wide spread or disturbed (see their warnings)" if doubtful else "")
    )
    if session.unmeasured:
        again = f"the same command{' without --fresh' if fresh else ''} continues with them"
        say(f"not measured in {minutes:g} min: {_counted(session.unmeasured)} of {count} points; {again}")
    if session.repeated:
        calm = sum(1 for point in data if point.key in session.repeated and not taken_away(point.stolen))
        say(f"measured again because it was disturbed: {len(session.repeated)} points, {calm} of them calm now")
    for title, reason in session.failed.items():
        say(f"could not be measured again, earlier readings stay: {title}: {reason}")
    if told := disturbed(data):
        late = "no time was left to measure all of them again; " if session.late else ""
        which = "those of these families" if wanted else "them"
        again = f"the same command{' without --fresh' if fresh else ''} measures {which} again"
        say(told + (f"; {late}{again}" if session.disturbed(listed) else ""))
    if 4 * doubtful > len(data):
        say("warning: constants of so unsteady readings mean little: measure again when nothing else runs (--fresh)")
    return data


def families_of(set: str) -> tuple[str, ...]:
    """Families of series of a set, in the order in which they are measured or take turns.

    Raises
    ------
    InputError
        There is no such set.
    """
    from simperf.calibrate.measure import task
    from simperf.calibrate.measure.training import FAMILIES

    if set not in _SETS:
        message = f"there is no such set of measurements{nearest(set, _SETS)}"
        raise InputError(Problem(message, key="--set", value=repr(set), expected=" or ".join(_SETS)))
    return tuple(FAMILIES if set == _SETS[1] else task.FAMILIES)


def _tasks(bench: Bench, wanted: Sequence[str], *, training: bool, turns: bool) -> list[tuple[str, Any]]:
    """What there is to measure, in its order: family by family, or in turns, of which any beginning is of use."""
    from simperf.calibrate.measure import task
    from simperf.calibrate.measure.training import in_turns, training_tasks

    if training:
        return training_tasks(bench, wanted)
    listed = list(task.tasks(bench, wanted))
    return in_turns(listed) if turns else listed


def _counted(points: Mapping[str, int]) -> str:
    """Points by series, in words: how many, and the series that most of them are of."""
    most = sorted(points.items(), key=lambda item: -item[1])
    named = [f"{series} {count}" for series, count in most[:_NAMED]]
    named += [f"{len(most) - _NAMED} other series"] * (len(most) > _NAMED)
    return f"{sum(points.values())} ({', '.join(named)})"


def _seconds(minutes: float | None) -> float:
    """The length of a session [s]."""
    if minutes is None:
        return float("inf")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not minutes > 0:
        raise InputError(Problem("must be above 0", key="--minutes", value=repr(minutes), expected="--minutes 8"))
    return 60.0 * minutes


def _device(training: bool) -> str:
    """The device that is measured if nobody says."""
    from simperf.calibrate.measure.bench import measuring_torch

    return "cuda:0" if training and measuring_torch().cuda.is_available() else "cpu"


def _session(
    bench: Bench,
    output: str | os.PathLike[str],
    *,
    conditions: dict[str, Any],
    command: str,
    fresh: bool,
    budget: Budget,
    again: float,
) -> MeasuringSession:
    """A session on a bench, with the facts of the machine.

    `again` is the time within which disturbed points are measured again [s].
    """
    from simperf.calibrate.measure.facts import machine_facts, version_facts
    from simperf.calibrate.measure.session import MeasuringSession

    machine, versions = machine_facts(bench.torch, bench.device), version_facts(bench.torch)
    sensors = _sensors(bench)
    if sensors is not None:
        machine |= sensors.reader.facts()
        if driver := sensors.reader.driver():
            versions.setdefault("driver", driver)
        bench.watch = sensors.watch
    return MeasuringSession(
        output,
        machine=machine,
        versions=versions,
        conditions=conditions,
        command=command,
        fresh=fresh,
        seconds=min(again, budget.seconds),
        budget=budget,
        sensors=sensors,
        recover=bench.recover,
    )


def _sensors(bench: Bench) -> Sensors | None:
    """Sensors of the GPU, where there is one and they can be read."""
    from simperf.calibrate.measure.sensors import find_sensors, gpu_id

    return find_sensors(gpu_id(bench.torch, bench.device)) if bench.cuda else None


def _families(only: Sequence[str]) -> list[str]:
    if isinstance(only, str):
        message = "a list of families is expected"
        raise InputError(Problem(message, key="only", value=repr(only), expected=f"[{only!r}]"))
    return [name.strip() for name in only if name.strip()]


def _silent(family: str, series: str, points: int) -> None:
    """Say nothing."""
