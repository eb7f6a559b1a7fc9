"""A table of a collective over message sizes: as NCCL would run it, or by an idealised algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simperf.collectives.bench import Row, measure
from simperf.collectives.placement import Wired
from simperf.collectives.settings import default_algorithm
from simperf.errors import InputError, Problem
from simperf.hardware import Catalog
from simperf.units import parse_size

__all__ = ["collective"]


def collective(
    name: str,
    *,
    on: str | Wired,
    sizes: Sequence[int | str],
    algorithm: str = "",
    ranks: int | Sequence[str] | None = None,
    **options: Any,
) -> list[Row]:
    """Time a collective at each size, as nccl-tests does; `simperf collective` prints these rows.

    Parameters
    ----------
    name : str
        Such as ``"all-reduce"`` or ``"all-to-all"``.
    on : str or Machine
        A server or cluster of the catalogue, or a machine such as `simperf.build_machine` makes.
    sizes : sequence of int or str
        Payloads [B]; a text is read as by nccl-tests, ``"64M"`` being 64 MiB.
    algorithm : str
        ``"nccl"`` does as NCCL would, ``"nccl-ring"`` as NCCL with rings alone. All others are idealised: bandwidth
        and latency of the wires only, without a library. If left out, NCCL where it runs, else a ring.
    ranks : int or sequence of str, optional
        How many GPUs take part, or which; all if left out.
    **options
        Of the algorithm, and those of `simperf.collectives.bench.measure`. NCCL takes ``network``, ``in_network``,
        ``launches``, ``version`` and ``protocol``.

    Returns
    -------
    list of Row
        Times [s], bandwidths [B/s] and bounds [s] by size, and what NCCL chose.

    Raises
    ------
    InputError
        A size, a number of ranks or an option that has no meaning.
    UnknownNameError
        No such machine, collective or algorithm.
    """
    machine = Catalog.load().machine(on) if isinstance(on, str) else on
    nodes = _nodes(machine, ranks)
    chosen = algorithm or default_algorithm(machine, nodes, name)
    payloads = [float(parse_size(size)) for size in sizes]
    # the largest one first, as it is the one that may be refused
    rows = {
        size: measure(machine, name, chosen, nbytes=size, ranks=nodes, **options)
        for size in sorted(set(payloads), reverse=True)
    }
    return [rows[size] for size in payloads]


def _nodes(machine: Wired, ranks: int | Sequence[str] | None) -> tuple[str, ...]:
    if ranks is None:
        return machine.gpus
    if isinstance(ranks, int):
        if not 1 <= ranks <= len(machine.gpus):
            message = f"the machine has {len(machine.gpus)} GPUs"
            expected = f"1 to {len(machine.gpus)}"
            raise InputError(Problem(message, key="ranks", value=str(ranks), expected=expected))
        return machine.gpus[:ranks]
    return tuple(ranks)
