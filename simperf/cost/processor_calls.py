"""The time that the calls of a training step take on a CPU beside their operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["ProcessorCalls"]


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
