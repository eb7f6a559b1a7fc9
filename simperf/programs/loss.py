"""The loss of a parameter server.

"Dive into Deep Learning", section 12.7, asks in its exercises what happens when a server is lost.
"""

from __future__ import annotations

import simpy

from simperf.errors import ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.training.failures.recovery import Recovery
from simperf.training.servers.shards import move_shards, place_shards, take_over
from simperf.units import Bytes, Seconds

__all__ = ["server_loss"]


@program("server-loss")
def server_loss(
    m: Session,
    *,
    workers: list[str] = [],
    servers: list[str] = [],
    store: str = "",
    nbytes: Bytes = 160e6,
    shards: int = 12,
    replicas: int = 0,
    compute: Seconds = 50e-3,
    steps: int = 20,
    lost: str = "",
    fails_at: Seconds = 0.5,
    heartbeat: Seconds = 0.05,
    timeout: Seconds = 0.2,
    checkpoint_every: int = 5,
) -> Program:
    """Lose a parameter server: detection, new homes for its shards, steps that are redone (section 12.7.2).

    Parameters
    ----------
    workers : list of str
        nodes that push gradients and pull weights; all GPUs if none is named
    servers : list of str
        nodes that hold the shards
    store : str
        node that holds the checkpoint of every shard
    nbytes : float
        all parameters
    shards : int
        parts into which they are cut
    replicas : int
        further servers that hold each shard; workers push to them as well
    compute : float
        forward and backward pass of every worker
    steps : int
        steps to be done
    lost : str
        server that is lost
    fails_at : float
        when
    heartbeat : float
        time between two signs of life
    timeout : float
        silence after which a server is given up
    checkpoint_every : int
        steps between two checkpoints; without replicas, training falls back to the last
    """
    pool, homes = list(workers or m.machine.gpus), list(servers)
    if lost and lost not in homes:
        raise ProgramError(f"the lost server {lost!r} is none of the servers: {', '.join(homes) or 'none'}")
    if not pool:
        raise ProgramError("the machine has no GPU to be a worker; name the nodes that train as workers")
    if steps < 1 or checkpoint_every < 1:
        raise ProgramError("steps and checkpoint_every must be 1 or more")
    placed = place_shards(nbytes, homes, shards=shards, replicas=replicas)
    silence = Recovery(heartbeat, timeout)
    env, network, times, redone, number = m.simulation.env, m.simulation.network, [], 0, 0
    failure = env.timeout(fails_at) if lost else simpy.Event(env)
    while number < steps:
        started, flows = m.now, []
        yield env.timeout(compute) | failure
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
        yield env.timeout(silence.detection(failed))
        m.show("job/detection", "nobody knows", failed, "wait")
        before = times[-1] if times else 0.0
        placed, moves = take_over(placed, [lost], store=store)
        took = yield from move_shards(m, moves)
        back = number if replicas else number - number % checkpoint_every
        redone, number = number - back, back
        m.metric("detection", silence.detection(failed), "s")
        m.metric("reassignment", took, "s")
        m.metric("bytes moved for it", sum(move.nbytes for move in moves), "B")
        m.metric("time per step before", before, "s")
    if lost and "detection" not in m.metrics:
        m.notes.append(f"the run was over before {lost} was lost")
    m.work("steps", steps)
    m.metric("steps redone", redone)
    m.metric("time per step at last", times[-1], "s")
