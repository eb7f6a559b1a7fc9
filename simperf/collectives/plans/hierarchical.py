"""Hierarchical: inside every server, then between servers, then inside again.

If the inner algorithm can reduce-scatter, every GPU carries its share of the payload
between the servers, to the GPUs of its own index (Horovod's and NCCL's way of using
all network cards of a server; Jia et al., "Highly scalable deep learning training
system with mixed-precision", 2018). If it can only reduce and broadcast, one leader a
server does. Any inner algorithm goes with any outer one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from simperf.collectives.algorithms import algorithms, collective, full_name, make_plan
from simperf.collectives.plan import Channel, IntArray, Phase, Plan, busiest
from simperf.errors import InputError, Problem, UnknownNameError

__all__ = ["all_reduce"]


def _check(nranks: int, group: int, inner: str, outer: str) -> None:
    if group < 1 or nranks % group:
        message = f"{nranks} ranks do not fall into servers of {group}"
        raise InputError(Problem(message, key="group", value=str(group), expected="a divisor of the number of ranks"))
    if "hierarchical" in (inner, outer):
        raise InputError(
            Problem(
                "a hierarchy of more than two levels is not made by name",
                key="outer",
                expected="an algorithm of one level, such as ring",
            )
        )
    if make_plan("all-reduce", outer, nranks=1).nservers:
        raise InputError(
            Problem(
                "the outer algorithm must work without servers",
                key="outer",
                value=outer,
                expected="an algorithm of ranks alone, such as ring",
            )
        )


def _spread(phases: tuple[Phase, ...], groups: IntArray, base: IntArray, scale: int) -> tuple[Phase, ...]:
    return tuple(phase.over(groups, base=base, scale=scale) for phase in phases if phase.nrounds)


@collective("all-reduce", "hierarchical")
def all_reduce(
    nranks: int,
    *,
    group: int,
    inner: str = "ring",
    outer: str = "ring",
    inner_options: Mapping[str, Any] | None = None,
    outer_options: Mapping[str, Any] | None = None,
) -> Plan:
    """Any inner with any outer algorithm.

    Parameters
    ----------
    nranks : int
        Ranks; rank r is in server ``r // group``.
    group : int
        Ranks a server.
    inner : str
        An algorithm that has both reduce-scatter and all-gather, or both reduce and broadcast.
    outer : str
        An all-reduce algorithm.
    inner_options, outer_options : mapping
        Options of the two.
    """
    inner, outer = full_name("all-reduce", inner), full_name("all-reduce", outer)
    _check(nranks, group, inner, outer)
    scattering = inner in algorithms("reduce-scatter") and inner in algorithms("all-gather")
    if not scattering and not (inner in algorithms("reduce") and inner in algorithms("broadcast")):
        both = set(algorithms("reduce-scatter")) & set(algorithms("all-gather"))
        known = both | set(algorithms("reduce")) & set(algorithms("broadcast"))
        raise UnknownNameError("inner algorithm", inner, known)
    first, last = ("reduce-scatter", "all-gather") if scattering else ("reduce", "broadcast")
    gather = make_plan(first, inner, nranks=group, **(inner_options or {}))
    spread = make_plan(last, inner, nranks=group, **(inner_options or {}))
    between = make_plan("all-reduce", outer, nranks=nranks // group, **(outer_options or {}))
    servers = np.arange(nranks, dtype=np.int64).reshape(nranks // group, group)
    carriers = group if scattering else 1
    zero = np.zeros(len(servers), dtype=np.int64)
    channels = []
    for up, down in zip(gather.channels, spread.channels, strict=True):
        for across in between.channels:
            run = math.lcm(up.nchunks // carriers, down.nchunks // carriers, across.nchunks)
            total = run * carriers
            phases = (
                *_spread(up.phases, servers, zero, total // up.nchunks),
                *_spread(across.phases, servers.T[:carriers], np.arange(carriers) * run, run // across.nchunks),
                *_spread(down.phases, servers, zero, total // down.nchunks),
            )
            channels.append(Channel(phases, total, up.share * across.share))
    steps = gather.steps + between.steps + spread.steps
    sent = gather.sent + between.sent / group + spread.sent if scattering else busiest(tuple(channels), nranks)
    return Plan("all-reduce", "hierarchical", nranks, tuple(channels), steps, sent)
