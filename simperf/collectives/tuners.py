"""Tuners of NCCL for settings: made once for a machine, beside what was measured with the settings left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from simperf.collectives.machine_plans import switch_sites
from simperf.collectives.nccl import Tuner
from simperf.collectives.settings import NcclSettings
from simperf.cost.collectives import MeasuredCollective
from simperf.errors import InputError, Problem
from simperf.hardware import Machine
from simperf.layout import server_count

__all__ = ["tuner_of"]

#: tuners that a machine keeps
MOST_TUNERS = 64


def tuner_of(
    machine: Machine,
    ranks: Sequence[str],
    collective: str,
    settings: NcclSettings,
    *,
    speed: float = 1.0,
    measured: MeasuredCollective | None = None,
    base: Machine | None = None,
) -> Tuner:
    """The tuner of a machine, made once for the same ranks, collective and settings.

    Parameters
    ----------
    machine : Machine
    ranks : sequence of str
    collective : str
    settings : NcclSettings
    speed : float
        How many times as fast NCCL's constants are [1].
    measured : MeasuredCollective, optional
        Times of the collective among as many ranks, with settings left out: others change them as they change
        the modelled time.
    base : Machine, optional
        That they were measured on, where `machine` was made faster.

    Raises
    ------
    InputError
        A setting that has no meaning on this machine.
    """
    key = (tuple(ranks), collective, settings, speed, measured, id(base))
    made: dict[tuple[Any, ...], Tuner] = machine.kept.setdefault("tuners", {})
    if key not in made:
        while len(made) >= MOST_TUNERS:  # draws of constants make one each
            del made[next(iter(made))]
        _check(settings, machine, ranks, collective)
        reference, usual = None, max(1, measured.launches if measured is not None else 1)
        own = replace(settings, launches=settings.launches or usual)
        plain = NcclSettings(launches=usual)
        if measured is not None and (speed != 1.0 or base not in (None, machine) or own != plain):
            reference = tuner_of(base or machine, ranks, collective, plain)
        made[key] = Tuner(machine, ranks, collective, own, speed=speed, measured=measured, reference=reference)
    return made[key]


def _check(settings: NcclSettings, machine: Machine, ranks: Sequence[str], collective: str) -> None:
    """Refuse what has no meaning on this machine."""
    if settings.network and server_count(machine, ranks) < 2:
        message = "all ranks are in one server, which NCCL's network does not reach"
        raise InputError(Problem(message, key="options.network", value=settings.network, expected="several servers"))
    counts = Counter(machine.nodes[rank].server for rank in ranks).values()
    most = max(counts)
    if settings.launches > most:
        message = f"one process drives GPUs of one server, which has {most} of the ranks"
        value, expected = str(settings.launches), f"1 to {most}" if most > 1 else "1"
        raise InputError(Problem(message, key="options.launches", value=value, expected=expected))
    if settings.in_network:
        try:
            switch_sites(machine, ranks)
        except InputError as error:
            told = [
                replace(one, message=f"{one.message}, on {machine.name}", key="options.in_network", value="true")
                for one in error.problems
            ]
            raise InputError(told) from None
        if collective == "all-reduce" and len({*counts}) > 1:
            message = "switches add up only where as many GPUs of each server take part"
            value, expected = "true", f"the same number in each; here {', '.join(map(str, sorted({*counts})))}"
            raise InputError(Problem(message, key="options.in_network", value=value, expected=expected))
