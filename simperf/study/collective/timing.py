"""A table of a collective over message sizes: as NCCL would run it, or by an idealised algorithm."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from simperf.collectives.bench import Row, measure
from simperf.collectives.calls import CONDITIONS, Call
from simperf.collectives.settings import HOSTED, NCCL, NcclSettings, default_algorithm, find_algorithm
from simperf.errors import InputError, Problem
from simperf.hardware import Catalog, FrontendPart, Machine, ProfilePart
from simperf.study.collective.table import CollectiveTable
from simperf.units import parse_size

#: frontend of hosts that call through torch
FRONTEND = "pytorch"

__all__ = ["calibrated", "collective", "refuse_unused_profile"]


def collective(
    name: str,
    *,
    on: str | Machine,
    sizes: Sequence[int | str],
    algorithm: str = "",
    ranks: int | Sequence[str] | None = None,
    profile: ProfilePart | str | os.PathLike[str] | None = None,
    **options: Any,
) -> CollectiveTable:
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
    profile : ProfilePart or path, optional
        Constants that `simperf calibrate fit` found: times of NCCL's collectives, and, of a machine that is named,
        links.
    **options
        Of the algorithm, and conditions of a `simperf.collectives.calls.Call`, such as ``entry_times``. NCCL takes
        ``network``, ``in_network``, ``launches``, ``timing``, ``version`` and ``protocol``.

    Returns
    -------
    CollectiveTable
        A `simperf.collectives.bench.Row` a size: time [s], bandwidths [B/s], its lower bound [s], and what NCCL chose.

    Raises
    ------
    InputError
        A size, a number of ranks or an option that has no meaning; a profile that changes nothing.
    UnknownNameError
        No such machine, collective or algorithm.
    """
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        message, expected = "a list of sizes is expected", '["8K", "64M"]'
        raise InputError(Problem(message, key="sizes", value=repr(sizes), expected=expected))
    if not isinstance(on, str) and not hasattr(on, "gpus"):
        message = f"a machine is expected, not {type(on).__name__}"
        expected = 'a name, such as "dgx-a100", or a Machine'
        raise InputError(Problem(message, key="on", value=repr(on), expected=expected))
    known, changed = _read_profile(profile), dict[str, set[str]]()
    catalog = calibrated(Catalog.load(), known, changed)
    machine = catalog.machine(on) if isinstance(on, str) else on
    nodes = _nodes(machine, ranks)
    chosen = find_algorithm(name, algorithm) if algorithm not in (None, "") else default_algorithm(machine, nodes, name)
    payloads = [float(parse_size(size)) for size in sizes]
    if known is not None:
        from simperf.scenario.calibration import measured_collectives

        options["measured"] = measured_collectives((known,))
    if chosen in NCCL and options.get("timing") in HOSTED:
        options["host"] = partial(_hosted, catalog.frontend(FRONTEND))
    conditions = {key: options.pop(key) for key in CONDITIONS if key in options}
    # the largest one first, as it is the one that may be refused
    rows = {
        size: measure(Call(machine, name, chosen, size, nodes, **conditions), **options)
        for size in sorted(set(payloads), reverse=True)
    }
    if known is not None:
        refuse_unused_profile(known, machine, name, chosen, nodes, list(rows.values()), changed)
    return CollectiveTable(name, chosen, machine, nodes, tuple(rows[size] for size in payloads))


def _hosted(frontend: FrontendPart, call: Call, settings: NcclSettings) -> float:
    """Time of a call through torch [s]."""
    from simperf.execution.timed_calls import torch_call_time

    return torch_call_time(
        call.machine,
        call.ranks,
        call.collective,
        call.nbytes,
        settings,
        frontend=frontend,
        measured=call.measured,
        background=call.background,
    )


def _read_profile(profile: ProfilePart | str | os.PathLike[str] | None) -> ProfilePart | None:
    """A profile by its file, or by its name in the catalogue."""
    if profile is None or isinstance(profile, ProfilePart):
        return profile
    return Catalog.load().profile(os.fspath(profile))


def calibrated(catalog: Catalog, profile: ProfilePart | None, changed: dict[str, set[str]]) -> Catalog:
    """The catalogue with the constants of a profile; `changed` is called with the parts it changes."""
    if profile is None:
        return catalog
    from simperf.scenario.calibration import adjusted

    return catalog.adjusted(lambda part: adjusted(part, (profile,), 0, changed=changed))


def refuse_unused_profile(
    profile: ProfilePart,
    machine: Machine,
    name: str,
    algorithm: str,
    ranks: Sequence[str],
    rows: Sequence[Row],
    changed: Mapping[str, Iterable[str]],
) -> None:
    """Refuse a profile that changed nothing in a table.

    Raises
    ------
    InputError
        With what it holds and what would take it.
    """
    from simperf.scenario.calibration import measured_collectives
    from simperf.scenario.profile_use import collective_use, refuse_unused

    links = {machine.edges[key].part for row in rows for key in row.loads if key in machine.edges}
    taken = False
    if algorithm in NCCL:
        taken = measured_collectives((profile,)).among(name, machine, ranks) is not None
    use = collective_use(profile, taken=taken, links=links, changed=changed)
    refuse_unused([{profile.name: use.refusal} if use.refusal else {}])


def _nodes(machine: Machine, ranks: int | Sequence[str] | None) -> tuple[str, ...]:
    if ranks is None:
        return machine.gpus
    if isinstance(ranks, bool) or not isinstance(ranks, int | Iterable):
        message = f"a number of GPUs, or names of nodes, are expected, not {type(ranks).__name__}"
        raise InputError(Problem(message, key="ranks", value=repr(ranks), expected=f"1 to {len(machine.gpus)}"))
    if isinstance(ranks, int):
        if not 1 <= ranks <= len(machine.gpus):
            message = f"the machine has {len(machine.gpus)} GPUs"
            expected = f"1 to {len(machine.gpus)}"
            raise InputError(Problem(message, key="ranks", value=str(ranks), expected=expected))
        return machine.gpus[:ranks]
    return tuple(ranks)
