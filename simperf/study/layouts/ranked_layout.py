"""A layout that was simulated, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simperf.study.layouts.axes import LayoutChoice
from simperf.study.layouts.request import TrainingMachine

__all__ = ["RankedLayout"]


@dataclass(frozen=True, slots=True)
class RankedLayout:
    """A layout that was simulated, and where it stands.

    Parameters
    ----------
    number : int
        Rank, from 1.
    machine : TrainingMachine
    choice : LayoutChoice
    bound : float
        Least time of a step, which was known before [s].
    step : float
        Time of a step [s].
    interval : (float, float) or None
        90 % of it [s]; None where nothing supports an interval.
    used : float
        Model FLOP utilisation [1]; 0 where no peak is known.
    tokens : float
        In a second [1/s].
    memory : float
        Most that a GPU holds [B].
    time : float or None
        To train all tokens, failures and checkpoints included [s]; None where their number was not given.
    cost : float or None
        Of that [USD]; None without a price.
    parts : mapping of str to float
        What the time of the slowest stage went to [s].
    goodput : float
        Share of that time that is training; 1 where no failures were asked for [1].
    feasible : bool
        Within deadline and budget.
    best : bool
        No feasible layout beats it in time, cost and number of GPUs.
    reason : str
        Why it wins, or loses.
    group : int
        Number of the first layout on its machine that it cannot be distinguished from, which is its own if it can be
        distinguished from all before it; 0 of one that is not feasible.
    """

    number: int
    machine: TrainingMachine
    choice: LayoutChoice
    bound: float
    step: float
    interval: tuple[float, float] | None
    used: float
    tokens: float
    memory: float
    time: float | None
    cost: float | None
    parts: Mapping[str, float]
    goodput: float = 1.0
    feasible: bool = True
    best: bool = False
    reason: str = ""
    group: int = 0
