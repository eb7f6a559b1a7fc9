"""How a run costs operations and collectives: the roofline and its efficiency, fitted constants, measured times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simperf.cost.collectives import MeasuredCollectives
from simperf.cost.processor_calls import ProcessorCalls

if TYPE_CHECKING:
    from simperf.cost.unseen import Unseen

__all__ = ["CostSettings"]


@dataclass(frozen=True, slots=True)
class CostSettings:
    """How operations are costed.

    Parameters
    ----------
    sharp : bool
        By the textbook roofline: catalogue peaks, no losses, a sharp corner.
    efficiency : mapping of str to float
        Replaces the parts' efficiency by kernel family [1].
    kernels : mapping of str to mapping of str to float
        Fitted constants by kernel family (`simperf.cost.FittedRoofline`).
    gpu : str
        The GPU part whose operations `kernels` cost; empty for all.
    unseen : Unseen or None
        A draw of how far the other GPUs lie from their rooflines; None leaves them there.
    protocols : float
        How many times as fast the constants of NCCL's protocols are, to see what that would gain [1].
    calls : ProcessorCalls
        What calls take beside their operations where `kernels` are those of a CPU.
    collectives : MeasuredCollectives
        Times of collectives that were measured.
    """

    sharp: bool = False
    efficiency: Mapping[str, float] = field(default_factory=dict)
    kernels: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gpu: str = ""
    unseen: Unseen | None = None
    protocols: float = 1.0
    calls: ProcessorCalls = field(default_factory=ProcessorCalls)
    collectives: MeasuredCollectives = field(default_factory=MeasuredCollectives)
