"""Settings of the cost of operations and collectives; what calls of a training step take besides on a CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simperf.cost.collectives import MeasuredCollectives

if TYPE_CHECKING:
    from simperf.cost.roofline_draws import Unseen

__all__ = ["CostSettings", "ProcessorCalls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorCalls:
    """Fitted constants of autograd and of the optimizer's Python on a CPU.

    A call returns there when its work is done, so that all of this is part of the step.

    Parameters
    ----------
    forward, backward : float
        What recording and replaying adds to a call of the pass [s].
    update : mapping of str to (float, float)
        By optimizer: Python of one update, once and for each parameter tensor [s].
    late : float
        What the update's Python takes longer at most, as its code was last used a step ago [s].
    late_at : float
        Bytes touched since then at which it takes half of that longer [B].
    cache : float
        Capacity of the last cache [B].
    """

    forward: float = 0.0
    backward: float = 0.0
    update: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    late: float = 0.0
    late_at: float = math.inf
    cache: float = math.inf

    def added(self, within: str) -> float:
        """Time that autograd adds to a call of the part ``"forward"``, ``"backward"`` or ``"update"`` [s]."""
        return {"forward": self.forward, "backward": self.backward}.get(within, 0.0)

    def python(self, optimizer: str, *, tensors: int, touched: float) -> float:
        """Time of the optimizer's Python for one update, whatever the sizes of its parameters [s].

        Parameters
        ----------
        optimizer : str
        tensors : int
            Parameters of the model.
        touched : float
            Bytes that a step touches [B].
        """
        if optimizer not in self.update:
            return 0.0
        once, each = self.update[optimizer]
        from simperf.cost.cores import late_time

        return once + each * tensors + float(late_time(touched, late=self.late, late_at=self.late_at))


@dataclass(frozen=True, slots=True)
class CostSettings:
    """Settings of the cost of operations and collectives.

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
