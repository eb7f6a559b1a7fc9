"""Results of the device that the process of a training loop waits for: lengths, the loss, the end of a step."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.execution import Program, item, launch, synchronize
from simperf.execution.session import Session
from simperf.training.replica import Replica
from simperf.workload import make_op

__all__ = ["HostReads"]


@dataclass(frozen=True, slots=True)
class HostReads:
    """Results that the process of one rank fetches from its device, each of which lets the device run dry.

    Parameters
    ----------
    batch : bool
        The copy of each micro-batch, which follows all that was launched before it (``x.to(gpu)``).
    sums : bool
        Before the forward pass of a micro-batch: Python's ``sum`` over a tensor of one number a sample, an addition
        and its launch for each, and the sum.
    loss : bool
        The loss of each micro-batch, between its forward and its backward pass.
    step : bool
        The end of every step, as one that prints the loss.
    """

    batch: bool = False
    sums: bool = False
    loss: bool = False
    step: bool = False

    def before(self, m: Session, replica: Replica) -> Program:
        """What is fetched before the forward pass of a micro-batch."""
        if self.batch:
            yield synchronize(replica.device)
        if not self.sums:
            return
        add = m.kernel(make_op({"op": "add", "elements": 1}), replica.device)
        for _ in range(round(replica.step.samples)):
            yield launch(add, replica.device)
        yield item(replica.device)

    def between(self, replica: Replica) -> Program:
        """What is fetched between the forward and the backward pass of a micro-batch."""
        if self.loss:
            yield item(replica.device)

    def after(self, replica: Replica) -> Program:
        """What is waited for when a step has been launched."""
        if self.step:
            yield synchronize(replica.device)
