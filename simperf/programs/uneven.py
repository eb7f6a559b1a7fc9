"""Workers and links of uneven speed.

"Dive into Deep Learning", section 12.7.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import simpy

from simperf.engine.simulation import Simulation
from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.parameters import Unless
from simperf.programs.registry import program
from simperf.programs.rules import deviates
from simperf.training.jitter import Family, distribution, stream
from simperf.training.stragglers import Straggler, change_links, finish_time, flap, slowed
from simperf.units import Bytes, Ratio, Seconds

__all__ = ["DisturbedLink", "Messages", "MessagesOverLink", "SlowWorker", "UnevenWorkers", "link_flaps", "stragglers"]


def _worker_rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    slow = ("factor", "slow_from", "slow_until")
    return (
        deviates(given),
        Unless(given["slow"] >= 0, slow, "no worker is slow", "slow = the worker"),
        Unless(not given["asynchronous"], ("backup",), "nobody waits for anybody", "asynchronous = false"),
    )


@dataclass(frozen=True, slots=True)
class SlowWorker:
    """A worker that is slower than the others, for a time or for good.

    Parameters
    ----------
    slow : int
        worker that is slower; -1 for none
    factor : float
        times its steps take longer
    slow_from : float
        when it becomes slow
    slow_until : float
        when it is as fast as the others again; 0 for never
    """

    slow: int = -1
    factor: Ratio = 2.0
    slow_from: Seconds = 0.0
    slow_until: Seconds = 0.0

    def stragglers(self) -> list[Straggler]:
        """The worker, if there is one."""
        one = (self.slow, self.factor, self.slow_from, self.slow_until or math.inf)
        return [Straggler(*one)] if self.slow >= 0 else []


@dataclass(frozen=True, slots=True)
class UnevenWorkers:
    """Workers that step together or each by itself.

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
    slowness : SlowWorker
        the worker that is slower
    asynchronous : bool
        nobody waits; otherwise a step ends when all are done
    backup : int
        workers whose result a synchronous step does without: the slowest of it

    Raises
    ------
    InputError
        Numbers of workers or steps without meaning.
    """

    workers: int = 8
    steps: int = 100
    step: Seconds = 0.1
    communicate: Seconds = 0.0
    jitter: Family = "constant"
    cv: Ratio = 0.1
    slowness: SlowWorker = field(default_factory=SlowWorker)
    asynchronous: bool = False
    backup: int = 0

    def __post_init__(self) -> None:
        workers, backup, slow = self.workers, self.backup, self.slowness.slow
        checks = (
            ("workers", workers, workers >= 1, "one worker or more is expected"),
            ("steps", self.steps, self.steps >= 1, "one step or more is expected"),
            ("backup", backup, 0 <= backup < max(1, workers), "fewer backup workers than workers are expected"),
            ("slow", slow, slow < workers, f"one of the workers 0 to {workers - 1} is expected, or -1 for none"),
        )
        problems = [Problem(words, key=key, value=str(value)) for key, value, right, words in checks if not right]
        if problems:
            raise InputError(problems)


@program("stragglers", rules=_worker_rules, events=lambda given: 3.0 * given["workers"] * given["steps"])
def stragglers(m: Session, options: UnevenWorkers) -> Program:
    """Workers of uneven speed, with and without waiting for each other (section 12.7.3)."""
    env = m.simulation.env
    workers, steps, step, communicate = options.workers, options.steps, options.step, options.communicate
    late, backup = options.slowness.stragglers(), options.backup
    law = distribution(options.jitter, cv=options.cv)
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

    if options.asynchronous:
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


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages from one node to another.

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
    """

    source: str = "gpu0"
    target: str = "gpu1"
    nbytes: Bytes = 160e6
    n: int = 100


@dataclass(frozen=True, slots=True)
class DisturbedLink:
    """A link that is slow or down for a time, or flaps at random.

    Parameters
    ----------
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

    link: str = ""
    share: Ratio = 0.0
    at: Seconds = 0.0
    until: Seconds = 0.0
    up: Seconds = 0.0
    down: Seconds = 0.0

    def disturb(self, simulation: Simulation, first: str) -> None:
        """Disturb the link, `first` if none is named, from now on.

        Raises
        ------
        InputError
            A share or times without meaning.
        """
        name = self.link or first
        if not (self.up or self.down):
            change_links(simulation, slowed(name, self.share, self.at, self.until, keys=("share", "until")))
            return
        if not (self.up and self.down):
            message = "a link that flaps is up for a time and down for a time: both are expected"
            raise InputError(Problem(message, key="down" if self.up else "up", value="0 s", expected='such as "2 s"'))
        up, down = (distribution("exponential", mean=mean) for mean in (self.up, self.down))
        flap(simulation, name, up=up, down=down, share=self.share)


@dataclass(frozen=True, slots=True)
class MessagesOverLink:
    """Messages over a link that is disturbed.

    Parameters
    ----------
    messages : Messages
        what is sent
    disturbed : DisturbedLink
        the link
    """

    messages: Messages = field(default_factory=Messages)
    disturbed: DisturbedLink = field(default_factory=DisturbedLink)


@program("link-flaps", rules=_flap_rules, events=lambda given: 4.0 * given["n"])
def link_flaps(m: Session, options: MessagesOverLink) -> Program:
    """Send messages over a link that is slow or down for a time, or flaps at random."""
    one = options.messages
    if one.n < 1:
        raise ProgramError("n must be 1 or more")
    route = m.machine.route(one.source, one.target)
    options.disturbed.disturb(m.simulation, route.resources[0])
    for _ in range(one.n):
        yield m.send(one.source, one.target, one.nbytes)
    m.work("payload", one.n * one.nbytes, "B")
    m.rate("bandwidth", one.n * one.nbytes, "B/s")
    m.metric("time lost", max(0.0, m.now - one.n * (route.latency + one.nbytes / route.bandwidth)), "s")
