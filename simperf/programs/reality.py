"""Long jobs among failures: goodput, and where the rest of the time goes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from simperf.engine.recorder import Category
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.failure_options import failure_rules
from simperf.programs.registry import program
from simperf.training.failures.history import begin, tell_failures
from simperf.training.failures.job_events import Part
from simperf.training.failures.options import Failures
from simperf.training.failures.recovery import FailingRun
from simperf.units import Seconds

__all__ = ["FailingJob", "failing_job"]

_SHOWN: dict[Part, Category] = {
    "useful": "compute",
    "checkpoint": "storage",
    "detection": "wait",
    "repair": "wait",
    "restart": "overhead",
    "reassignment": "communication",
}


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A long job among failures.

    Parameters
    ----------
    nodes : int
        nodes of the job
    duration : float
        wall time for which the job is watched
    work : float
        training to be done instead, in time of all nodes without failures
    failures : Failures
        what fails, and what is done about it
    """

    nodes: int = 16
    duration: Seconds = 0.0
    work: Seconds = 0.0
    failures: Failures = field(default_factory=Failures)

    def run(self) -> FailingRun:
        """The run on nodes that fail."""
        return self.failures.run(self.nodes, work=self.work or math.inf, horizon=self.duration or math.inf)


@program("failing-job", rules=failure_rules)
def failing_job(m: Session, options: FailingJob) -> Program:
    """Simulate a long job among failures: goodput, and where the rest of the time goes."""
    life = begin(m, options.run(), options.failures, detailed=m.simulation.recorder is not None)
    for phase in life.phases():
        if phase.end > m.now:
            yield m.simulation.env.timeout(phase.end - m.now)
        name = "training" if phase.part == "useful" else phase.part
        m.show(f"job/{name}", name, phase.start, _SHOWN[phase.part])
    if life.now > m.now:
        yield m.simulation.env.timeout(life.now - m.now)
    m.work("training without failures", life.ledger["useful"], "s")
    tell_failures(m, life, options.failures)
