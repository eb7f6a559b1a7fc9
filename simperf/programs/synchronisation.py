"""Where and how gradients are added up.

"Dive into Deep Learning", section 12.7.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from simperf.collectives import collective_event, make_plan
from simperf.collectives.bench import bus_factor
from simperf.collectives.suit import plan_for, reducing_sites
from simperf.errors import ProgramError
from simperf.execution import Program, wait
from simperf.execution.session import Session
from simperf.hardware import find_rings
from simperf.programs.registry import Count, program
from simperf.units import Bytes, BytesPerSecond, format_quantity

__all__ = ["all_reduce"]


@program("all-reduce")
def all_reduce(
    m: Session,
    *,
    algorithm: str = "ring",
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
        how; `simperf collective all-reduce` lists them; multi-ring uses the rings found on the wiring
    nbytes : float
        payload: the gradient of one GPU
    gpus : int
        GPUs that take part, 0 for all
    servers : list of str
        nodes that add up where the algorithm has servers; the host if none is named
    options : table
        options of the algorithm
    times : int
        repetitions, one after the other
    together : int
        all-reduces at the same time, which share the links
    background : float
        rate of others' traffic from each GPU to the next one
    """
    nodes = m.machine.gpus[: gpus or None]
    if gpus > len(m.machine.gpus):
        raise ProgramError(f"gpus is {gpus}, but the machine has {len(m.machine.gpus)}")
    if algorithm == "multi-ring" and "orders" not in options:
        rings = find_rings(m.machine, nodes)
        if not rings:
            raise ProgramError(f"no NVLink ring connects the {len(nodes)} GPUs; use the algorithm 'ring'")
        index = {node: rank for rank, node in enumerate(nodes)}
        options = {
            **options,
            "orders": [[index[node] for node in ring.order] for ring in rings],
            "weights": [ring.bandwidth for ring in rings],
        }
        m.notes += [f"{len(rings)} rings found on the wiring:"]
        m.notes += [f"{' '.join(ring.order)} at {format_quantity(ring.bandwidth, 'B/s')}" for ring in rings]
    sites = reducing_sites(m.machine, algorithm, nodes, options)
    if sites:
        plan = plan_for(m.machine, "all-reduce", algorithm, ranks=nodes, nbytes=nbytes, **options)
    else:
        plan = make_plan("all-reduce", algorithm, nranks=len(nodes), **options)
    places = list(sites or servers or [m.host] * plan.nservers)
    others = [
        m.simulation.network.background(m.machine.route(src, dst).resources, background)
        for src, dst in pairwise((*nodes, nodes[0]))
        if background and src != dst
    ]
    for _ in range(times):
        running = [collective_event(m.simulation, plan, nodes, nbytes, servers=places or None) for _ in range(together)]
        for done in running:
            yield wait(done, why=f"wait: all-reduce, {algorithm}")
    for traffic in others:
        traffic.stop()
    took = m.now / times
    m.metric("algbw", nbytes / took if took else 0.0, "B/s")
    m.metric("busbw", nbytes / took * bus_factor("all-reduce", len(nodes)) if took else 0.0, "B/s")
