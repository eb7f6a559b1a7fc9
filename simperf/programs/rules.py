"""Rules that several programs share: what has an effect only together with something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simperf.programs.parameters import Unless

__all__ = ["deviates", "slows"]


def deviates(given: Mapping[str, Any], law: str = "jitter", deviation: str = "cv") -> Unless:
    """A deviation has an effect where times follow a distribution that has one."""
    return Unless(given[law] != "constant", (deviation,), "a constant time has no deviation", f'{law} = "lognormal"')


def slows(given: Mapping[str, Any]) -> Unless:
    """Rule that the amount and the times of slowness have an effect only where a link is slow."""
    changes = ("slow_share", "slow_from", "slow_until")
    return Unless(bool(given["slow_link"]), changes, "no link is slow", "slow_link = a link of the machine")
