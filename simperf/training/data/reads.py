"""Results of the device that the process of a training loop waits for: lengths, the loss, the end of a step."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.execution import Program, item, launch, synchronize
from simperf.execution.session import Session
from simperf.training.replica import Replica
from simperf.workload import Op, make_op

__all__ = ["NO_READS", "HostReads"]


@dataclass(frozen=True, slots=True)
class HostReads:
    """Results that the process of one rank fetches from its device, each of which lets the device run dry.

    Parameters
    ----------
    batch : bool
        The copy of each micro-batch, which follows all that its stream was given before (``x.to(gpu)``): other
        streams, such as that of collectives, continue.
    sums : bool
        Before the forward pass of a micro-batch: Python's ``sum`` over a tensor of one number a sample, an addition
        and its launch for each, and the sum.
    loss : bool
        The loss of each micro-batch, between its forward and its backward pass.
    norm : bool
        The norm of all gradients, in one kernel, before the optimizer: Python clips by it (apex's multi_tensor_l2norm).
    step : bool
        The end of every step, as one that prints the loss.
    """

    batch: bool = False
    sums: bool = False
    loss: bool = False
    norm: bool = False
    step: bool = False

    def before_forward(self, m: Session, replica: Replica) -> Program:
        """Fetch what is needed before the forward pass of a micro-batch."""
        if self.batch:
            yield synchronize(replica.device.stream())
        if not self.sums:
            return
        add = m.kernel(make_op({"op": "add", "elements": 1}), replica.device)
        for _ in range(round(replica.step.samples)):
            yield launch(add, replica.device)
        yield item(replica.device)

    def before_backward(self, replica: Replica) -> Program:
        """Fetch what is needed between the forward and the backward pass of a micro-batch."""
        if self.loss:
            yield item(replica.device)

    def before_update(self, m: Session, replica: Replica) -> Program:
        """Fetch what is needed between the last backward pass of a step and the optimizer."""
        if self.norm:
            nbytes = replica.step.nbytes_gradients
            norm = Op("norm of gradients", "norm", nbytes_read=nbytes, family="reduction", elements=1.0)
            yield launch(m.kernel(norm, replica.device), replica.device)
            yield item(replica.device)

    def after_step(self, replica: Replica) -> Program:
        """Wait for the device when a step has been launched, if the host reads from it then."""
        if self.step:
            yield synchronize(replica.device)


#: a process that waits for nothing
NO_READS = HostReads()
