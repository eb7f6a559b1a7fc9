"""Transformers from the ``config.json`` of a Hugging Face model."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, nearest
from simperf.json_file import read_json
from simperf.workload.transformers.dimensions import Transformer

__all__ = ["MODEL_TYPES", "from_config", "read_config"]

#: activations of feed-forward networks as configurations name them
_ACTIVATIONS = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu", "gelu_new": "geglu", "gelu_pytorch_tanh": "geglu"}
#: keys with which a model differs from all that a `Transformer` says, unless they have this value
_UNLIKE: dict[str, tuple[Any, ...]] = {
    "shared_expert_intermediate_size": (None, 0),
    "decoder_sparse_step": (None, 1),
    "mlp_only_layers": (None, []),
    "moe_layer_freq": (None, 1),
    "add_cross_attention": (None, False),
}
#: fields of a `Transformer` -> keys of a configuration that say them, of which a model has one
_KEYS: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embd", "n_embed"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("qk_nope_head_dim", "head_dim"),
    "ffn": ("intermediate_size", "n_inner"),
    "vocabulary": ("vocab_size",),
    "sequence": ("max_position_embeddings", "n_positions", "seq_length"),
    "window": ("sliding_window",),
    "kv_rank": ("kv_lora_rank",),
    "q_rank": ("q_lora_rank",),
    "rope_dim": ("qk_rope_head_dim",),
    "value_dim": ("v_head_dim",),
    "experts": ("n_routed_experts", "num_local_experts", "num_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "expert_ffn": ("moe_intermediate_size",),
    "shared_experts": ("n_shared_experts",),
    "dense_layers": ("first_k_dense_replace",),
    "mtp": ("num_nextn_predict_layers",),
}
#: models with latent attention, and the keys that are theirs alone
_LATENT = ("deepseek_v2", "deepseek_v3", "kimi_k2")
_OF_LATENT = ("kv_lora_rank", "q_lora_rank", "n_shared_experts", "first_k_dense_replace", "num_nextn_predict_layers")


def read_config(path: str | os.PathLike[str], *, sequence: int = 0) -> Transformer:
    """The transformer that a ``config.json`` describes.

    Parameters
    ----------
    path : path
        The file, or a folder that holds one.
    sequence : int
        Tokens of a sample, instead of the longest that the model takes.

    Raises
    ------
    InputError
        No such file, not JSON, or a model of another kind.
    """
    file = Path(path) / "config.json" if Path(path).is_dir() else Path(path)
    name = os.fspath(file)
    expected = "the config.json of a Hugging Face model"
    read = read_json(name, what="not the configuration of a transformer", expected=expected)
    try:
        return from_config(read.data, file=name, sequence=sequence)
    except InputError as error:
        at = [one.key in read.data if isinstance(read.data, Mapping) else False for one in error.problems]
        lines = [read.line((one.key,)) if found else 0 for one, found in zip(error.problems, at, strict=True)]
        raise InputError([replace(one, line=n) for one, n in zip(error.problems, lines, strict=True)]) from None


def from_config(data: Any, *, file: str = "", sequence: int = 0) -> Transformer:
    """The transformer of a configuration; see `read_config`.

    Examples
    --------
    >>> found = from_config({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257,
    ...                      "n_positions": 1024})
    >>> found.parameters
    124439808
    """
    kind = data.get("model_type") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in MODEL_TYPES:
        message = "not the configuration of a transformer that is known" + nearest(str(kind), MODEL_TYPES)
        expected = f"one of {', '.join(MODEL_TYPES)}; or [model] with layers, hidden, heads, ..."
        raise InputError(Problem(message, file=file, key="model_type", value=str(kind), expected=expected))
    own = {} if kind in _LATENT else dict.fromkeys(_OF_LATENT, (None, 0))
    odd = [key for key, usual in {**_UNLIKE, **own}.items() if data.get(key) not in usual]
    if odd:
        message = "a kind of layer that is not known"
        raise InputError(
            [Problem(message, file=file, key=key, value=str(data[key]), expected="equal layers") for key in odd]
        )
    numbers = [key for keys in _KEYS.values() for key in keys if data.get(key) is not None]
    wrong = [key for key in numbers if not isinstance(data[key], int) or isinstance(data[key], bool)]
    if wrong:
        message = "a whole number is expected"
        raise InputError([Problem(message, file=file, key=key, value=repr(data[key])) for key in wrong])
    try:
        return MODEL_TYPES[kind](data, sequence)
    except KeyError as error:
        raise InputError(Problem("is missing", file=file, key=str(error.args[0]))) from None
    except InputError as error:
        raise InputError([_in_its_words(one, data, sequence, file) for one in error.problems]) from None


def _in_its_words(problem: Problem, data: Mapping[str, Any], sequence: int, file: str) -> Problem:
    """A problem of a `Transformer` that names the keys of the configuration."""
    named = {ours: next((key for key in keys if key in data), keys[-1]) for ours, keys in _KEYS.items()}
    if sequence:  # which the scenario says
        del named["sequence"]
    words = re.compile(rf"\b({'|'.join(named)})\b")
    message = re.sub(r"\b(\w+)(?= = )|(?<=without )(\w+)", lambda one: named.get(one[0], one[0]), problem.message)
    expected = words.sub(lambda one: named[one[0]], problem.expected)
    return Problem(message, file=file, key=named.get(problem.key, problem.key), value=problem.value, expected=expected)


def _llama(data: Mapping[str, Any], sequence: int) -> Transformer:
    """Llama, and what has its block: rotary positions, RMS normalization, a gated feed-forward network."""
    activation = str(data.get("hidden_act", "silu"))
    if activation not in _ACTIVATIONS:
        message = f"no such activation{nearest(activation, _ACTIVATIONS)}"
        raise InputError(Problem(message, key="hidden_act", value=activation, expected=", ".join(_ACTIVATIONS)))
    if bool(data.get("attention_bias", False)) != bool(data.get("mlp_bias", False)):
        message = "biases in one half of a block only are not known"
        raise InputError(
            Problem(
                message,
                key="attention_bias",
                value=str(data.get("attention_bias", False)),
                expected="biases in both halves, or in none",
            )
        )
    kind, longest = data["model_type"], sequence or data["max_position_embeddings"]
    window = data.get("sliding_window") if data.get("use_sliding_window", kind in ("mistral", "mixtral")) else None
    if window and window < longest:
        message = f"attention over a window of {window} tokens is not known"
        raise InputError(Problem(message, key="sliding_window", value=str(window), expected=f"sequence = {window}"))
    experts = data.get("num_local_experts", data.get("num_experts")) or 0
    return Transformer(
        layers=data["num_hidden_layers"],
        hidden=data["hidden_size"],
        heads=data["num_attention_heads"],
        kv_heads=data.get("num_key_value_heads") or 0,
        head_dim=data.get("head_dim") or 0,
        ffn=data["intermediate_size"],
        vocabulary=data["vocab_size"],
        sequence=longest,
        activation=_ACTIVATIONS[activation],  # type: ignore[arg-type]
        tied=bool(data.get("tie_word_embeddings", False)),
        bias=bool(data.get("attention_bias", False)),
        qkv_bias=kind == "qwen2",
        qk_norm=kind in ("qwen3", "qwen3_moe"),
        experts=experts,
        experts_per_token=(data["num_experts_per_tok"] if experts else 0),
        expert_ffn=(data.get("moe_intermediate_size") or 0) if experts else 0,
        name=_name(data),
    )


def _latent(data: Mapping[str, Any], sequence: int) -> Transformer:
    """DeepSeek-V2 and what has its block: latent attention, shared experts, first blocks without experts."""
    plain = {**data, "num_key_value_heads": 0, "num_local_experts": data["n_routed_experts"]}
    return replace(
        _llama(plain, sequence),
        head_dim=data["qk_nope_head_dim"],
        kv_rank=data["kv_lora_rank"],
        q_rank=data.get("q_lora_rank") or 0,
        rope_dim=data["qk_rope_head_dim"],
        value_dim=data["v_head_dim"],
        router_bias=data.get("topk_method") == "noaux_tc",
        shared_experts=data.get("n_shared_experts") or 0,
        dense_layers=data.get("first_k_dense_replace") or 0,
        mtp=data.get("num_nextn_predict_layers") or 0,
    )


def _gpt_oss(data: Mapping[str, Any], sequence: int) -> Transformer:
    """gpt-oss: biases, a sink a head, a window in every other block, experts alone."""
    kinds = data.get("layer_types") or []
    plain = {**data, "attention_bias": False, "use_sliding_window": False}
    windowed = kinds.count("sliding_attention")
    return replace(
        _llama(plain, sequence),
        bias=True,
        sinks=True,
        window=data["sliding_window"] if windowed else 0,
        window_layers=windowed,
        expert_ffn=data["intermediate_size"],
    )


def _nemotron(data: Mapping[str, Any], sequence: int) -> Transformer:
    """Nemotron-4: layer normalization, the square of a ReLU without a gate."""
    if (activation := data.get("hidden_act", "relu2")) != "relu2":
        message = "another activation than Nemotron's"
        raise InputError(Problem(message, key="hidden_act", value=str(activation), expected="relu2"))
    return replace(_llama({**data, "hidden_act": "silu"}, sequence), activation="relu2", norm="layer")


def _bloom(data: Mapping[str, Any], sequence: int) -> Transformer:
    """BLOOM: ALiBi, layer normalization of the embedding, too, biases, the head tied to the embedding."""
    return Transformer(
        layers=data["n_layer"],
        hidden=data["hidden_size"] if "hidden_size" in data else data["n_embed"],
        heads=data["n_head"] if "n_head" in data else data["num_attention_heads"],
        vocabulary=data["vocab_size"],
        sequence=sequence or data.get("seq_length") or 2048,
        activation="gelu",
        norm="layer",
        positions="alibi",
        tied=bool(data.get("tie_word_embeddings", True)),
        bias=True,
        embed_norm=True,
        dropout=bool(data.get("hidden_dropout", 0.0)),
        name=_name(data),
    )


def _gpt2(data: Mapping[str, Any], sequence: int) -> Transformer:
    """GPT-2: learned positions, layer normalization, biases, the head tied to the embedding."""
    longest = data["n_positions"]
    if sequence > longest:
        message = f"the model has {longest} positions"
        raise InputError(Problem(message, key="sequence", value=str(sequence), expected=f"at most {longest}"))
    return Transformer(
        layers=data["n_layer"],
        hidden=data["n_embd"],
        heads=data["n_head"],
        ffn=data.get("n_inner") or 0,
        vocabulary=data["vocab_size"],
        sequence=longest,
        activation="gelu",
        norm="layer",
        positions="learned",
        tied=bool(data.get("tie_word_embeddings", True)),
        bias=True,
        dropout=bool(data.get("resid_pdrop", 0.1)),
        name=_name(data),
    )


def _name(data: Mapping[str, Any]) -> str:
    return str(data.get("_name_or_path") or data["model_type"]).rstrip("/").rpartition("/")[2]


#: ``model_type`` of a configuration -> reader
MODEL_TYPES: Mapping[str, Callable[[Mapping[str, Any], int], Transformer]] = {
    "bloom": _bloom,
    "deepseek_v2": _latent,
    "deepseek_v3": _latent,
    "gpt2": _gpt2,
    "gpt_oss": _gpt_oss,
    "kimi_k2": _latent,
    "llama": _llama,
    "mistral": _llama,
    "mixtral": _llama,
    "nemotron": _nemotron,
    "qwen2": _llama,
    "qwen3": _llama,
    "qwen3_moe": _llama,
}
