"""Models of published cases by their dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.shipped import shipped_transformers

__all__ = ["large_model"]

#: dimension of a transformer -> key of a case
_NEEDED = {"layers": "layers", "hidden": "hidden", "heads": "heads", "vocabulary": "vocab", "sequence": "seq"}
_OTHERS = {
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "ffn": "ffn",
    "experts": "experts",
    "experts_per_token": "topk",
    "expert_ffn": "moe_ffn",
    "shared_experts": "shared_experts",
    "dense_layers": "first_dense_layers",
    "kv_rank": "kv_lora_rank",
    "q_rank": "q_lora_rank",
    "rope_dim": "qk_rope_head_dim",
    "value_dim": "v_head_dim",
    "mtp": "mtp_layers",
}
#: what tells a shipped model's architecture, whatever its number of layers, heads and tokens are
_WIDTHS = ("hidden", "inner_width", "vocabulary", "gated")
#: what of it a case's model takes over
_KIND = (
    "activation",
    "norm",
    "norm_bias",
    "positions",
    "tied",
    "bias",
    "qkv_bias",
    "qk_norm",
    "embed_norm",
    "sinks",
    "dropout",
)


def large_model(shape: Mapping[str, Any], assumed: list[str]) -> Transformer:
    """The transformer of a case.

    Kinds of norm, positions and activation are those of a shipped model of the same widths; else of Llama for a gated
    network, and of GPT for another one.

    Parameters
    ----------
    shape : mapping
        Of the case.
    assumed : list of str
        Gets what is assumed.

    Raises
    ------
    KeyError
        A dimension is not printed.
    InputError
        Dimensions that do not go together.

    Examples
    --------
    >>> shape = {"layers": 12, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672, "vocab": 128256, "seq": 4096}
    >>> large_model({**shape, "gated": True}, []).positions
    'rotary'
    """
    if shape.get("name") and not any(shape.get(name) for name in ("layers", "hidden")):
        return _by_name(shape)
    needed: dict[str, Any] = {key: shape.get(name) for key, name in _NEEDED.items()}
    for key, name in _NEEDED.items():
        if needed[key] is None:
            raise KeyError(f"model.{name}")
    others = {key: shape[name] for key, name in _OTHERS.items() if shape.get(name)}
    if shape.get("qk_nope_head_dim"):
        others["head_dim"] = shape["qk_nope_head_dim"]
    for name in shape.get("inferred", ()):
        assumed.append(f"model.{name} = {shape.get(name)}")
    gated = shape.get("gated")
    if gated is None:
        gated = True
        assumed.append("a gated feed-forward network")
    kind: dict[str, Any] = {"activation": "swiglu" if gated else "gelu"}
    if not gated:
        kind |= {"norm": "layer", "positions": "learned", "bias": True, "tied": True, "dropout": True}
    model = Transformer(**needed, **others, **kind, name=str(shape.get("name", "model")))
    model = replace(model, **(_as_shipped(model, assumed) | _printed(shape)))
    return model


def _by_name(shape: Mapping[str, Any]) -> Transformer:
    """A shipped model of which a case prints the name alone."""

    def letters(name: str) -> str:
        return re.sub(r"[^a-z0-9.]", "", re.sub(r"-v0\.\d$", "", name.lower()))

    found = {letters(one.name): one for one in shipped_transformers().values()}
    known = found.get(letters(str(shape["name"])))
    if known is None:
        raise ValueError(f"a model by its name alone that is not known: {shape['name']}")
    return replace(known, sequence=int(shape.get("seq") or known.sequence), **_printed(shape))


def _as_shipped(model: Transformer, assumed: list[str]) -> dict[str, Any]:
    """Kinds of layers of a shipped model of the same widths."""
    widths = [getattr(model, name) for name in _WIDTHS]
    shipped = shipped_transformers().values()
    for one in shipped:
        if [getattr(one, name) for name in _WIDTHS] == widths:
            return {name: getattr(one, name) for name in _KIND}
    first = model.name.lower().partition("-")[0]
    for one in shipped:
        if one.name.partition("-")[0] == first and one.gated == model.gated:
            assumed.append(f"norms, positions, biases and dropout as of {one.name}")
            return {name: getattr(one, name) for name in _KIND}
    named = "Llama" if model.gated else "GPT"
    assumed.append(f"norms, positions, biases and dropout as of {named}")
    return {}


def _printed(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Kinds of layers that the case prints."""
    found: dict[str, Any] = {}
    if shape.get("learned_pos_emb") is True:
        found["positions"] = "learned"
    elif shape.get("alibi") is True:
        found["positions"] = "alibi"
    for key, name in (("bias", "linear_bias"), ("tied", "tied_embeddings")):
        if isinstance(shape.get(name), bool):
            found[key] = shape[name]
    return found
