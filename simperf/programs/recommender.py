"""Training a recommender whose tables are spread over the GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.training.sharded.hybrid import HybridRun, train_hybrid
from simperf.training.sharded.recommender import Recommender
from simperf.units import PerSecond, Ratio

__all__ = ["RecommenderTraining", "recommender"]


@dataclass(frozen=True, slots=True)
class RecommenderTraining:
    """Training of a recommender.

    Parameters
    ----------
    model : Recommender
        the model
    gpus : int
        GPUs that take part, 0 for all
    batch : int
        samples of a step on all of them
    steps : int
        steps of the optimizer
    algorithm : str
        of all-reduce; nccl chooses by size, for the exchange as well
    variation : float
        standard deviation of the time that equal GPUs take for the same work
    alone : float
        samples a second of one GPU with the whole batch, as measured; scales the kernels
    watched : bool
        every process waits for its GPU after each step, to take its time
    """

    model: Recommender
    gpus: int = 0
    batch: int = 65536
    steps: int = 3
    algorithm: str = "nccl"
    variation: Ratio = 0.0
    alone: PerSecond = 0.0
    watched: bool = False

    def on(self, nodes: tuple[str, ...]) -> HybridRun:
        """The training on these nodes."""
        how = {key: getattr(self, key) for key in ("algorithm", "variation", "alone", "watched")}
        return HybridRun(self.model, nodes, self.batch, self.steps, **how)


@program("recommender", events=lambda given: 16.0 * given["steps"])
def recommender(m: Session, training: RecommenderTraining) -> Program:
    """Train a recommender by hybrid parallelism: tables spread over the GPUs, top layers copied to all."""
    there, gpus = m.machine.gpus, training.gpus
    if not there:
        raise ProgramError("the machine has no GPU to train on: one or more are expected")
    if not 0 <= gpus <= len(there):
        expected = f"at most {len(there)}, or 0 for all"
        raise InputError(Problem(f"the machine has {len(there)}", key="gpus", value=str(gpus), expected=expected))
    yield train_hybrid(m, training.on(tuple(there[: gpus or None])))
