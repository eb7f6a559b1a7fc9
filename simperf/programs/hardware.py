"""Latency and bandwidth of memory, caches, disks, links and wide-area networks.

"Dive into Deep Learning", section 12.4.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

import simpy

from simperf.engine.storage import Dram
from simperf.errors import ProgramError
from simperf.execution import Program, wait
from simperf.execution.drives import find_disk
from simperf.execution.session import Session
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.units import Bytes

__all__ = ["disk_reads", "memory_reads", "pointer_chase", "round_trips", "sends"]


def _reads(given: Mapping[str, Any]) -> float:
    """About how many events reads at random are; bursts are a few."""
    access = given["access"]
    return 7.0 * given["nbytes"] / access if given["pattern"] == "random" and access > 0 else 0.0


@program("memory-reads", events=_reads)
def memory_reads(
    m: Session,
    *,
    nbytes: Bytes = 640e3,
    access: Bytes = 64,
    pattern: Literal["random", "sequential"] = "random",
    banks: Count = 1,
    channels: int = 0,
) -> Program:
    """Read host memory in bursts from one address a channel, or by a new address each time (section 12.4.2).

    Parameters
    ----------
    nbytes : float
        bytes that are wanted
    access : float
        bytes that are wanted from one address when reading at random
    pattern : str
        random, or sequential: one address a channel, then bursts
    banks : int
        addresses that one channel can have open at the same time
    channels : int
        channels in use, 0 for all that the socket has
    """
    cpu = m.machine.nodes[m.host].part
    channels = channels or cpu.memory_channels
    if not 1 <= channels <= cpu.memory_channels:
        raise ProgramError(f"channels is {channels}; it must be at most the socket's {cpu.memory_channels}")
    for name, size in (("nbytes", nbytes), ("access", access)):
        if not size > 0.0:
            raise ProgramError(f"{name} is {size:g} B: a size above 0 is expected")
    env, recorder = m.simulation.env, m.simulation.recorder
    dram = Dram(env, cpu.memory, channels=channels, banks=banks, name=f"{m.host}/memory", recorder=recorder)
    if pattern == "sequential":
        reads = [dram.read(nbytes / channels, i) for i in range(channels)]
    else:
        reads = [dram.read(access, i) for i in range(math.ceil(nbytes / access))]
    yield env.all_of(reads)
    m.work("payload", nbytes, "B")
    m.rate("bandwidth", nbytes, "B/s")
    m.metric("time per access", m.now / len(reads), "s")


@program("pointer-chase", events=lambda given: float(given["n"]))
def pointer_chase(m: Session, *, working_set: Bytes = 16e3, n: Count = 1000) -> Program:
    """Follow n pointers through a working set: each load waits for the one before (section 12.4.4).

    Parameters
    ----------
    working_set : float
        bytes that are visited again and again; the smallest cache that holds them answers
    n : int
        loads
    """
    cpu = m.machine.nodes[m.host].part
    level = next((cache for cache in cpu.caches if working_set <= cache.capacity), None)
    latency = level.latency if level else cpu.memory_latency
    for _ in range(n):
        started = m.now
        yield m.simulation.env.timeout(latency)
        m.show(f"{m.host}/loads", level.level if level else "memory", started, "memory")
    m.notes.append(f"the working set fits {level.level if level else 'no cache: main memory answers'}")
    m.work("loads", n)
    m.metric("latency", m.now / n, "s")


@program("disk-reads", events=lambda given: 8.0 * max(given["n"], given["outstanding"]))
def disk_reads(
    m: Session,
    *,
    disk: str = "disk0",
    n: Count = 100,
    nbytes: Bytes = 4096,
    pattern: Literal["random", "sequential"] = "random",
    outstanding: Count = 1,
    worst: bool = False,
    write: bool = False,
) -> Program:
    """Read (or write) a disk at random or in order (section 12.4.3).

    Parameters
    ----------
    disk : str
        storage node of the machine
    n : int
        requests
    nbytes : float
        bytes of one request
    pattern : str
        random or sequential
    outstanding : int
        requests in flight at the same time
    worst : bool
        every request waits for a full revolution
    write : bool
        write instead of read
    """
    env, drive = m.simulation.env, find_disk(m, disk, worst=worst)
    serve = drive.write if write else drive.read

    def requests(count: int) -> Program:
        for _ in range(count):
            yield serve(nbytes, sequential=pattern == "sequential")

    ways = [env.process(requests(n // outstanding + (i < n % outstanding))) for i in range(outstanding)]
    yield env.all_of(ways)
    m.work("payload", n * nbytes, "B")
    m.rate("bandwidth", n * nbytes, "B/s")
    m.rate("requests per second", n)
    m.metric("time per request", m.now / n * outstanding, "s")


@program("sends", events=lambda given: 4.0 * given["n"])
def sends(
    m: Session,
    *,
    source: str = "gpu0",
    target: str = "gpu1",
    nbytes: Bytes = 1e6,
    n: Count = 1,
    in_flight: Count = 1,
) -> Program:
    """Send messages from one node of the machine to another.

    Parameters
    ----------
    source : str
        node that sends
    target : str
        node that receives
    nbytes : float
        payload of one message
    n : int
        messages, in order
    in_flight : int
        messages that are asked for before the first of them has arrived
    """
    under_way: deque[simpy.Event] = deque()
    for _ in range(n):
        if len(under_way) == in_flight:
            yield under_way.popleft()
        under_way.append(m.send(source, target, nbytes))
    while under_way:
        yield under_way.popleft()
    m.work("payload", n * nbytes, "B")
    m.metric("time per message", m.now / n, "s")
    m.metric("bandwidth", n * nbytes / m.now if m.now else 0.0, "B/s")


@program("round-trips", events=lambda given: 8.0 * given["n"])
def round_trips(
    m: Session,
    *,
    near: str = "nic0",
    far: str = "nic1",
    nbytes: Bytes = 1000,
    reply: Bytes = 1000,
    n: Count = 1,
    protocol: Literal["udp", "tcp"] = "udp",
) -> Program:
    """Ask a far machine and wait for its answer (section 12.4, exercises 10 and 13).

    Parameters
    ----------
    near : str
        node that asks
    far : str
        node that answers
    nbytes : float
        payload of a question
    reply : float
        payload of an answer
    n : int
        questions, one after the other
    protocol : str
        udp sends at once; tcp first opens a connection, which takes a round trip of its own
    """
    if protocol == "tcp":
        yield wait(m.send(near, far, 0.0, name="SYN"))
        yield wait(m.send(far, near, 0.0, name="SYN-ACK"))
    for _ in range(n):
        yield m.send(near, far, nbytes, name="question")
        yield m.send(far, near, reply, name="answer")
    m.work("questions", n)
    m.metric("round trip", m.now / n, "s")
