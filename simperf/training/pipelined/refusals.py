"""Refusal of what has no effect in a layout or is not simulated, and keys by which files name what passes refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

from simperf.errors import InputError, Problem
from simperf.layout import Layout
from simperf.schedules import Schedule
from simperf.training.offload import Offload
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel, StageMessages

__all__ = [
    "batches_of_schedule",
    "keys_of_files",
    "refuse_flat_base",
    "refuse_idle_bucket",
    "refuse_idle_layers",
    "refuse_idle_messages",
    "refuse_idle_split",
    "refuse_kept_weights",
    "refuse_offload",
    "refuse_scattered_experts",
    "together",
]

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
    """Problems that are reported by names of sizes and kernels are reported by keys of a file; also a decorator."""
    try:
        yield
    except InputError as error:
        raise InputError([replace(one, key=_KEYS.get(one.key, one.key)) for one in error.problems]) from None


@contextmanager
def batches_of_schedule(each: int) -> Iterator[None]:
    """Problems of a schedule's stages and micro-batches are reported by the layout and the batch.

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


def together(*checks: Callable[[], Any]) -> list[Any]:
    """Results of several checks, or the problems of all of them at once.

    Parameters
    ----------
    *checks : callable

    Raises
    ------
    InputError
        Those of each check, each once.
    """
    found, problems = [], list[Problem]()
    for check in checks:
        try:
            found.append(check())
        except InputError as error:
            problems += [one for one in error.problems if one not in problems]
    if problems:
        raise InputError(problems)
    return found


def refuse_idle_split(layout: Layout, strategy: ModelParallel, plan: Schedule) -> None:
    """Refuse passes for the gradients of weights alone where no bubble is there to be filled by them.

    Raises
    ------
    InputError
        The schedule, and what would do.
    """
    if layout.pp == 1 and plan.chunks == 1 and plan.split:
        message = "has no effect: there is one stage, which has no bubble to fill"
        raise InputError(
            Problem(message, key="schedule", value=strategy.schedule, expected="1f1b, or layout.pp above 1")
        )


def refuse_idle_bucket(layout: Layout, strategy: ModelParallel, plan: Schedule) -> None:
    """Refuse a size of buckets where no rank has a copy of another one's weights.

    Raises
    ------
    InputError
        The size, and what would do.
    """
    if strategy.exchange.bucket and max(layout.dp * layout.cp, layout.expert_dp, plan.copies) == 1:
        message = "has no effect: there is one data-parallel rank, whose gradients do not travel"
        told = f"{strategy.exchange.bucket:g}"
        raise InputError(Problem(message, key="gradient_bucket", value=told, expected="0, or layout.dp above 1"))


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


def refuse_scattered_experts(model: Dimensions, layout: Layout) -> None:
    """Refuse an order of ranks in which those that experts are spread over are of several stages.

    Raises
    ------
    InputError
        The option, and what would do.
    """
    if model.model.experts and layout.mesh.group(0, "pp") != layout.expert_mesh.group(0, "pp"):
        message = "ranks that experts are spread over would be of several stages"
        told = "-".join(layout.order)
        raise InputError(Problem(message, key="layout.order", value=told, expected="an order with pp at its end"))
    if layout.etp and not model.model.experts:
        message, told = "has no effect: the model has no experts", str(layout.etp)
        raise InputError(Problem(message, key="layout.etp", value=told, expected="0, or a model with experts"))


def refuse_flat_base(model: Dimensions, strategy: ModelParallel) -> None:
    """Refuse frozen weights that would be one tensor with adapters.

    Raises
    ------
    InputError
        The option, and what would do.
    """
    if model.adapters and strategy.exchange.flat:
        message = "one tensor of frozen weights and adapters, whose gradient is as large as both, is not simulated"
        raise InputError(Problem(message, key="flat_weights", value="true", expected="false"))


def refuse_kept_weights(model: Dimensions, strategy: ModelParallel) -> None:
    """Refuse a narrow part of fully sharded weights where products are in fp32, or weights are gathered in fp32.

    Raises
    ------
    InputError
        The option, and what would do.
    """
    wide = "products are in fp32" if model.precision == "fp32" else ""
    if strategy.exchange.gathered == "fp32":
        wide = "weights are gathered in fp32"
    if strategy.exchange.kept != "fp32" and wide:
        raise InputError(Problem(wide, key="kept_precision", value=strategy.exchange.kept, expected="fp32"))


def refuse_offload(offload: Offload, plan: Schedule, counts: Sequence[int], layout: Layout) -> None:
    """Refuse what cannot be held in hosts' memory, or is not there.

    Raises
    ------
    InputError
        The option, and what would do.
    """
    if offload and layout.sharding == "zero-3":
        message = "weights that ranks share are gathered layer by layer: that is not simulated beside the host's memory"
        raise InputError(Problem(message, key="layout.sharding", value="zero-3", expected="zero-2, or no offload"))
    if offload.layers and (plan.split or plan.second):
        message = "passes for the gradients of weights alone, and second copies, keep activations longer"
        raise InputError(Problem(message, key="offload_layers", value=str(offload.layers), expected='0, or "1f1b"'))
    if offload.layers > max(counts):
        message = f"a part of the model has {max(counts)} blocks"
        expected = f"{max(counts)} at most"
        raise InputError(Problem(message, key="offload_layers", value=str(offload.layers), expected=expected))
