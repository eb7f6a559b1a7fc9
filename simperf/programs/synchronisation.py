"""Programs that add up gradients: where, and how.

"Dive into Deep Learning", section 12.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import simpy

from simperf.collectives import collective_event
from simperf.collectives.execute import Context, start
from simperf.collectives.executors import Executor
from simperf.collectives.machine_plans import plan_for, reducing_sites
from simperf.collectives.plan import bus_factor
from simperf.collectives.settings import HOSTED, NCCL, NcclSettings, default_algorithm, find_algorithm, runs_on
from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.hardware import find_rings
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.units import Bytes, BytesPerSecond, format_quantity

if TYPE_CHECKING:
    from simperf.collectives.nccl import Choice
    from simperf.execution.process_group import ProcessGroup

__all__ = ["all_reduce"]


@program("all-reduce", events=lambda given: 4.0 * given["times"] * given["together"])
def all_reduce(
    m: Session,
    *,
    algorithm: str = "",
    nbytes: Bytes = 160e6,
    gpus: int = 0,
    servers: list[str] = [],
    options: dict[str, Any] = {},
    times: Count = 1,
    together: Count = 1,
    background: BytesPerSecond = 0.0,
) -> Program:
    """Add up one gradient of every GPU and give the sum to all (sections 12.7.1 and 12.7.2).

    Parameters
    ----------
    algorithm : str
        how; nccl as NCCL would, nccl-ring with its rings alone; all others are idealised, and `simperf collective
        all-reduce --algo all` lists them (tree, rabenseifner and direct are short names); if none is named, nccl where
        all are GPUs that it runs on, else ring
    nbytes : float
        payload: the gradient of one GPU
    gpus : int
        GPUs that take part, 0 for all
    servers : list of str
        nodes that add up where the algorithm has servers; the host if none is named
    options : table
        options of the algorithm; of nccl: network, in_network, launches, timing, version, protocol; the timings torch
        and profiler have a process a GPU, which pays the frontend's time of a collective's call
    times : int
        repetitions, one after the other
    together : int
        all-reduces at the same time, which share the links
    background : float
        rate of others' traffic from each GPU to the next one
    """
    there = m.machine.workers
    nodes = there[: gpus or None]
    if gpus > len(there):
        expected = f"at most {len(there)}, or 0 for all"
        raise InputError(Problem(f"the machine has {len(there)}", key="gpus", value=str(gpus), expected=expected))
    algorithm = find_algorithm("all-reduce", algorithm) if algorithm else default_algorithm(m.machine, nodes)
    if algorithm in NCCL and servers:
        message = "NCCL has no servers"
        raise InputError(Problem(message, key="servers", value=", ".join(servers), expected="an idealised algorithm"))
    settings = NcclSettings.read(algorithm, options) if algorithm in NCCL else None
    start, group, timed = None, None, list[float]()
    if settings is None:
        start = _idealised(m, algorithm, nodes, nbytes, servers, options)
    elif settings.timing in HOSTED:
        group = _hosted(m, nodes, nbytes, settings, together)
    else:
        start = _nccl(m, nodes, nbytes, settings)
    others = [
        m.simulation.network.background(m.machine.route(src, dst).resources, background)
        for src, dst in pairwise((*nodes, nodes[0]))
        if background and src != dst
    ]
    for _ in range(times):
        if group is not None:
            from simperf.execution.timed_calls import timed_call

            timed.append((yield from timed_call(m, group, "all-reduce", nbytes)))
        running = [start() for _ in range(together)] if start is not None else []
        for done in running:
            yield wait(done, why=f"wait: all-reduce, {algorithm}")
    for traffic in others:
        traffic.stop()
    took = sum(timed) / times if timed else m.now / times
    if timed:
        m.metric("time of a call", took, "s")
    m.work("payload of a GPU", nbytes * times * together, "B")
    m.metric("algbw", nbytes / took if took else 0.0, "B/s")
    m.metric("busbw", nbytes / took * bus_factor("all-reduce", len(nodes)) if took else 0.0, "B/s")


def _choice(m: Session, nodes: Sequence[str], nbytes: float, settings: NcclSettings) -> Choice:
    """What NCCL takes; the session notes it."""
    choice = m.tuner(nodes, "all-reduce", settings).best(nbytes)
    channels = choice.channels
    assert channels is not None, "an all-reduce is made of channels"
    m.notes.append(f"NCCL takes {choice.name}, {len(channels.flows)} channels")
    return choice


def _hosted(m: Session, nodes: Sequence[str], nbytes: float, settings: NcclSettings, together: int) -> ProcessGroup:
    """The ranks of all-reduces that are timed through torch."""
    from simperf.execution.timed_calls import timed_group

    if together > 1:
        message = "calls through torch follow each other"
        raise InputError(Problem(message, key="together", value=f"{together}", expected="1"))
    _choice(m, nodes, nbytes, settings)
    return timed_group(m, nodes, settings)


def _nccl(m: Session, nodes: Sequence[str], nbytes: float, settings: NcclSettings) -> Callable[[], simpy.Event]:
    """Start of an all-reduce as NCCL would do it."""
    choice = _choice(m, nodes, nbytes, settings)
    if not runs_on(m.machine, nodes):
        m.notes.append("NCCL does not run on these GPUs: its constants stand for their own library, unmeasured")
    entry = [0.0] * choice.plan.nparticipants
    begin = partial(start, choice.placed, nbytes, Context.of(m.simulation), entry=entry)
    return partial(_recorded, m, nodes, choice.name, begin)


def _recorded(m: Session, nodes: Sequence[str], name: str, begin: Callable[[], Executor]) -> simpy.Event:
    """Start channels, and tell the timeline of all ranks' time in them."""
    recorder, began, end = m.simulation.recorder, m.now, begin().done
    if recorder is not None:
        assert end.callbacks is not None

        def tell(_: simpy.Event) -> None:
            for node in nodes:
                recorder.span(f"{node}/nccl", f"all-reduce {name}", began, m.now, "communication")

        end.callbacks.append(tell)
    return end


def _idealised(
    m: Session, algorithm: str, nodes: Sequence[str], nbytes: float, servers: Sequence[str], options: Mapping[str, Any]
) -> Callable[[], simpy.Event]:
    """Start of an all-reduce by a plan, every send a flow."""
    if algorithm == "multi-ring" and "orders" not in options:
        rings = find_rings(m.machine, nodes)
        if not rings:
            raise ProgramError(f"no NVLink ring connects the {len(nodes)} GPUs; use the algorithm 'ring'")
        m.notes += [f"{len(rings)} rings found on the topology:"]
        m.notes += [f"{' '.join(ring.order)} at {format_quantity(ring.bandwidth, 'B/s')}" for ring in rings]
    plan = plan_for(m.machine, "all-reduce", algorithm, ranks=nodes, nbytes=nbytes, **options)
    sites = reducing_sites(m.machine, algorithm, nodes, options)
    places = list(sites or servers or [m.host] * plan.nservers)
    return partial(collective_event, m.simulation, plan, nodes, nbytes, servers=places or None)
