"""Training a recommender whose tables are spread over the GPUs."""

from __future__ import annotations

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.training.sharded.hybrid import HybridRun, train_hybrid
from simperf.training.sharded.recommender import Recommender
from simperf.units import PerSecond, Ratio

__all__ = ["recommender"]


@program("recommender")
def recommender(
    m: Session,
    *,
    tables: list[int] = [],
    width: int = 128,
    dense: int = 13,
    bottom: list[int] = [512, 256, 128],
    top: list[int] = [1024, 1024, 512, 256, 1],
    gpus: int = 0,
    batch: int = 65536,
    steps: int = 3,
    precision: str = "fp32",
    algorithm: str = "nccl",
    variation: Ratio = 0.0,
    alone: PerSecond = 0.0,
    watched: bool = False,
) -> Program:
    """Train a recommender by hybrid parallelism: tables spread over the GPUs, top layers copied to all.

    Parameters
    ----------
    tables : list of int
        rows of each table of embeddings
    width : int
        elements of a row
    dense : int
        numbers of a sample beside
    bottom : list of int
        widths of the layers for those numbers; the last is the width of a row
    top : list of int
        widths of the layers after the interaction
    gpus : int
        GPUs that take part, 0 for all
    batch : int
        samples of a step on all of them
    steps : int
        steps of the optimizer
    precision : str
        of the layers; tables are fp32
    algorithm : str
        of all-reduce; nccl chooses by size, for the exchange as well
    variation : float
        standard deviation of the time that equal GPUs take for the same work
    alone : float
        samples a second of one GPU with the whole batch, as measured; scales the kernels
    watched : bool
        every process waits for its GPU after each step, to take its time
    """
    there = m.machine.gpus
    if not there:
        raise ProgramError("the machine has no GPU to train on")
    if not 0 <= gpus <= len(there):
        raise InputError(Problem(f"the machine has {len(there)}", key="gpus", value=str(gpus)))
    model = Recommender(tuple(tables), width, dense, tuple(bottom), tuple(top), precision)
    nodes = tuple(there[: gpus or None])
    run = HybridRun(model, nodes, batch, steps, algorithm=algorithm, variation=variation, alone=alone, watched=watched)
    yield train_hybrid(m, run)
