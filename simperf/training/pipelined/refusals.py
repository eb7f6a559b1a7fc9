"""Refusal of what has no effect in a layout, and the keys by which files name what a rank's passes refuse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace

from simperf.errors import InputError, Problem
from simperf.layout import Layout
from simperf.training.strategies import ModelParallel, StageMessages

__all__ = ["batches_of_schedule", "keys_of_files", "refuse_idle_layers", "refuse_idle_messages"]

#: what passes of a rank are made of -> its key in a file
_KEYS: Mapping[str, str] = {
    **{key: f"layout.{key}" for key in ("tp", "cp", "ep", "etp")},
    **{key: f"model.{key}" for key in ("kv_heads", "mtp", "qk_norm", "dropout", "window")},
    "norm": "norm_kernels",
    "attention": "attention_kernels",
    "scattered": "scatter_messages",
}
#: options of messages by their keys in a file
_MESSAGES = {"overlap": "overlap_messages", "synchronous": "synchronous_messages", "scattered": "scatter_messages"}


@contextmanager
def keys_of_files() -> Iterator[None]:
    """Problems that are told by names of sizes and kernels are told by keys of a file; also a decorator."""
    try:
        yield
    except InputError as error:
        raise InputError([replace(one, key=_KEYS.get(one.key, one.key)) for one in error.problems]) from None


@contextmanager
def batches_of_schedule(each: int) -> Iterator[None]:
    """Problems of a schedule's stages and micro-batches are told by the layout and the batch.

    Parameters
    ----------
    each : int
        Samples of one micro-batch on all data-parallel ranks.
    """
    try:
        yield
    except InputError as error:
        raise InputError([_of_batch(one, each) for one in error.problems]) from None


def _of_batch(problem: Problem, each: int) -> Problem:
    if problem.key == "stages":
        return replace(problem, key="layout.pp")
    if problem.key != "microbatches":
        return problem
    message = f"{problem.message}, and the batch has {problem.value}" if problem.value else problem.message
    expected = re.sub(r"\d+", lambda count: str(each * int(count[0])), problem.expected)
    value = str(each * int(problem.value)) if problem.value else ""
    return replace(problem, key="batch", message=message, value=value, expected=expected)


def refuse_idle_messages(layout: Layout, strategy: ModelParallel) -> None:
    """Refuse options of messages where there is one stage.

    Raises
    ------
    InputError
        All of them.
    """
    given = [one.name for one in fields(StageMessages) if getattr(strategy.messages, one.name)]
    if layout.pp == 1 and given:
        message, expected = "has no effect: there is one stage, which sends no messages", "false, or layout.pp above 1"
        raise InputError(
            [Problem(message, key=_MESSAGES.get(one, one), value="true", expected=expected) for one in given]
        )


def refuse_idle_layers(strategy: ModelParallel, counts: Sequence[int]) -> None:
    """Refuse a number of layers that are computed again which is more than any part of the model has.

    Parameters
    ----------
    strategy : ModelParallel
    counts : sequence of int
        Layers of each part.

    Raises
    ------
    InputError
        The number, and the most.
    """
    first, most = strategy.recompute_layers, max(counts)
    if first > most:
        message = f"a part of the model, a stage or a chunk of it, has {most} layers at most"
        expected = f"at most {most}, or 0 for all"
        raise InputError(Problem(message, key="recompute_layers", value=str(first), expected=expected))
