"""V-shaped schedules: two chunks a stage, down the stages and up again, from a block that is repeated.

Stage s has parts s and 2p - 1 - s of the model. A block says when one micro-batch's passes begin on each stage, in
units of one pass; every six units the next micro-batch follows. Its offsets decide how long activations live, and so
the memory: a stage keeps p / 6 chunks for each unit of the sum of the four offsets. Qi, Wan, Amar and Lin, "Pipeline
Parallelism with Controllable Memory", NeurIPS 2024, sections 3 and 4.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import product

from simperf.schedules.schedule import Pass, Schedule

__all__ = ["Offsets", "v_shaped"]

#: passes of a micro-batch on a stage: F, B and W of two chunks, each taken to be one unit long
PERIOD = 6


@dataclass(frozen=True, slots=True)
class Offsets:
    """Units from a pass on one stage to the same pass on the next.

    Parameters
    ----------
    forward_down, forward_up, backward_down, backward_up : int
        F of the first chunk, F of the second, B of the second, B of the first, in the order of the passes.
    """

    forward_down: int
    forward_up: int
    backward_down: int
    backward_up: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Begins of the first micro-batch's passes on one stage, by kind and chunk, and chunks that the stage keeps."""

    begins: dict[tuple[str, int], int]
    kept: int


def v_shaped(name: str, stages: int, microbatches: int, offsets: Offsets, *, early: bool = False) -> Schedule:
    """The schedule that repeats a block, without its waits where nothing has to be waited for.

    A pass begins as soon as what it needs is done, in the order of the blocks; gradients of weights fill what is left,
    and go first where a stage keeps all the activations that its block does.

    Parameters
    ----------
    name : str
    stages, microbatches : int
    offsets : Offsets
    early : bool
        A stage that has nothing else to do begins later micro-batches, while it keeps fewer chunks than its block does.
    """
    blocks = _blocks(stages, offsets)
    path = (*((stage, 0) for stage in range(stages)), *((stage, 1) for stage in reversed(range(stages))))
    draft = Schedule(name, microbatches, ((),) * stages, path, (0,) * stages)
    waiting = [deque(_in_order(block, microbatches)) for block in blocks]
    passes: list[list[Pass]] = [[] for _ in range(stages)]
    gradients: list[deque[Pass]] = [deque() for _ in range(stages)]
    keeps, most = [0] * stages, [0] * stages
    done: set[tuple[int, Pass]] = set()
    while any(waiting) or any(gradients):
        now: list[tuple[int, Pass]] = []
        for stage in range(stages):
            queue, full = waiting[stage], keeps[stage] >= blocks[stage].kept and bool(gradients[stage])
            ready = bool(queue) and all(need in done for need in draft.needs(stage, queue[0]))
            if ready and not (full and queue[0].kind == "F"):
                now.append((stage, queue.popleft()))
            elif gradients[stage]:
                now.append((stage, gradients[stage].popleft()))
            elif early and keeps[stage] < blocks[stage].kept - 1:
                one = next((one for one in queue if one.kind == "F" and not one.chunk), None)
                if one is not None and all(need in done for need in draft.needs(stage, one)):
                    queue.remove(one)
                    now.append((stage, one))
        for stage, one in now:
            passes[stage].append(one)
            done.add((stage, one))
            keeps[stage] += {"F": 1, "B": 0, "W": -1}[one.kind]
            most[stage] = max(most[stage], keeps[stage])
            if one.kind == "B":
                gradients[stage].append(one._replace(kind="W"))
    return Schedule(name, microbatches, tuple(map(tuple, passes)), path, tuple(most))


def _in_order(block: _Block, microbatches: int) -> list[Pass]:
    """F and B of all micro-batches on a stage."""
    found = [
        (begin + PERIOD * batch, Pass(kind, batch, chunk))  # type: ignore[arg-type]
        for (kind, chunk), begin in block.begins.items()
        if kind != "W"
        for batch in range(microbatches)
    ]
    return [one for _, one in sorted(found, key=lambda item: item[0])]


def _blocks(stages: int, offsets: Offsets) -> list[_Block]:
    """The block on each stage, with pauses at its turns with which no two passes of a stage meet.

    Of those, the pauses with which a stage keeps the fewest chunks, and the shortest.
    """
    found = []
    for pauses in product(range(PERIOD), repeat=3):
        begins = [_begins(stages, stage, offsets, pauses) for stage in range(stages)]
        if all(len({begin % PERIOD for begin in one.values()}) == len(one) for one in begins):
            blocks = [_with_gradients(one) for one in begins]
            found.append((max(block.kept for block in blocks), sum(pauses), pauses, blocks))
    return min(found, key=lambda one: one[:3])[3]


def _begins(stages: int, stage: int, offsets: Offsets, pauses: tuple[int, ...]) -> dict[tuple[str, int], int]:
    last, above = stages - 1, stages - 1 - stage
    turn = offsets.forward_down * last + 1 + pauses[0]
    loss = turn + offsets.forward_up * last + 1 + pauses[1]
    again = loss + offsets.backward_down * last + 1 + pauses[2]
    return {
        ("F", 0): offsets.forward_down * stage,
        ("F", 1): turn + offsets.forward_up * above,
        ("B", 1): loss + offsets.backward_down * stage,
        ("B", 0): again + offsets.backward_up * above,
    }


def _with_gradients(begins: dict[tuple[str, int], int]) -> _Block:
    """The block with gradients of weights in the units that are free, each after its B."""
    free = set(range(PERIOD)) - {begin % PERIOD for begin in begins.values()}
    whole = dict(begins)
    for chunk in (1, 0):
        begin = next(
            one for one in range(begins["B", chunk] + 1, begins["B", chunk] + 1 + PERIOD) if one % PERIOD in free
        )
        free.discard(begin % PERIOD)
        whole["W", chunk] = begin
    lives = [(whole["F", chunk], whole["W", chunk]) for chunk in (0, 1)]
    start = max(end for _, end in lives)  # from there on, each period is like the one before it
    kept = max(
        sum((unit - first) // PERIOD - (unit - 1 - last) // PERIOD for first, last in lives)
        for unit in range(start, start + PERIOD)
    )
    return _Block(whole, kept)
