"""Dies of one board, which share its power and cooling: each is slower while another one works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simperf.hardware import GpuPart, Machine
from simperf.training.replica import faster
from simperf.training.step import ReplicaStep

__all__ = ["board_paces", "on_boards"]


def board_paces(machine: Machine, nodes: Sequence[str]) -> list[float]:
    """Speed of each of `nodes` over its speed alone, shape (nodes,) [1]: 1 unless another die of its board is of them.

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
    >>> board_paces(machine, machine.gpus[:1]), board_paces(machine, machine.gpus[1:4])
    ([1.0], [1.0, 0.957, 0.957])
    """
    boards = dict(_boards(machine))
    busy = Counter(boards[node][0] for node in nodes if node in boards)
    return [boards[node][1] if node in boards and busy[boards[node][0]] > 1 else 1.0 for node in nodes]


def on_boards(
    machine: Machine, nodes: Sequence[str], steps: Sequence[ReplicaStep], *, speed: float = 1.0
) -> list[ReplicaStep]:
    """The step of each device at its pace on its board; equal steps of one object and pace are one object.

    Parameters
    ----------
    machine : Machine
    nodes : sequence of str
        Ids of the devices that work.
    steps : sequence of ReplicaStep
        Of each device by itself.
    speed : float
        Of all devices, beside it [1].
    """
    made: dict[tuple[int, float], ReplicaStep] = {}
    found = []
    for step, pace in zip(steps, board_paces(machine, nodes), strict=True):
        key = (id(step), pace)
        if key not in made:
            made[key] = faster(step, speed * pace)
        found.append(made[key])
    return found


def _boards(machine: Machine) -> Iterator[tuple[str, tuple[tuple[str, int], float]]]:
    """Board, by its server and number there, and pace of each die of a machine."""
    seen: Counter[str] = Counter()
    for gpu in machine.gpus:
        node = machine.nodes[gpu]
        if isinstance(node.part, GpuPart) and node.part.dies > 1:
            yield gpu, ((node.server, seen[node.server] // node.part.dies), node.part.die_pace)
        seen[node.server] += 1
