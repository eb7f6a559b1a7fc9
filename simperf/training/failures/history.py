"""A long job among failures: one history, simulated, and what it says about itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from simperf.errors import InputError, Problem
from simperf.training.failures.causes import at_times, job_rate
from simperf.training.failures.checkpoint import daly, young
from simperf.training.failures.goodput import Goodput, goodput, new_life
from simperf.training.failures.interval import best_interval
from simperf.training.failures.job_events import PARTS, Life

if TYPE_CHECKING:
    from simperf.execution.session import Session
    from simperf.training.failures.options import Failures
    from simperf.training.failures.recovery import FailingRun

__all__ = ["begin", "tell_failures", "tell_long_run"]

#: histories of a search for each of those that it is given: its intervals, as far as one sweep goes
_SEARCHED = 17
#: what a job calls a key of its long run, where it is no key of ``[failures]``
_KEYS = {"work": "total", "causes": "failures", "nodes": "failures", "trace": "failures.fails_at"}


def begin(m: Session, run: FailingRun, failures: Failures, *, detailed: bool = False) -> Life:
    """The history of a run, not yet begun.

    Parameters
    ----------
    m : Session
        Whose random streams it draws from.
    run : FailingRun
        Made of `failures`.
    failures : Failures
    detailed : bool
        Give each training interval and each checkpoint.

    Raises
    ------
    InputError
        More periods than the run may simulate events.
    """
    _refuse_excess(run, failures, m.simulation.most, detailed=detailed)
    times = [(time, index % run.nodes) for index, time in enumerate(failures.fails_at)]
    return new_life(run, m.rng, trace=at_times(times) if times else None, detailed=detailed)


def events_of_history(failures: float) -> float:
    """Events of which one history of a job takes about as long, by the failures that are expected in it [1]."""
    return 10.0 + 4.0 * failures


def _refuse_excess(run: FailingRun, failures: Failures, most: float | None, *, detailed: bool) -> None:
    """Refuse histories of more periods than a run may simulate events.

    Raises
    ------
    InputError
        The number, and what makes it so large: the further histories, or the checkpoints that are shown.
    """
    if most is None:
        return
    spacing = run.checkpoint.spacing(run.nodes)
    wall = min(run.work * (1.0 + run.checkpoint.pause(run.nodes) / spacing), run.horizon)
    pool = run.nodes + run.recovery.spares
    each = events_of_history(wall * job_rate(run.causes, run.nodes))
    histories = 1 + failures.runs * (1 + _SEARCHED * failures.search)
    shown = 2.0 * min(run.work, run.horizon) / spacing if detailed else 0.0
    events = each * histories + shown + pool
    if events <= most:
        return
    if pool > most:
        key, value, expected = "nodes", f"{run.nodes:,}", f"at most {int(most):,} with their spares"
    elif failures.runs and each + shown <= most:
        fewer = int((most - shown - each) / (histories - 1) / each * failures.runs)
        key, value, expected = "runs", f"{failures.runs:,}", f"at most {fewer:,}"
    elif abs(math.log10(spacing)) > abs(math.log10(min(run.work, run.horizon))):
        key, value = "interval", f"{run.checkpoint.interval:g} s"
        expected = f"{2.0 * min(run.work, run.horizon) / most:.3g} s or more" if shown > each else "a longer one"
    else:
        key = "work" if run.work < run.horizon else "duration"
        value, expected = f"{min(run.work, run.horizon):g} s", "a shorter run"
    message = f"about {events:.3g} events would be simulated, more than {most:.3g}"
    told = f"{expected}; or --force (run.force = true), which simulates them all"
    raise InputError(Problem(message, key=key, value=value, expected=told))


def tell_failures(m: Session, life: Life, failures: Failures) -> Goodput | None:
    """Report a history that was simulated, and the further ones that were asked for; returns those."""
    job, runs = life.job, failures.runs
    pause = job.checkpoint.pause(job.nodes)
    m.metric("goodput", life.ledger["useful"] / life.now)
    for part in PARTS:
        m.metric(f"{part} time", life.ledger[part], "s")
    m.metric("interruptions", sum(life.interruptions.values()))
    m.metric("checkpoints", life.checkpoints)
    m.metric("checkpoint interval", job.checkpoint.interval, "s")
    m.metric("checkpoint pause", pause, "s")
    if pause > 0.0 and job.mtbf < float("inf") and not failures.fails_at:
        m.metric("mean time between failures", job.mtbf, "s")
        m.metric("interval by Young", young(pause, job.mtbf), "s")
        m.metric("interval by Daly", daly(pause, job.mtbf), "s")
    many = goodput(job, m.rng, runs=runs, first=1) if runs else None
    if many is not None:
        m.metric("mean goodput", many.mean)
        m.metric("mean interruptions", sum(sum(run.interruptions.values()) for run in many.runs) / runs)
        m.metric("goodput of the worst tenth", many.quantile(0.1))
        m.metric("goodput of the best tenth", many.quantile(0.9))
        for part, share in many.parts().items():
            m.metric(f"mean share: {part}", share)
    if failures.search:
        best = best_interval(job, seed=m.simulation.seed, runs=runs)
        m.metric("best interval", best.interval, "s")
        m.metric("best goodput", best.goodput)
        m.notes.append(f"within 0.1 % of the best goodput: every {best.flat[0]:.0f} to {best.flat[1]:.0f} s")
    return many


def tell_long_run(m: Session, failures: Failures, *, nodes: int, work: float, states: float = 0.0) -> None:
    """Simulate a training run of known length among failures, and report it.

    Parameters
    ----------
    m : Session
        Its clock stays: the history is one of days, and its steps are not simulated one by one.
    failures : Failures
    nodes : int
        Machines of the job.
    work : float
        Time of the whole run without failures and checkpoints [s].
    states : float
        Size of a checkpoint where the failures say none [B].

    Raises
    ------
    InputError
        What has no meaning for such a run, as keys of ``[failures]``.
    """
    try:
        life = begin(m, failures.run(nodes, work=work, states=states), failures)
    except InputError as error:
        raise InputError(list(_placed(error))) from None
    for _ in life.phases():
        pass
    m.metric("run time among failures", life.now, "s")
    many = tell_failures(m, life, failures)
    if many is not None:
        m.metric("mean run time among failures", sum(run.wall for run in many.runs) / len(many.runs), "s")


def _placed(error: InputError) -> Iterator[Problem]:
    """Problems of a run with the keys that a job gives them."""
    for one in error.problems:
        key = one.key.rpartition(".")[2]
        yield replace(one, key=_KEYS.get(key, f"failures.{key}"))
