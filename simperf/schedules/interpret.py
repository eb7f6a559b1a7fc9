"""The conformance check of a schedule: carried out without a clock, it does every pass once and in order."""

from __future__ import annotations

from collections import Counter

from simperf.schedules.schedule import PASSES, Pass, Schedule

__all__ = ["count_in_flight", "order_of", "problems_of"]


def problems_of(plan: Schedule) -> list[str]:
    """All that is wrong with a schedule, in words; empty if it is right.

    Every part of the model has one stage and chunk; every stage does F and B of each micro-batch and chunk exactly
    once, and W everywhere or nowhere; no pass waits for itself in a circle; and the activations in flight are what the
    schedule claims.
    """
    problems = _places(plan) or _passes(plan)
    if problems:
        return problems
    done = order_of(plan)
    total = sum(map(len, plan.stages))
    if len(done) < total:
        stuck = _stuck(plan, set(done))
        return [f"{total - len(done)} passes wait forever: {stuck}"]
    found = count_in_flight(plan)
    if found != plan.in_flight:
        return [f"keeps activations of {found} chunks on its stages, and claims {plan.in_flight}"]
    return []


def order_of(plan: Schedule) -> list[tuple[int, Pass]]:
    """Stages and passes in an order in which all can be done; fewer than there are if some wait forever.

    Passes that are done beside each other wait for all that any of them needs.
    """
    waiting = [list(plan.turns(stage)) for stage in range(len(plan.stages))]
    place = [0] * len(plan.stages)
    done: dict[tuple[int, Pass], None] = {}
    moved = True
    while moved:
        moved = False
        for stage, turns in enumerate(waiting):
            while place[stage] < len(turns):
                turn = turns[place[stage]]
                own = {(stage, one) for one in turn}
                if any(need not in done and need not in own for one in turn for need in plan.needs(stage, one)):
                    break
                done.update(dict.fromkeys((stage, one) for one in turn))
                place[stage] += 1
                moved = True
    return list(done)


def count_in_flight(plan: Schedule) -> tuple[int, ...]:
    """Most chunks whose activations each stage keeps at a time."""
    last, found = ("W" if plan.split else "B"), []
    for passes in plan.stages:
        now = most = 0
        for one in passes:
            now += one.kind == "F"
            most = max(most, now)
            now -= one.kind == last
        found.append(most)
    return tuple(found)


def _places(plan: Schedule) -> list[str]:
    count = len(plan.stages)
    problems = [
        f"part {part} of the model is on stage {stage}, and there are {count}"
        for path, _ in plan.paths
        for part, (stage, _) in enumerate(path)
        if not 0 <= stage < count
    ]
    problems += [
        f"chunk {chunk} of stage {stage} is {times} parts of the model"
        for (stage, chunk), times in Counter((*plan.path, *plan.second)).items()
        if times > 1
    ]
    if plan.second and len(plan.second) != len(plan.path):
        problems.append(f"the second copy of the model has {len(plan.second)} parts, the first {len(plan.path)}")
    if plan.beside and len(plan.beside) != count:
        problems.append(f"has pairs of passes of {len(plan.beside)} stages, and there are {count}")
    for stage, (passes, pairs) in enumerate(zip(plan.stages, plan.beside, strict=False)):
        problems += [
            f"stage {stage} does no forward pass with a backward pass behind it at place {place}"
            for place in sorted(pairs)
            if not 0 <= place < len(passes) - 1 or (passes[place].kind, passes[place + 1].kind) != ("F", "B")
        ]
    if len(plan.in_flight) != count:
        problems.append(f"claims activations in flight of {len(plan.in_flight)} stages, and there are {count}")
    return problems


def _passes(plan: Schedule) -> list[str]:
    problems = []
    kinds = PASSES if plan.split else PASSES[:2]
    for stage, passes in enumerate(plan.stages):
        chunks = [(chunk, batches) for path, batches in plan.paths for where, chunk in path if where == stage]
        wanted = {Pass(kind, batch, chunk) for kind in kinds for chunk, batches in chunks for batch in batches}
        counts = Counter(passes)
        problems += [f"stage {stage} never does {one}" for one in sorted(wanted - set(counts))]
        problems += [f"stage {stage} does {one}, which is no part of the work" for one in sorted(set(counts) - wanted)]
        problems += [f"stage {stage} does {one} {times} times" for one, times in counts.items() if times > 1]
    return problems


def _stuck(plan: Schedule, done: set[tuple[int, Pass]]) -> str:
    """The first pass of each stage that cannot be done, with what it waits for."""
    found = []
    for stage, passes in enumerate(plan.stages):
        one = next((one for one in passes if (stage, one) not in done), None)
        if one is not None:
            needs = [f"{need} of stage {where}" for where, need in plan.needs(stage, one) if (where, need) not in done]
            found.append(f"{one} of stage {stage} for {' and '.join(needs)}")
    return "; ".join(found[:8])
