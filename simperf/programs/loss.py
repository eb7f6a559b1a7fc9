"""The loss of a parameter server.

"Dive into Deep Learning", section 12.7, asks in its exercises what happens when a server is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import simpy

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.fields import keys
from simperf.programs.registry import program
from simperf.training.failures.recovery import Recovery
from simperf.training.servers.shards import ReplicatedShard, move_shards, place_shards, take_over
from simperf.units import Bytes, Seconds

__all__ = ["HeldParameters", "ServerLoss", "server_loss"]


@dataclass(frozen=True, slots=True)
class HeldParameters:
    """Parameters that servers hold in parts.

    Parameters
    ----------
    servers : tuple of str
        nodes that hold the shards
    store : str
        node that holds the checkpoint of every shard
    nbytes : float
        all parameters
    shards : int
        parts into which they are cut
    replicas : int
        further servers that hold each shard; workers push to them as well
    """

    servers: tuple[str, ...] = ()
    store: str = ""
    nbytes: Bytes = 160e6
    shards: int = 12
    replicas: int = 0

    def placed(self) -> tuple[ReplicatedShard, ...]:
        """The shards, each with its servers."""
        return place_shards(self.nbytes, self.servers, shards=self.shards, replicas=self.replicas)


@dataclass(frozen=True, slots=True)
class ServerLoss:
    """Training with parameter servers of which one is lost.

    Parameters
    ----------
    workers : tuple of str
        nodes that push gradients and pull weights; all GPUs if none is named
    held : HeldParameters
        what the servers hold
    compute : float
        forward and backward pass of every worker
    steps : int
        steps to be done
    lost : str
        server that is lost
    fails_at : float
        when
    recovery : Recovery
        how the loss is noticed
    checkpoint_every : int
        steps between two checkpoints; without replicas, training falls back to the last
    """

    workers: tuple[str, ...] = ()
    held: HeldParameters = field(default_factory=HeldParameters)
    compute: Seconds = 50e-3
    steps: int = 20
    lost: str = ""
    fails_at: Seconds = 0.5
    recovery: Recovery = field(default=Recovery(heartbeat=0.05, timeout=0.2), metadata=keys("heartbeat", "timeout"))
    checkpoint_every: int = 5

    def __post_init__(self) -> None:
        if len(set(self.workers)) < len(self.workers):
            twice = next(name for name in self.workers if self.workers.count(name) > 1)
            message = f"the worker {twice!r} is named twice"
            raise InputError(Problem(message, key="workers", value=", ".join(self.workers), expected="each once"))


@program("server-loss", events=lambda given: 4.0 * given["steps"] * max(given["shards"], 1))
def server_loss(m: Session, options: ServerLoss) -> Program:
    """Lose a parameter server: detection, new homes for its shards, steps that are redone (section 12.7.2)."""
    pool, homes, lost = list(options.workers or m.machine.gpus), options.held.servers, options.lost
    if lost and lost not in homes:
        raise ProgramError(f"the lost server {lost!r} is none of the servers: {', '.join(homes) or 'none'}")
    if not pool:
        raise ProgramError("the machine has no GPU to be a worker; name the nodes that train as workers")
    if options.steps < 1 or options.checkpoint_every < 1:
        raise ProgramError("steps and checkpoint_every must be 1 or more")
    placed = options.held.placed()
    env, network, times, redone, number = m.simulation.env, m.simulation.network, [], 0, 0
    failure = env.timeout(options.fails_at) if lost else simpy.Event(env)
    while number < options.steps:
        started, flows = m.now, []
        yield env.timeout(options.compute) | failure
        for worker in pool:
            m.show(f"{worker}/step", "forward and backward", started, "compute")
        for way in ("push", "pull"):
            if failure.processed:
                break
            push = way == "push"
            flows = [
                m.send(worker if push else server, server if push else worker, shard.nbytes, name=way)
                for worker in pool
                for shard in placed
                for server in (shard.home, *(shard.replicas if push else ()))
            ]
            yield env.all_of(flows) | failure
        if not failure.processed:
            times.append(m.now - started)
            number += 1
            continue
        for flow in flows:
            network.cancel(flow)
        failed, failure = m.now, simpy.Event(env)
        yield env.timeout(options.recovery.detection(failed))
        m.show("job/detection", "nobody knows", failed, "wait")
        before = times[-1] if times else 0.0
        placed, moves = take_over(placed, [lost], store=options.held.store)
        took = yield from move_shards(m, moves)
        back = number if options.held.replicas else number - number % options.checkpoint_every
        redone, number = number - back, back
        m.metric("detection", options.recovery.detection(failed), "s")
        m.metric("reassignment", took, "s")
        m.metric("bytes moved for it", sum(move.nbytes for move in moves), "B")
        m.metric("time per step before", before, "s")
    if lost and "detection" not in m.metrics:
        m.notes.append(f"the run was over before {lost} was lost")
    m.work("steps", options.steps)
    m.metric("steps redone", redone)
    m.metric("time per step at last", times[-1], "s")
