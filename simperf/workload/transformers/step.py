"""The training step of a transformer by its dimensions: of the Llama and of the GPT family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from simperf.errors import InputError, Problem
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.model import TracedModel
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.gpt_step import GptStep
from simperf.workload.transformers.llama_step import LlamaStep

__all__ = ["training_model", "unknown_kernels"]

#: what a model has beside its dimensions for the kernels of its family to be its own, by its normalisation
_KNOWN: Mapping[str, Mapping[str, Any]] = {
    "rms": {"positions": "rotary", "activation": "swiglu", "tied": False, "bias": False, "dropout": False},
    "layer": {"positions": "learned", "activation": "gelu", "bias": True},
}
_USUAL = LayerKernels()
_NEITHER: Mapping[str, Any] = {
    "norm_bias": True,
    "qkv_bias": False,
    "qk_norm": False,
    "embed_norm": False,
    "sinks": False,
    "parallel_block": False,
    "window": 0,
    "kv_rank": 0,
    "experts": 0,
    "mtp": 0,
}


def training_model(model: Transformer, kernels: LayerKernels = _USUAL) -> TracedModel:
    """The training step of a transformer, for any batch and precision.

    Parameters
    ----------
    model : Transformer
    kernels : LayerKernels
        Which kernels a layer runs; those of eager PyTorch by default.

    Raises
    ------
    InputError
        A model whose kernels are not known: dense ones of the Llama and the GPT family are. A choice of kernels that
        only models under a layout have.

    Examples
    --------
    >>> small = Transformer(layers=2, hidden=64, heads=4, vocabulary=1000, sequence=16)
    >>> training_model(small).parameter_count == small.parameters
    True
    """
    problems = [*unknown_kernels(model), *kernels.without_effect()]
    if problems:
        raise InputError(problems)
    return (LlamaStep if model.norm == "rms" else GptStep)(model, kernels).made()


def unknown_kernels(model: Transformer) -> Iterator[Problem]:
    """Properties of a model of whose training step the kernels are not known."""
    for key, known in {**_KNOWN[model.norm], **_NEITHER}.items():
        value = getattr(model, key)
        if value != known:
            message = f"the kernels of such a model with {model.norm} normalization are not known"
            yield Problem(message, key=key, value=str(value).lower(), expected=f"{key} = {str(known).lower()}")
