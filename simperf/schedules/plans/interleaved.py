"""Interleaved 1F1B: each stage has several chunks of layers (Narayanan et al., Megatron-LM, SC 2021)."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.schedules.plans.one_f_one_b import alternating
from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Pass, Schedule

__all__ = ["interleaved"]


@schedule("interleaved")
def interleaved(stages: int, microbatches: int, *, chunks: int = 2) -> Schedule:
    """Chunk c of stage s is part c p + s of the model; the bubble is 1 / `chunks` of that of 1F1B.

    Parameters
    ----------
    stages, microbatches : int
        The micro-batches are a multiple of the stages: p of them go through a chunk before the next one has its turn.
    chunks : int
        Chunks of layers on a stage.

    Raises
    ------
    InputError
        No chunk, or micro-batches that the stages do not divide.
    """
    if isinstance(chunks, bool) or not isinstance(chunks, int) or chunks < 1:
        raise InputError(Problem("a whole number, 1 or more, is expected", key="chunks", value=repr(chunks)))
    if microbatches % stages:
        near = microbatches // stages * stages
        expected = " or ".join(str(count) for count in (near, near + stages) if count)
        message = f"interleaved stages take a multiple of the {stages} stages"
        raise InputError(Problem(message, key="microbatches", value=str(microbatches), expected=expected))
    total = microbatches * chunks
    turns = [
        (first + batch, chunk)
        for first in range(0, microbatches, stages)
        for chunk in range(chunks)
        for batch in range(stages)
    ]
    forward = [Pass("F", batch, chunk) for batch, chunk in turns]
    backward = [Pass("B", batch, chunks - 1 - chunk) for batch, chunk in turns]
    # Megatron-LM before core 0.9 ran all forward passes first where there are as many micro-batches as stages
    ahead = [2 * (stages - 1 - stage) + (chunks - 1) * stages for stage in range(stages)]
    warm = [min(count, total) for count in ahead]
    passes = tuple(alternating(forward, backward, warm[stage]) for stage in range(stages))
    path = tuple((stage, chunk) for chunk in range(chunks) for stage in range(stages))
    return Schedule("interleaved", microbatches, passes, path, tuple(min(count + 1, total) for count in warm))
