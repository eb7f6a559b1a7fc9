"""Measuring this machine: every task of the chosen families, to a file that is continued."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from simperf.calibrate.dataset import Dataset
from simperf.errors import InputError, Problem
from simperf.outputs import DATA, check_name

__all__ = ["measure"]

#: is told of a family, a series and how many points of it are done
Progress = Callable[[str, str, int], None]


def measure(
    output: str | os.PathLike[str],
    *,
    device: str = "cpu",
    quick: bool = False,
    threads: int = 0,
    only: Sequence[str] = (),
    fresh: bool = False,
    tell: Callable[[str], object] | None = None,
    progress: Callable[[int], AbstractContextManager[Progress]] | None = None,
) -> Dataset:
    """Time operations, copies, collectives and whole training steps of this machine with torch (extra ``torch``).

    Parameters
    ----------
    output : path
        ``.json`` or ``.json.gz``; continued if it is there. An interruption loses nothing.
    device : str
        ``"cpu"`` or such as ``"cuda:0"``.
    quick : bool
        Fewer points: two minutes instead of ten.
    threads : int
        Of one operation on the CPU; 0: as torch chooses.
    only : sequence of str
        Some families of series, of `simperf.calibrate.measure.task.FAMILIES`.
    fresh : bool
        Begin anew, whatever is in the file.
    tell : callable, optional
        Is given what there is to say: what is continued, what was disturbed, warnings.
    progress : callable, optional
        Is given the number of points, and gives a context that is told how far it is.

    Returns
    -------
    Dataset
        All points of the file.

    Raises
    ------
    InputError
        No such family or device; torch is missing; the file is of another machine.
    KeyboardInterrupt
        `simperf.calibrate.measure.session.Interrupted`: the file holds what was measured.
    """
    from simperf.calibrate.machines import NOT_ON_HARDWARE
    from simperf.calibrate.measure import task
    from simperf.calibrate.measure.allocator import keep_memory
    from simperf.calibrate.measure.bench import Bench
    from simperf.calibrate.measure.clock import FULL, QUICK
    from simperf.calibrate.measure.facts import busy, machine_facts, version_facts
    from simperf.calibrate.measure.session import Session
    from simperf.calibrate.measure.stolen import disturbed, taken_away

    say = tell or (lambda text: None)
    wanted = _families(only)
    task.check_families(wanted)
    check_name(output, DATA)
    kept, care = keep_memory(), QUICK if quick else FULL
    bench = Bench(device, threads=threads, quick=quick, care=care)
    words = ["simperf calibrate measure", f"--device {bench.device}", *(["--quick"] if quick else [])]
    words += [f"--threads {threads}"] * bool(threads) + [f"--only {','.join(wanted)}"] * bool(wanted)
    session = Session(
        output,
        machine=machine_facts(bench.torch, bench.device),
        versions=version_facts(bench.torch),
        conditions={"device": bench.device, "threads": bench.threads, "quick": quick, "memory_kept": kept},
        command=" ".join(words),
        fresh=fresh,
        seconds=care.session,
    )
    if session.resumed:
        say(f"{output} holds {session.resumed} points: they are kept, if calm (--fresh begins anew)")
    if bench.cuda:
        say(NOT_ON_HARDWARE)
    if busy():
        say(f"warning: {busy()}")
    listed = list(task.tasks(bench, wanted))
    count = sum(len(each.points) for _, each in listed if not isinstance(each, str))
    with progress(count) if progress is not None else nullcontext(_silent) as shown:
        data = session.run(listed, tell=shown)
    doubtful = sum(1 for point in data if point.warnings)
    for text in data.notes:
        say(f"note: {text}")
    say(
        f"wrote {output}: {len(data)} points of {len(data.series)} series in {float(data.made['seconds']):.0f} s"
        + (f", {doubtful} of them with wide spread or disturbed (see their warnings)" if doubtful else "")
    )
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


def _families(only: Sequence[str]) -> list[str]:
    if isinstance(only, str):
        message = "a list of families is expected"
        raise InputError(Problem(message, key="only", value=repr(only), expected=f"[{only!r}]"))
    return [name.strip() for name in only if name.strip()]


def _silent(family: str, series: str, points: int) -> None:
    """Say nothing."""
