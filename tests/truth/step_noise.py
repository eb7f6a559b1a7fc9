"""Ratios of percentiles of step times: as a source logged them, and as steps with noise are drawn.

The file ``step_noise.toml`` says what varies, with sources; none of it is of steps of large models. A scenario
without it has no noise: all its percentiles are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from simperf.accuracy.large_cases import LargeCase
from simperf.accuracy.large_jobs import case_tables
from simperf.files import read_toml
from simperf.run import run
from simperf.scenario import make_scenario

__all__ = ["PERCENTS", "NoiseDistribution", "drawn_ratios", "measured_ratios", "noise_distributions"]

#: percentiles that are told as ratios to the median
PERCENTS = (10, 90, 99)
_DATA = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True, slots=True)
class NoiseDistribution:
    """What varies from step to step, or from GPU to GPU.

    Parameters
    ----------
    name : str
    program : mapping
        Keys of ``[program]``, and their values.
    source : mapping
        Of each value.
    """

    name: str
    program: Mapping[str, Any] = field(hash=False)
    source: Mapping[str, str] = field(hash=False)


@cache
def noise_distributions() -> tuple[NoiseDistribution, ...]:
    """All distributions of the file."""
    return tuple(
        NoiseDistribution(one["name"], one["program"], one["source"]) for one in read_toml(_DATA).data["distribution"]
    )


def measured_ratios(case: LargeCase) -> dict[int, float]:
    """Percentiles of a case's steps over their median [1]; none where they are not printed.

    Parameters
    ----------
    case : LargeCase
    """
    middle = case.percentiles.get(50)
    if not middle:
        return {}
    return {percent: case.percentiles[percent] / middle for percent in PERCENTS if percent in case.percentiles}


def drawn_ratios(case: LargeCase, noise: NoiseDistribution, *, draws: int = 0) -> dict[int, float]:
    """Percentiles of a step with noise over their median, as `simperf.run` simulates it [1].

    Parameters
    ----------
    case : LargeCase
    noise : NoiseDistribution
    draws : int
        Steps that are drawn; 0 for as many as a run draws.

    Raises
    ------
    SimperfError
        What cannot be simulated.
    """
    tables = case_tables(case)
    program = {**tables["program"], **noise.program, "steps": 1} | ({"noise_draws": draws} if draws else {})
    told = run(make_scenario({**tables, "program": program, "run": {"force": True}}), record=False).metrics
    found = {percent: told[f"time per step with noise, p{percent}"].value for percent in (*PERCENTS, 50)}
    return {percent: found[percent] / found[50] for percent in PERCENTS}
