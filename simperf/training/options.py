"""Which options belong to which strategy: one that would have no effect is refused, not ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from simperf.errors import InputError, Problem
from simperf.execution.session import Session

__all__ = ["STRATEGIES", "kernel_by_kernel", "owners", "unused"]

#: strategies, and whether one process drives all GPUs
STRATEGIES = {"ddp": False, "local-sgd": False, "data-parallel": True, "naive": True}

#: options that only some strategies have; DataParallel's broadcast and reduction are always chains, and nothing is
#: computed beside them, nor beside the averages of local SGD, so that nothing is slowed down there
_OF: Mapping[str, tuple[str, ...]] = {
    "algorithm": ("ddp", "local-sgd"),
    "options": ("ddp", "local-sgd"),
    "accumulate": ("ddp", "local-sgd"),
    "every": ("local-sgd",),
    "bucket": ("ddp",),
    "first_bucket": ("ddp",),
    "overlap": ("ddp",),
    "slowdown": ("ddp",),
    "broadcast": ("ddp",),
    "bucket_view": ("ddp",),
    "watched": ("ddp", "local-sgd", "data-parallel"),
}


def kernel_by_kernel(m: Session) -> None:
    """Refuse execution modes that change calls of whole networks, of which a strategy makes none.

    Raises
    ------
    InputError
        The session's mode fuses, captures, or orders a network's operations by their dependencies.
    """
    mode = m.mode
    if mode.fuses or mode.captures or mode.lanes > 1:
        message = "training launches kernel by kernel, and this mode changes only calls of whole networks"
        expected = "eager, synchronous or scripted"
        raise InputError(Problem(message, key="execution.mode", value=mode.name, expected=expected))


def owners(option: str) -> tuple[str, ...]:
    """Strategies for which an option of a `simperf.training.trainer.Training` has an effect."""
    return _OF.get(option, tuple(STRATEGIES))


def unused(run: Any) -> Iterable[Problem]:
    """Options of a `simperf.training.trainer.Training` that differ from their defaults, and that its strategy lacks."""
    for one in fields(run):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        value = getattr(run, one.name)
        if run.strategy not in owners(one.name) and value != default:
            yield Problem(
                f"{run.strategy} has no use for it",
                key=one.name,
                value=str(value),
                expected=f"{one.name} with strategy {' or '.join(owners(one.name))}, or without it",
            )
    if STRATEGIES[run.strategy] and run.exact is False:
        yield Problem(
            f"{run.strategy} is one process, which drives every rank",
            key="exact",
            value="no",
            expected="auto or yes, or strategy ddp",
        )
