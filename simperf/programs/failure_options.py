"""The parameters of failures: keys of ``failing-job``, and of ``[failures]`` beside a training job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simperf.errors import InputError
from simperf.programs.fields import Fields
from simperf.programs.parameters import Parameter, Unless
from simperf.training.failures.options import Failures

__all__ = ["FAILURES", "FAILURES_PARAMETER", "failure_rules", "failures_of"]


def failure_rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    """Options that have an effect only together with others, where the size of the job's state is given or 0."""
    stored = Unless(bool(given["size"]), ("storage", "per_node"), "a state of no size takes no time to save", "size")
    return (stored, *_rules(given))


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    """What has an effect only together with something else."""
    weibull, shrinks = given["law"] == "weibull", given["without_spare"] == "shrink"
    writing = "training stops until all is written"
    return (
        Unless(weibull, ("shape",), "only Weibull's distribution has a shape", 'law = "weibull"'),
        Unless(bool(given["counts"]), ("observed",), "nothing was counted", "counts"),
        Unless(given["asynchronous"], ("to_host",), writing, "asynchronous = true"),
        Unless(shrinks, ("least",), "the job does not shrink", 'without_spare = "shrink"'),
    )


#: the keys of failures, and what they make
FAILURES = Fields(Failures, _rules)
#: the same for jobs that do not know the size of their state
_SIZED = Fields(Failures, failure_rules)

#: the parameter of a program that plays a job among failures
FAILURES_PARAMETER = Parameter("failures", dict[str, Any], {}, "the keys of [failures], in SI units", "Failures")


def failures_of(given: Mapping[str, Any]) -> Failures | None:
    """The failures that a job's parameters say, if they say any.

    Raises
    ------
    InputError
        What has no meaning, or no effect beside the others: all of it, as keys of ``[failures]``.
    """
    table = given[FAILURES_PARAMETER.name]
    if not table:
        return None
    fields = FAILURES if given.get("strategy") == "model-parallel" else _SIZED
    try:
        made: Failures = fields.made(table)
    except InputError as error:
        raise InputError([replace(one, key=f"failures.{one.key}") for one in error.problems]) from None
    return made
