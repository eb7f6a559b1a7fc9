"""Facts of a transformer by its dimensions whose kernels depend on a layout: parameters and arithmetic of a step."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.flops import attention_flops, forward_flops, step_flops

__all__ = ["transformer_facts"]


def transformer_facts(
    model: Transformer, batch: int, *, precision: str = "", optimizer: str = "", kernels: bool = False
) -> list[tuple[str, float, str]]:
    """Name, value and SI unit of what there is to know without a layout.

    Model FLOP are 6 for each weight of a product and token, and attention without its mask.

    Parameters
    ----------
    model : Transformer
    batch : int
        Samples of a step.
    precision, optimizer : str
        Empty: they have no effect without kernels.
    kernels : bool
        False, for the same reason.

    Raises
    ------
    InputError
        An option without effect.
    """
    given = {"--precision": precision, "--optimizer": optimizer, "--kernels": kernels and "on"}
    problems = [
        Problem(
            f"has no effect: the kernels of {model.name} are those of a divided model",
            file=option,
            value=str(value),
            expected="no such option; `simperf run` simulates the model with a [layout]",
        )
        for option, value in given.items()
        if value
    ]
    if problems:
        raise InputError(problems)
    forward, whole = forward_flops(model), step_flops(model)
    again = step_flops(model, recompute="full") - whole
    return [
        ("parameters", model.parameters, "1"),
        ("parameters that a token meets", model.active_parameters, "1"),
        ("tokens of a sample", model.sequence, "1"),
        ("multiply-adds forward, a sample", forward_flops(model, causal=True) / 2, "1"),
        ("forward: model FLOP", batch * forward, "FLOP"),
        ("forward: attention in it", batch * attention_flops(model), "FLOP"),
        ("step: model FLOP", batch * whole, "FLOP"),
        ("step: model FLOP, a token", whole / model.sequence, "FLOP"),
        ("step: hardware FLOP, layers computed again", batch * (whole + again), "FLOP"),
    ]
