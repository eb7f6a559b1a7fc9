"""One device by itself: the time of its whole step, which measured speeds set and scaling is compared with.

The whole step is what a person who runs the same training on one device measures: launches of the host, the copy of
the batch, forward and backward pass and the update, without anything that more devices add.
"""

from __future__ import annotations

from typing import Any

from simperf.execution.session import Session
from simperf.training.data.ddp import ddp
from simperf.training.data.group import Group
from simperf.training.data.naive import naive
from simperf.training.data.reads import NO_READS, HostReads
from simperf.training.data.symmetry import make_replicas
from simperf.training.data_loaders import Feeding, attach
from simperf.training.outcome import step_time
from simperf.training.step import Ahead, ReplicaStep

__all__ = ["time_alone"]

#: steps of one device, of which the first is not counted
STEPS = 3


def time_alone(
    m: Session,
    step: ReplicaStep,
    node: str,
    *,
    steps: int = STEPS,
    feeding: Feeding | None = None,
    accumulate: int = 1,
    loop: float = 0.0,
    reads: HostReads = NO_READS,
    by_hand: bool = False,
    ahead: bool = False,
) -> float:
    """Time of a step of one device without the others, in a session of its own [s].

    Parameters
    ----------
    m : Session
        Whose machine, mode and costs hold.
    step : ReplicaStep
        Of each micro-batch.
    node : str
        The device.
    steps : int
        Steps that are simulated; the mean of those after the first counts.
    feeding : Feeding, optional
        Where mini-batches come from; by default they lie in pinned memory.
    accumulate : int
        Micro-batches of a step.
    loop : float
        Work of the process for a batch, beside launching [s].
    reads : HostReads
        Results of the device that the process waits for.
    by_hand : bool
        The loop of the book's chapter, as strategy ``naive``.
    ahead : bool
        Mini-batches are copied beside the step before theirs.
    """
    single, feeding = m.another(), feeding or Feeding()
    replicas, _ = make_replicas(single, (node,), [step])
    replicas[0].ahead = Ahead() if ahead else None
    attach(single, [(replicas[0], step.samples)], feeding, batches=steps * accumulate)
    pace: dict[str, Any] = {"steps": steps, "loop": loop}
    if by_hand:
        program = naive(single, replicas, **pace)
    else:
        group = Group(single, (node,), replicas)
        program = ddp(single, replicas[0], group, buckets=(), accumulate=accumulate, reads=reads, **pace)
    single.play(program)
    return step_time(replicas)
