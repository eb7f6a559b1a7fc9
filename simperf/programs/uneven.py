"""Workers and links of uneven speed.

"Dive into Deep Learning", section 12.7.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import simpy

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import Unless, program
from simperf.programs.unused import deviates, refuse_unused, together
from simperf.training.jitter import Family, distribution, stream
from simperf.training.stragglers import Straggler, change_links, finish_time, flap, slowed
from simperf.units import Bytes, Ratio, Seconds

__all__ = ["link_flaps", "stragglers"]


def _worker_rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    slow = ("factor", "slow_from", "slow_until")
    return (
        deviates(given),
        Unless(given["slow"] >= 0, slow, "no worker is slow", "slow = the worker"),
        Unless(not given["asynchronous"], ("backup",), "nobody waits for anybody", "asynchronous = false"),
    )


@program("stragglers", rules=_worker_rules)
def stragglers(
    m: Session,
    *,
    workers: int = 8,
    steps: int = 100,
    step: Seconds = 0.1,
    communicate: Seconds = 0.0,
    jitter: Family = "constant",
    cv: Ratio = 0.1,
    slow: int = -1,
    factor: Ratio = 2.0,
    slow_from: Seconds = 0.0,
    slow_until: Seconds = 0.0,
    asynchronous: bool = False,
    backup: int = 0,
) -> Program:
    """Workers of uneven speed, with and without waiting for each other (section 12.7.3).

    Parameters
    ----------
    workers : int
        workers of equal speed, but for jitter and the slow one
    steps : int
        steps of each worker
    step : float
        computation of one step
    communicate : float
        exchange of gradients after it
    jitter : str
        how step times vary, each worker's by itself
    cv : float
        standard deviation of the step time over its mean
    slow : int
        worker that is slower; -1 for none
    factor : float
        times its steps take longer
    slow_from : float
        when it becomes slow
    slow_until : float
        when it is as fast as the others again; 0 for never
    asynchronous : bool
        nobody waits; otherwise a step ends when all are done
    backup : int
        workers whose result a synchronous step does without: the slowest of it
    """
    checks = (
        ("workers", workers, workers >= 1, "one worker or more is expected"),
        ("steps", steps, steps >= 1, "one step or more is expected"),
        ("backup", backup, 0 <= backup < max(1, workers), "fewer backup workers than workers are expected"),
        ("slow", slow, slow < workers, f"there are {workers} workers (from 0)"),
    )
    wrong = [Problem(words, key=key, value=str(value)) for key, value, right, words in checks if not right]
    with together(wrong):
        refuse_unused("stragglers", locals())
    env = m.simulation.env
    late = [Straggler(slow, factor, slow_from, slow_until or math.inf)] if slow >= 0 else []
    law = distribution(jitter, cv=cv)
    factors = [stream(law, m.rng(f"worker {rank}")) for rank in range(workers)]
    idle, done = 0.0, 0

    def work(rank: int) -> Program:
        started = m.now
        yield env.timeout(max(0.0, finish_time(late, rank, started, step * next(factors[rank])) - started))
        m.show(f"worker{rank}/step", "step", started, "compute")

    def alone(rank: int) -> Program:
        nonlocal done
        for _ in range(steps):
            yield from work(rank)
            done += 1
            if communicate:
                yield env.timeout(communicate)

    if asynchronous:
        threads = [env.process(alone(rank)) for rank in range(workers)]
        yield env.any_of(threads)
        trained = done
    else:
        for _ in range(steps):
            ends = [env.process(work(rank)) for rank in range(workers)]
            arrived: list[float] = []
            enough = simpy.Event(env)

            def arrive(_: simpy.Event, arrived: list[float] = arrived, enough: simpy.Event = enough) -> None:
                arrived.append(m.now)
                if len(arrived) == workers - backup:
                    enough.succeed()

            for end in ends:
                assert end.callbacks is not None
                end.callbacks.append(arrive)
            yield enough
            idle += sum(m.now - one for one in arrived)
            if communicate:
                yield env.timeout(communicate)
                m.show("all/exchange", "exchange", m.now - communicate, "communication")
        trained = steps * (workers - backup)
    m.work("steps of workers", trained)
    m.rate("steps per second of all workers", trained)
    m.rate("efficiency", trained * (step + communicate) / workers, "1")
    m.rate("waiting for the slowest", idle / workers, "1")


def _flap_rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    random = given["up"] or given["down"]
    return (Unless(not random, ("at", "until"), "the link flaps at random times", "no up and down"),)


@program("link-flaps", rules=_flap_rules)
def link_flaps(
    m: Session,
    *,
    source: str = "gpu0",
    target: str = "gpu1",
    nbytes: Bytes = 160e6,
    n: int = 100,
    link: str = "",
    share: Ratio = 0.0,
    at: Seconds = 0.0,
    until: Seconds = 0.0,
    up: Seconds = 0.0,
    down: Seconds = 0.0,
) -> Program:
    """Send messages over a link that is slow or down for a time, or flaps at random.

    Parameters
    ----------
    source : str
        node that sends
    target : str
        node that receives
    nbytes : float
        payload of one message
    n : int
        messages, one after the other
    link : str
        link that is disturbed; the first of the route if none is named
    share : float
        capacity that is left of it
    at : float
        when the disturbance begins
    until : float
        when it ends; 0 for never
    up : float
        mean time between flaps, instead of one disturbance
    down : float
        mean time that a flap lasts
    """
    if n < 1:
        raise ProgramError("n must be 1 or more")
    refuse_unused("link-flaps", locals())
    route = m.machine.route(source, target)
    name = link or route.resources[0]
    if up or down:
        if not (up and down):
            message = "a link that flaps is up for a time and down for a time: both are expected"
            raise InputError(Problem(message, key="down" if up else "up", value="0 s", expected='such as "2 s"'))
        law = [distribution("exponential", mean=mean) for mean in (up, down)]
        flap(m.simulation, name, up=law[0], down=law[1], share=share)
    else:
        change_links(m.simulation, slowed(name, share, at, until, keys=("share", "until")))
    for _ in range(n):
        yield m.send(source, target, nbytes)
    m.work("payload", n * nbytes, "B")
    m.rate("bandwidth", n * nbytes, "B/s")
    m.metric("time lost", m.now - n * (route.latency + nbytes / route.bandwidth), "s")
