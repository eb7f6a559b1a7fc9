"""Arithmetic of a training step by the usual convention: products and attention, and nothing else.

Model FLOPs are 6 for each weight of a matrix product and token, 2 forward and 4 backward, and those of attention's two
products; embeddings, norms, biases and activations are left out. Narayanan et al., Megatron-LM, SC 2021, appendix;
Chowdhery et al., PaLM, 2022, appendix B. Papers differ in whether a causal mask halves attention.
"""

from __future__ import annotations

from typing import Literal, get_args

from simperf.errors import InputError, Problem, nearest
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.tuning import Adapters, Documents

__all__ = [
    "RECOMPUTATIONS",
    "Recomputation",
    "adapter_weights",
    "again_flops",
    "attention_flops",
    "forward_flops",
    "step_flops",
    "tuning_flops",
]

Recomputation = Literal["none", "selective", "selective-op", "full"]

#: what is computed again in the backward pass: nothing; the products of attention; all but attention and every other
#: matrix product, as by the policy "op" of pytorch/torchtitan; each layer
RECOMPUTATIONS: tuple[Recomputation, ...] = get_args(Recomputation)


def attention_flops(model: Transformer, *, causal: bool = False) -> float:
    """Arithmetic of attention's two products for one sample, forward [FLOP].

    Parameters
    ----------
    model : Transformer
    causal : bool
        Whether only what a causal mask leaves is counted.
    """
    layers, windowed, n = model.layers + model.mtp, model.window_layers, model.sequence
    width = model.query_width + model.attended_width
    seen = n * n / 2 if causal else float(n * n)
    inside = min(model.window, n)
    near = inside * inside / 2 + (n - inside) * inside if causal else float(n * inside)
    return 2.0 * width * ((layers - windowed) * seen + windowed * near)


def forward_flops(model: Transformer, *, causal: bool = False) -> float:
    """Arithmetic of the forward pass for one sample: products with weights, and attention [FLOP].

    Examples
    --------
    >>> llama = Transformer(layers=32, hidden=4096, heads=32, ffn=11008, vocabulary=32000, sequence=4096)
    >>> round(forward_flops(llama) / 1e12, 2)
    62.92
    """
    return 2.0 * model.sequence * _in_products(model) + attention_flops(model, causal=causal)


def step_flops(model: Transformer, *, causal: bool = False, recompute: Recomputation = "none") -> float:
    """Arithmetic of a training step for one sample [FLOP]: model FLOPs, and with recomputation hardware FLOPs.

    Parameters
    ----------
    model : Transformer
    causal : bool
        As for `attention_flops`.
    recompute : str
        One of `RECOMPUTATIONS`.

    Raises
    ------
    InputError
        No such recomputation.
    """
    if recompute not in RECOMPUTATIONS:
        message = f"no such recomputation{nearest(str(recompute), RECOMPUTATIONS)}"
        expected = ", ".join(RECOMPUTATIONS)
        raise InputError(Problem(message, key="recompute", value=str(recompute), expected=expected))
    forward = forward_flops(model, causal=causal)
    again = {
        "none": 0.0,
        "selective": attention_flops(model, causal=causal),
        "selective-op": 2.0 * model.sequence * _products_again(model),
        "full": forward - _head(model),
    }
    return 3.0 * forward + again[recompute]


def tuning_flops(model: Transformer, adapters: Adapters, documents: Documents) -> float:
    """Arithmetic of a step of fine-tuning for one sample, without recomputation [FLOP].

    Frozen matrices have no product for the gradient of their weights: 4 FLOP for each weight and token in place of 6.
    Attention is within documents.

    Parameters
    ----------
    model : Transformer
    adapters : Adapters
        None: all weights are trained.
    documents : Documents

    Examples
    --------
    >>> llama = Transformer(layers=32, hidden=4096, heads=32, ffn=11008, vocabulary=32000, sequence=4096)
    >>> ratio = tuning_flops(llama, Adapters(rank=16), Documents()) / step_flops(llama)
    >>> round(ratio, 3)
    0.718
    """
    attention = 3.0 * attention_flops(model) * documents.share(model.sequence)
    each = 2.0 * model.sequence
    if not adapters:
        return 3.0 * each * _in_products(model) + attention
    return 2.0 * each * _in_products(model) + 3.0 * each * adapter_weights(model, adapters) + attention


def again_flops(model: Transformer, recompute: Recomputation, adapters: Adapters, documents: Documents) -> float:
    """Arithmetic that the backward pass of one sample computes again, with adapters or without [FLOP].

    Parameters
    ----------
    model : Transformer
    recompute : str
        One of `RECOMPUTATIONS`.
    adapters : Adapters
    documents : Documents
    """
    again = step_flops(model, recompute=recompute) - step_flops(model)
    if recompute in ("selective", "full"):
        again -= attention_flops(model) * (1.0 - documents.share(model.sequence))
    if adapters and recompute in ("selective-op", "full"):
        again += 2.0 * model.sequence * adapter_weights(model, adapters)
    return again


def adapter_weights(model: Transformer, adapters: Adapters) -> int:
    """Weights of all adapters of a model.

    Examples
    --------
    >>> small = Transformer(layers=2, hidden=64, heads=4, vocabulary=1024, sequence=16)
    >>> adapter_weights(small, Adapters(rank=8, targets=("q", "v")))
    4096
    """
    inner = model.ffn or 4 * model.hidden
    sides = {
        "qkv": model.hidden + model.query_width + 2 * model.key_width,
        "q": model.hidden + model.query_width,
        "k": model.hidden + model.key_width,
        "v": model.hidden + model.key_width,
        "projection": model.attended_width + model.hidden,
        "up": model.hidden + (2 if model.gated else 1) * inner,
        "down": inner + model.hidden,
    }
    return model.layers * adapters.rank * sum(sides[one] for one in adapters.targets)


def _products_again(model: Transformer) -> int:
    """Weights of the blocks' matrices that selective recomputation by operation multiplies with again."""
    names = (".k.weight", ".o.weight", *((".up.weight",) if model.gated else ()))
    block = sum(one.elements for one in model.block_weights("block") if one.name.endswith(names))
    return model.layers * block


def _head(model: Transformer) -> float:
    """Arithmetic of the head for one sample [FLOP]."""
    return 2.0 * model.sequence * model.vocabulary * model.hidden * (1 + model.mtp)


def _in_products(model: Transformer) -> int:
    """Weights that a token is multiplied with: matrices of the blocks, of the experts those it meets, and the head."""

    def matrices(dense: bool) -> int:
        found = [one for one in model.block_weights("block", dense=dense) if len(one.shape) == 2]
        experts = sum(one.elements for one in found if ".experts." in one.name)
        idle = experts * (model.experts - model.experts_per_token) // model.experts if experts else 0
        return sum(one.elements for one in found) - idle

    dense = model.dense_layers * matrices(True) if model.dense_layers else 0
    blocks = (model.layers - model.dense_layers + model.mtp) * matrices(False)
    join = model.mtp * 2 * model.hidden * model.hidden
    return dense + blocks + join + (1 + model.mtp) * model.vocabulary * model.hidden
