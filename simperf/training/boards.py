"""Dies of one board, which share its power and cooling: each is slower while another one works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simperf.hardware import GpuPart, Machine

__all__ = ["board_pace"]


def board_pace(machine: Machine, nodes: Sequence[str]) -> float:
    """Speed of the slowest device that shares its board with others of `nodes`, over that of one alone [1].

    GPUs of a server are taken to be numbered board by board.

    Parameters
    ----------
    machine : Machine
    nodes : sequence of str
        Ids of the devices that work.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> machine = Catalog.load().machine("p2-8xlarge")
    >>> board_pace(machine, machine.gpus[:1]), board_pace(machine, machine.gpus[:2])
    (1.0, 0.957)
    """
    boards = dict(_boards(machine))
    busy = Counter(boards[node][0] for node in nodes if node in boards)
    return min((boards[node][1] for node in nodes if node in boards and busy[boards[node][0]] > 1), default=1.0)


def _boards(machine: Machine) -> Iterator[tuple[str, tuple[tuple[str, int], float]]]:
    """Board, by its server and number there, and pace of each die of a machine."""
    seen: Counter[str] = Counter()
    for gpu in machine.gpus:
        node = machine.nodes[gpu]
        if isinstance(node.part, GpuPart) and node.part.dies > 1:
            yield gpu, ((node.server, seen[node.server] // node.part.dies), node.part.die_pace)
        seen[node.server] += 1
