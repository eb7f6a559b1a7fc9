"""Late ranks and background traffic of a collective, as text: ``RANK=TIME`` and ``SRC>DST=RATE``."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.errors import InputError, Problem, UnitError, nearest
from simperf.hardware import Machine
from simperf.units import parse

__all__ = ["background_traffic", "entry_times"]


def entry_times(words: Sequence[str], ranks: Sequence[str]) -> list[float] | None:
    """Entry time of every rank [s]; None if none is late.

    Parameters
    ----------
    words : sequence of str
        Such as ``"3=1 ms"`` or ``"n0/gpu3=1 ms"``: the number of a rank or its node.
    ranks : sequence of str
        Node of each rank.

    Raises
    ------
    InputError
        A rank that does not take part or comes twice, or a time without meaning; all at once.
    """
    times: dict[int, float] = {}
    problems: list[Problem] = []
    place = {node: number for number, node in enumerate(ranks)}
    for word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        number = int(name) if name.isascii() and name.isdigit() else place.get(name, -1)
        if not equals:
            problems.append(Problem("no time", key="--late", value=word, expected='RANK=TIME, such as "3=1 ms"'))
        elif not 0 <= number < len(ranks):
            expected = f"0 to {len(ranks) - 1}, or a node such as {ranks[-1]}"
            problems.append(Problem(f"no such rank{nearest(name, place)}", key="--late", value=name, expected=expected))
        elif number in times:
            problems.append(
                Problem(
                    "the rank has an entry time already", key="--late", value=word, expected="one time for each rank"
                )
            )
        else:
            times[number] = _quantity(text, "s", "--late", problems)
    if problems:
        raise InputError(problems)
    return [times.get(number, 0.0) for number in range(len(ranks))] if times else None


def background_traffic(words: Sequence[str], machine: Machine) -> tuple[tuple[str, str, float], ...]:
    """Source, destination and rate [B/s] of each flow.

    Parameters
    ----------
    words : sequence of str
        Such as ``"gpu0>gpu1=5 GB/s"``.
    machine : Machine
        Whose nodes they are.

    Raises
    ------
    InputError
        A node that is not there, or a rate without meaning; all at once.
    MachineError
        There is no way between the nodes.
    """
    nodes = list(machine.nodes)
    inside = frozenset(nodes)
    flows, problems = [], []
    for word in words:
        way, equals, text = word.rpartition("=")
        src, arrow, dst = (part.strip() for part in way.partition(">"))
        if not (equals and arrow):
            expected = f'"SRC>DST=RATE", such as "{nodes[0]}>{nodes[-1]}=5 GB/s"'
            problems.append(Problem("no flow from node to node", key="--background", value=word, expected=expected))
            continue
        missing = [name for name in dict.fromkeys((src, dst)) if name not in inside]
        for name in missing:
            message = f"the machine has no such node{nearest(name, nodes)}"
            problems.append(Problem(message, key="--background", value=name))
        if src == dst and not missing:
            problems.append(Problem("the flow stays on its node", key="--background", value=word, expected="two nodes"))
        flows.append((src, dst, _quantity(text.strip(), "B/s", "--background", problems)))
    if problems:
        raise InputError(problems)
    for src, dst, _ in flows:
        machine.route(src, dst)
    return tuple(flows)


def _quantity(text: str, dimension: str, option: str, problems: list[Problem]) -> float:
    try:
        value = parse(text, dimension)
    except UnitError as error:
        problems.append(Problem(str(error), key=option, value=text))
        return 0.0
    if value < 0.0:
        problems.append(Problem("must be 0 or more", key=option, value=text))
    return value
