"""Precisions of published cases: what they print, and the recipe of products that it means."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simperf.files import read_toml

__all__ = ["LargePrecision", "large_precision"]

_DATA = Path(__file__).parent / "data" / "large_precisions.toml"
#: precision of a case -> of weights and activations
_WEIGHTS = {
    "bf16": "bf16",
    "fp16": "fp16",
    "fp32": "fp32",
    "fp16/bf16 mixed": "fp16",
    "amp_bf16": "bf16",
}


class LargePrecision(NamedTuple):
    """Precision of a case.

    Parameters
    ----------
    weights : str
        Of weights and activations.
    gradients : str
        That gradients are added up in; empty if it is not printed.
    products : str
        Recipe of the blocks' products; empty for that of weights.
    gathered : str
        In which weights travel; empty for what the stack has.
    """

    weights: str
    gradients: str = ""
    products: str = ""
    gathered: str = ""


def large_precision(how: Mapping[str, Any], gpu: str, assumed: list[str]) -> LargePrecision:
    """Precision of a case.

    Parameters
    ----------
    how : mapping
        Its `parallelism`, with the name of its file as `family`.
    gpu : str
        Its GPU, as it is printed.
    assumed : list of str
        Gets what is assumed.

    Raises
    ------
    ValueError
        A precision that no job has.
    """
    printed = str(how.get("precision") or "").lower()
    if not printed:
        assumed.append("bf16")
        printed = "bf16"
    gradients = str(how.get("grad_reduce_dtype") or "")
    for entry in _entries():
        if printed in entry["printed"] and _matches(entry, how, gpu):
            gathered, recipe = str(entry.get("gathered", "")), str(entry["recipe"])
            if printed == "fp8":
                assumed.append(f"FP8: {recipe}")
            if gathered and "float8" not in printed:
                assumed.append("weights are kept and gathered in fp8")
            return LargePrecision("bf16", gradients, recipe, gathered)
    kind, _, more = printed.partition(", ")
    if kind not in _WEIGHTS:
        raise ValueError(f"precision {how['precision']}")
    if kind == "fp16/bf16 mixed":
        assumed.append("fp16")
    if "fp32 gradient accumulation" in more:
        gradients = "fp32"
    elif more:
        raise ValueError(f"precision {how['precision']}")
    return LargePrecision(_WEIGHTS[kind], gradients)


def _matches(entry: Mapping[str, Any], how: Mapping[str, Any], gpu: str) -> bool:
    if entry.get("family", how.get("family")) != how.get("family"):
        return False
    if "architecture" not in entry:
        return True
    from simperf.accuracy.large_hardware import find_gpu

    return find_gpu(gpu, []).architecture == str(entry["architecture"])


@cache
def _entries() -> tuple[Mapping[str, Any], ...]:
    return tuple(read_toml(_DATA).data["precision"])
