"""A frontend thread: runs a program, paying for what it issues.

A program is a generator over verbs. `Frontend` is its interpreter; the launch of a
kernel, the verb that a run has by the hundred thousand, is handled here without a
detour, every other verb is a small generator of its own (see `simperf.execution.verbs`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import simpy

from simperf.engine.device import Stream
from simperf.engine.host import Host
from simperf.engine.items import GraphLaunch
from simperf.engine.share import ShareUser
from simperf.engine.simulation import Simulation
from simperf.errors import ProgramError
from simperf.execution.modes import MODES, Mode
from simperf.execution.module import Module
from simperf.execution.profile import FREE, FrontendPart
from simperf.execution.thread import Launch, Spend, Verb

__all__ = ["Frontend", "Program"]

Program = Generator[Any, Any, Any]


class Frontend:
    """One thread of a host that runs one program.

    Parameters
    ----------
    simulation : Simulation
    program : generator
        Yields verbs, events of the simulation, or further generators.
    host : Host
        Whose cores it uses.
    mode : Mode
    profile : FrontendPart
    name : str
        The thread, as shown on the timeline.
    rank : RankProcess, optional
        Whose process it is (`simperf.execution.ranks.run_ranks`).
    """

    def __init__(
        self,
        simulation: Simulation,
        program: Program,
        *,
        host: Host,
        mode: Mode = MODES["eager"],
        profile: FrontendPart = FREE,
        name: str = "python",
        rank: Any = None,
    ) -> None:
        if not hasattr(program, "send"):
            raise ProgramError(f"a program is a generator (a function with yield in it), not {program!r}")
        self.simulation, self.env, self.recorder = simulation, simulation.env, simulation.recorder
        self.host, self.mode, self.profile, self.name, self.rank = host, mode, profile, name, rank
        self.track = f"{host.name}/{name}"
        self.path = 0.0  # critical path of this thread, contention left out
        self.launch_time = 0.0  # time that it has launched kernels for so far [s]
        self._own = 0.0  # time of the launch under way on a core of its own [s]
        self.done = simpy.Event(self.env)
        self.captured: dict[Any, GraphLaunch] = {}
        self.last: Any = None  # what was launched last: its result is what a synchronisation fetches
        self._callers: list[Program] = []
        self._program = program
        self._task = ShareUser(host.share, self._issued)
        self._verb: Launch | Spend | None = None
        self._since = 0.0
        starter = simpy.Event(self.env)
        starter.callbacks = [self._resume]
        starter.succeed()

    def call(self, module: Module, stream: Stream) -> Program:
        """Call a network once, as the execution mode does it."""
        return self.mode.run(self, module, stream)

    def _resume(self, event: simpy.Event) -> None:
        """Continue after a wait with the event's value, or with its error."""
        if event._ok:
            self._play(event._value)
        else:
            event.defused = True
            error: BaseException = event._value
            self._play(None, error)

    def _play(self, value: Any, error: BaseException | None = None) -> None:
        """Run the program up to the next thing that takes time."""
        while True:
            try:
                verb = self._program.send(value) if error is None else self._program.throw(error)
            except StopIteration as stop:
                if not self._callers:
                    if self.path > self.simulation.path:
                        self.simulation.path = self.path
                    self.done.succeed(stop.value)
                    return
                self._program, value, error = self._callers.pop(), stop.value, None
                continue
            value, error = None, None
            kind = verb.__class__
            if kind is Launch:
                time = self.mode.launch_time(self, verb.kernel)
                self._verb, self._since = verb, self.env.now
                if time > 0.0:
                    self.path += time
                    self._own = time
                    self._task.begin(time)
                    return
                if not self._enqueue():
                    return
            elif kind is Spend:
                if verb.seconds > 0.0:
                    self._verb, self._since = verb, self.env.now
                    self.path += verb.seconds
                    self._task.begin(verb.seconds)
                    return
            elif isinstance(verb, simpy.Event):
                if verb.callbacks is not None:
                    verb.callbacks.append(self._resume)
                    return
                value = verb.value
            else:
                self._call(verb)

    def _call(self, verb: Any) -> None:
        """Enter a verb or a sub-program; its return value becomes the value of the yield."""
        if isinstance(verb, Verb):
            verb = verb.perform(self)
        elif not hasattr(verb, "send"):
            self._program.close()
            raise ProgramError(
                f"the program of {self.track} yields {verb!r}, which is no verb; "
                "known verbs: launch, run, compute, copy, record, wait, wait_stream, synchronize, item "
                "(see simperf.execution.verbs), send, recv, isend, irecv, batch_isend_irecv, collective "
                "(see simperf.execution.communication)"
            )
        self._callers.append(self._program)
        self._program = verb

    def _issued(self, event: simpy.Event) -> None:
        """The thread's own work of a launch or a spend is over."""
        verb = self._verb
        recorder = self.recorder
        if verb.__class__ is Launch:
            took = self.env.now - self._since
            self.launch_time += took if took > 1.000001 * self._own else self._own  # longer where cores are few
            if recorder is not None:
                name = f"launch {verb.kernel.name}"
                recorder.span(self.track, name, self._since, self.env.now, "overhead")
            if self._enqueue():
                self._play(None)
        else:
            if recorder is not None and isinstance(verb, Spend):
                recorder.span(self.track, verb.what, self._since, self.env.now, verb.category)
            self._play(None)

    def _enqueue(self) -> bool:
        """Hand the kernel to its stream; False if the thread now waits."""
        launch = self._verb
        assert isinstance(launch, Launch)
        stream: Stream = launch.stream
        if stream.submitted - stream.completed >= stream.depth:
            self._since = self.env.now
            stream.when_free(self._unblocked)
            return False
        self.last = launch.kernel
        stream.submit(launch.kernel, self.path, None if self.recorder is None else (self.track, self.env.now))
        if self.mode.waits:
            self._callers.append(self._program)
            self._program = self.fetch(stream)
        return True

    def _unblocked(self, event: simpy.Event) -> None:
        """A place in the full queue is free."""
        launch = self._verb
        assert isinstance(launch, Launch)
        now = self.env.now
        if self.recorder is not None and now > self._since:
            self.recorder.span(self.track, "wait: launch queue full", self._since, now, "wait")
        if self._enqueue():
            self._play(None)

    def block(self, event: simpy.Event, why: str) -> Program:
        """Wait for `event` and show the wait where it happens; for use with ``yield from``."""
        since = self.env.now
        value = yield event
        if self.recorder is not None and self.env.now > since:
            self.recorder.span(self.track, why, since, self.env.now, "wait")
        return value

    def fetch(self, *streams: Stream, why: str = "wait: result", value: bool = True) -> Program:
        """Wait until `streams` are drained and, if a `value` is asked for, their last result has come back."""
        for stream in streams:
            path = yield from self.block(stream.drained(), why)
            self.path = max(self.path, path)
        result = getattr(self.last, "result", None)
        if result is None:
            waited = self.profile.synchronize
            result = self.profile.result if value or waited is None else waited
        yield Spend(result, "fetch result", "overhead")
