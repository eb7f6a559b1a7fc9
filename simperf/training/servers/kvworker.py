"""A worker's side of the key-value store: the `kv` of a training loop."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import simpy

from simperf.engine.items import Marker
from simperf.errors import ProgramError
from simperf.execution import wait
from simperf.training.servers.multi_machine import Team
from simperf.training.servers.placement import Shard

if TYPE_CHECKING:
    from simperf.training.servers.kvstore import KVStore

__all__ = ["KVWorker"]


@dataclass(slots=True)
class _Answer:
    """Shards of a key that have not come back yet, and the event of the whole weight."""

    left: int
    weight: simpy.Event


class KVWorker:
    """A GPU's view of the store: the `kv` of a training loop.

    Parameters
    ----------
    store : KVStore
    team : Team
    gpu : str
    """

    def __init__(self, store: KVStore, team: Team, gpu: str) -> None:
        self.store, self.team, self.gpu = store, team, gpu
        self.turn = 0
        self._pushed: dict[int, simpy.Event] = {}  # this step's weights, to come
        self._open: dict[int, deque[_Answer]] = {}  # answers on their way, oldest first
        self._outstanding = 0
        self._all: simpy.Event | None = None
        team.receivers[gpu] = self._got

    @property
    def step(self) -> int:
        """Number of the step that the worker is at."""
        return self.team.steps[self.turn]

    def push(self, key: int, grad: Marker | simpy.Event | None = None) -> None:
        """Send the gradient of a key, once a step; the server answers it with the weight.

        Parameters
        ----------
        key : int
        grad : Marker or simpy.Event, optional
            What says that the gradient is there, such as a marker recorded after its kernel; now, if left out.

        Raises
        ------
        ProgramError
            The key was pushed before in this step, or there is none such.
        """
        if key not in self.store.by_key:
            raise ProgramError(f"the store has no key {key}; it has {len(self.store.sizes)}, from 0")
        if key in self._pushed:
            raise ProgramError(f"key {key} is pushed twice in one step by {self.gpu}; call next() between steps")
        answer = _Answer(len(self.store.by_key[key]), simpy.Event(self.store.m.simulation.env))
        self._pushed[key] = answer.weight
        self._open.setdefault(key, deque()).append(answer)
        self._outstanding += 1
        event = grad.done if isinstance(grad, Marker) else grad
        if event is None or event.callbacks is None:
            self._send(key, self.step)
        else:
            step = self.step
            event.callbacks.append(lambda _: self._send(key, step))

    def pull(self, key: int) -> simpy.Event:
        """The event of a key's weight: it comes when the weight is on the GPU, fresh enough for the next step.

        Raises
        ------
        ProgramError
            The key's gradient was not pushed in this step.
        """
        if key not in self._pushed:
            raise ProgramError(f"key {key} is pulled by {self.gpu} before its gradient is pushed")
        return self._pushed[key]

    def wait(self) -> Any:
        """A verb: wait until all weights are there whose gradients were pushed."""
        env = self.store.m.simulation.env
        self._all = simpy.Event(env) if self._outstanding else None
        return wait(self._all or simpy.Timeout(env, 0.0), why="wait: weights")

    def next(self) -> int:
        """Go on to the next step; returns its number.

        With backup workers, a team that came late goes on to the step that the others are at.
        """
        self._pushed = {}
        self.turn += 1
        if self.turn == len(self.team.steps):
            ahead = min(table.version for table in self.store.tables) if self.store.options.rule.backup else 0
            self.team.steps.append(max(self.team.steps[-1] + 1, ahead))
        return self.step

    def leave(self) -> None:
        """Stop: the others no longer wait for this worker."""
        for table in self.store.tables:
            table.leave(self.team.number)

    def _send(self, key: int, step: int) -> None:
        for shard in self.store.by_key[key]:
            self.team.gradient(self.gpu, shard, step)

    def _got(self, shard: Shard) -> None:
        answer = self._open[shard.key][0]
        answer.left -= 1
        if answer.left:
            return
        self._open[shard.key].popleft()
        answer.weight.succeed(self.store.m.now)
        self._outstanding -= 1
        if self._all is not None and not self._outstanding:
            self._all.succeed()
            self._all = None
