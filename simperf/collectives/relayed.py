"""Channels of DeepEP's kernels: a token goes once to each server, and from there once to each rank that needs it.

Ranks of the same place in their servers send to each other over the network; whoever gets a token there sends it on
over NVLink, while others still arrive. What comes back goes the other way. So network and NVLink carry at the same
time, and the slower of them counts, or the multiprocessors of the kernel. Inside one server there is NVLink alone.
(deepseek-ai/DeepEP, README and csrc/kernels/internode.cu.) What part of the tokens needs a server or a rank is
`simperf.workload.token_copies.TokenCopies`; all ranks send alike. Where experts are unequally loaded, ranks get
unequal parts, at rates in proportion, so that the rank that gets most bounds all.

Constants are fitted, by architecture, to half of the tables of DeepEP inside a server (ai-dynamo/aiconfigurator at
095f58a, SGLang's wideep_deepep_normal): a start, a rate for each multiprocessor, at which all copies of a token and the
token itself (so many times as a copy) go through, and a rate that NVLink's sends do not exceed. See
docs/explanation/experts.md for what they are off on the other half. Not modelled: the kernel that tells ranks how many
tokens come, for which a process waits, and the low-latency kernels.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.collectives.executors import PlacedPlan
from simperf.errors import InputError, Problem
from simperf.hardware import GpuPart
from simperf.workload.token_copies import TokenCopies

__all__ = ["KERNEL_RATES", "KernelRates", "TokenKernel", "relayed_channels"]


class KernelRates(NamedTuple):
    """Times of a kernel of DeepEP on an architecture.

    Attributes
    ----------
    start : float
        Time without tokens [s].
    block : float
        Rate of a multiprocessor, of copies and of tokens [B/s].
    own : float
        How many copies a rank's own token counts for [1].
    nvlink : float
        Rate of a rank's sends over NVLink at most [B/s].
    """

    start: float
    block: float
    own: float
    nvlink: float


#: by architecture and direction: fitted, `hopper` to H100 and H200 and `blackwell` to B200
KERNEL_RATES = {
    ("hopper", "dispatch"): KernelRates(26.6e-6, 20.4e9, 1.5, 287e9),
    ("hopper", "combine"): KernelRates(38.8e-6, 29.9e9, 3.2, 290e9),
    ("blackwell", "dispatch"): KernelRates(35.4e-6, 19.0e9, 1.5, 273e9),
    ("blackwell", "combine"): KernelRates(48.1e-6, 28.5e9, 2.8, 346e9),
}


@dataclass(frozen=True, slots=True)
class TokenKernel:
    """A kernel that exchanges the tokens of ranks which experts are spread over.

    Parameters
    ----------
    copies : TokenCopies
        What part of the tokens goes to a server or a rank.
    blocks : int
        Multiprocessors that it holds [1].
    """

    copies: TokenCopies
    blocks: int = 20

    def traffic(self, nbytes: float, ranks: int) -> float:
        """Bytes that it reads and writes in the memory of the rank that gets most, of an exchange of `nbytes` [B]."""
        return 2.0 * nbytes * ranks * max(self.copies.reaches([[rank] for rank in range(ranks)], ranks))


def relayed_channels(placed: PlacedPlan, name: str, nbytes: float, kernel: TokenKernel) -> ChannelSet:
    """Channels of an exchange of tokens.

    Parameters
    ----------
    placed : PlacedPlan
        An all-to-all of the same ranks.
    name : str
        ``"dispatch"``, to the experts, or ``"combine"``, back from them.
    nbytes : float
        All tokens of a rank, each once [B].
    kernel : TokenKernel

    Raises
    ------
    InputError
        Servers of unequal parts, ranks without NVLink, or an architecture without these kernels.
    """
    servers = _servers(placed)
    if kernel.copies.splits(len(servers)):
        raise _refused(f"parts of several groups of experts are on one of the {len(servers)} servers")
    each, nranks, copies = len(servers[0]), placed.plan.nranks, kernel.copies
    rates, transport = _rates(placed, name), placed.transport
    # what goes to a server; and to a rank, whose tokens come to it from all servers
    of_server = dict(zip(map(tuple, servers), copies.reaches(servers, nranks), strict=True))
    of_rank = [len(servers) * part for part in copies.reaches([[rank] for rank in range(nranks)], nranks)]
    all_copies = each * max(of_rank) + rates.own  # what the rank that gets most receives is no less than any sends
    over_nvlink = (each - 1) * max(of_rank)
    sends: dict[tuple[bool, float], list[tuple[int, int]]] = {}
    for here, there in permutations(servers, 2):
        sends.setdefault((True, of_server[tuple(there)]), []).extend(zip(here, there, strict=True))
    for ranks in servers:
        for pair in permutations(ranks, 2):
            sends.setdefault((False, of_rank[pair[1]]), []).append(pair)
    flows, drawn, delay = [], [], rates.start
    for (_, share), pairs in sends.items():
        if not share or not nbytes:
            continue
        hops = [placed.placement.hop(*(pair if name == "dispatch" else pair[::-1])) for pair in pairs]
        counts = Counter(resource for hop in hops for resource in hop.resources)
        together = math.gcd(*counts.values()) or 1
        wide = min(hop.cap * transport.connections for hop in hops)
        nvlink = hops[0].medium == "nvlink"
        if not nvlink:
            delay = max(delay, rates.start + max(map(transport.latency, hops)))
        most = share * kernel.blocks * rates.block / all_copies
        most = min(most, share * rates.nvlink / over_nvlink) if nvlink and over_nvlink else most
        cap = min(wide, most / transport.efficiency)
        flows.append(ChannelFlow(delay, together * share * nbytes / transport.efficiency, together * cap))
        drawn.append({resource: count // together for resource, count in counts.items()})
    flows = [replace(flow, latency=delay) for flow in flows]
    return ChannelSet.over(flows, drawn, placed.placement.machine.resources)


def _servers(placed: PlacedPlan) -> list[list[int]]:
    """Ranks by server."""
    nodes, found = placed.placement.machine.nodes, dict[str, list[int]]()
    for rank in range(placed.plan.nranks):
        found.setdefault(nodes[placed.placement.nodes[rank]].server, []).append(rank)
    servers = list(found.values())
    if len({len(ranks) for ranks in servers}) > 1:
        raise _refused("servers are expected that have as many of the ranks with experts each")
    if any(placed.placement.hop(*pair).medium != "nvlink" for ranks in servers for pair in permutations(ranks, 2)):
        raise _refused("these GPUs are not joined by NVLink")
    return servers


def _rates(placed: PlacedPlan, name: str) -> KernelRates:
    part = placed.placement.machine.nodes[placed.placement.nodes[0]].part
    architecture = part.architecture if isinstance(part, GpuPart) else ""
    if (architecture, name) not in KERNEL_RATES:
        known = ", ".join(dict.fromkeys(one for one, _ in KERNEL_RATES))
        raise _refused(f"DeepEP's kernels are not known for these devices, but for {known}")
    return KERNEL_RATES[architecture, name]


def _refused(message: str) -> InputError:
    return InputError(Problem(message, key="expert_exchange", value="deepep", expected="nccl"))
