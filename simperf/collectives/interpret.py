"""Proof by interpretation: a plan run on sets instead of bytes.

Every chunk at every participant is the set of ranks whose contribution it holds, as a
bit mask. Adding two sets that overlap would count a contribution twice; sending an
empty one is sending what one does not hold; and at the end everybody must hold exactly
what the collective promises.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from simperf.collectives.plan import Channel, Phase, Plan, Round, chunks_in

__all__ = ["problems_of"]

State = list[list[int]]

#: problems that are told before the rest is left out
MOST = 10


def _owner(plan: Plan, nchunks: int, chunk: int) -> int:
    """Rank from which (or at which) a chunk of a gathering (scattering) collective starts (ends)."""
    return chunk * plan.nranks // nchunks


def _start(plan: Plan, nchunks: int) -> State:
    state = [[0] * nchunks for _ in range(plan.nparticipants)]
    for rank in range(plan.nranks):
        for chunk in range(nchunks):
            if plan.collective in ("all-reduce", "reduce-scatter", "reduce"):
                holds = True
            elif plan.collective in ("broadcast", "scatter"):
                holds = rank == plan.root
            else:
                holds = rank == _owner(plan, nchunks, chunk)
            state[rank][chunk] = (1 << rank) if holds else 0
    return state


def _wanted(plan: Plan, nchunks: int, rank: int, chunk: int) -> int | None:
    """What a rank must hold of a chunk at the end; None if it does not matter."""
    full, owner = (1 << plan.nranks) - 1, _owner(plan, nchunks, chunk)
    name, at_root = plan.collective, rank == plan.root
    if name == "all-reduce":
        return full
    if name == "reduce-scatter":
        return full if rank == owner else None
    if name == "reduce":
        return full if at_root else None
    if name == "broadcast":
        return 1 << plan.root
    if name == "scatter":
        return 1 << plan.root if rank == owner else None
    if name == "all-gather":
        return 1 << owner
    if name == "gather":
        return 1 << owner if at_root else None
    if name == "all-to-all":
        target = chunk * plan.nranks * plan.nranks // nchunks % plan.nranks
        return 1 << owner if rank == target else None
    return 1 << owner if rank == (owner + 1) % plan.nranks else None


def _deliver(state: State, dst: int, chunk: int, held: int, *, reduce: bool, tell: Callable[[str], None]) -> None:
    if reduce:
        twice = state[dst][chunk] & held
        if twice:
            tell(f"participant {dst} adds the contribution of rank {twice.bit_length() - 1} to chunk {chunk} twice")
        state[dst][chunk] |= held
    else:
        state[dst][chunk] = held


def _take(state: State, src: int, chunk: int, tell: Callable[[str], None]) -> int:
    if not state[src][chunk]:
        tell(f"participant {src} sends chunk {chunk}, which it does not hold")
    return state[src][chunk]


def _in_range(plan: Plan, channel: Channel, one: Round, tell: Callable[[str], None]) -> bool:
    last, most = int(np.max(one.chunk, initial=0)), int(np.max(one.span, initial=0))
    ends = np.concatenate((one.src, one.dst))
    if len(one) and (last >= channel.nchunks or one.chunk.min() < 0):
        tell(f"a send carries a chunk that is none of the {channel.nchunks}")
    elif most > channel.nchunks:
        tell(f"a send carries {most} of {channel.nchunks} chunks")
    elif len(one) and (ends.max() >= plan.nparticipants or ends.min() < 0):
        tell(f"a send goes from or to a participant that is none of the {plan.nparticipants}")
    elif np.any(one.src == one.dst):
        tell("a participant sends to itself")
    else:
        return True
    return False


def _steps(state: State, phase: Phase, tell: Callable[[str], None], level: list[int]) -> None:
    """Rounds in order; all sends of a round read what was there before it."""
    for one in phase:
        sent = []
        for src, dst, chunk, span, reduce in one.rows():
            parts = chunks_in(chunk, span, len(state[src]))
            sent.append((src, dst, reduce, level[src] + 1, [(part, _take(state, src, part, tell)) for part in parts]))
        for src, dst, reduce, depth, held in sent:
            level[src], level[dst] = max(level[src], depth), max(level[dst], depth)
            for part, contributions in held:
                _deliver(state, dst, part, contributions, reduce=reduce, tell=tell)


def _pipeline(state: State, phase: Phase, tell: Callable[[str], None], level: list[int], seed: int) -> None:
    """Sends in a random order among those that their style allows, read when they start."""
    rows = [(*row, index) for index, one in enumerate(phase) for row in one.rows()]
    waits: list[set[int]] = []
    arrivals: dict[tuple[int, int], list[tuple[int, int]]] = {}
    lanes: dict[tuple[int, int], int] = {}
    for number, (src, dst, chunk, span, _, index) in enumerate(rows):
        parts = chunks_in(chunk, span, len(state[src]))
        before = {other for part in parts for other, when in arrivals.get((src, part), ()) if when < index}
        if (src, dst) in lanes:
            before.add(lanes[src, dst])
        lanes[src, dst] = number
        waits.append(before)
        for part in parts:
            arrivals.setdefault((dst, part), []).append((number, index))
    feeds: list[list[int]] = [[] for _ in rows]
    for number, before in enumerate(waits):
        for other in sorted(before):
            feeds[other].append(number)
    depth = [level[row[0]] + 1 for row in rows]
    left = [len(before) for before in waits]
    ready = [number for number, count in enumerate(left) if not count]
    chance = random.Random(seed)
    while ready:
        number = ready.pop(chance.randrange(len(ready)))
        src, dst, chunk, span, reduce, _ = rows[number]
        for part in chunks_in(chunk, span, len(state[src])):
            _deliver(state, dst, part, _take(state, src, part, tell), reduce=reduce, tell=tell)
        for fed in feeds[number]:
            depth[fed] = max(depth[fed], depth[number] + 1)
            left[fed] -= 1
            if not left[fed]:
                ready.append(fed)
    for (src, dst, *_), reached in zip(rows, depth, strict=True):
        level[src], level[dst] = max(level[src], reached), max(level[dst], reached)


def problems_of(plan: Plan, *, seed: int = 0) -> list[str]:
    """Problems of a plan; none if it does what it promises at the cost it claims.

    Parameters
    ----------
    plan : Plan
        The plan; work grows with its sends, so that some tens of ranks are enough.
    seed : int
        Order in which sends that may pass each other in a pipeline do.
    """
    found: list[str] = []

    def tell(text: str) -> None:
        if text not in found:
            found.append(text)

    sent = np.zeros(plan.nparticipants)
    steps = 0
    for channel in plan.channels:
        rounds = [one for phase in channel.phases for one in phase]
        if not all(_in_range(plan, channel, one, tell) for one in rounds):
            continue
        for one in rounds:
            spans = np.broadcast_to(np.asarray(one.span, dtype=np.float64), len(one))
            np.add.at(sent, one.src, spans * (channel.share * plan.copies / channel.nchunks))
        state, level = _start(plan, channel.nchunks), [0] * plan.nparticipants
        for phase in channel.phases:
            if phase.style == "pipeline":
                _pipeline(state, phase, tell, level, seed)
            else:
                _steps(state, phase, tell, level)
        steps = max(steps, *level)
        for rank in range(plan.nranks):
            for chunk in range(channel.nchunks):
                wanted = _wanted(plan, channel.nchunks, rank, chunk)
                if wanted is not None and state[rank][chunk] != wanted:
                    missing = wanted & ~state[rank][chunk]
                    what = f"misses that of rank {missing.bit_length() - 1}" if missing else "holds more than it should"
                    tell(f"rank {rank} ends without the right contributions to chunk {chunk}: it {what}")
    shares = sum(channel.share for channel in plan.channels)
    if abs(shares - 1.0) > 1e-9:
        tell(f"the shares of the channels add up to {shares:g}, not to 1")
    if abs(float(sent.max()) - plan.sent) > 1e-9 * max(1.0, plan.sent):
        tell(f"the busiest participant sends {sent.max():g} payloads, but the plan claims {plan.sent:g}")
    if steps != plan.steps:
        tell(f"the longest chain of sends is {steps}, but the plan claims {plan.steps}")
    return found[:MOST]
