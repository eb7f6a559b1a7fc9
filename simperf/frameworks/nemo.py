"""Jobs of NeMo: YAML files of recipes, or key=value arguments; most keys are options of Megatron-Core."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, nearest
from simperf.files import read_toml
from simperf.frameworks.draft import JobDraft
from simperf.frameworks.megatron import draft_megatron
from simperf.frameworks.options import GivenOption, JobOptionsRead, OptionSpec, OptionTable, option_table
from simperf.frameworks.source import JobSource
from simperf.frameworks.yaml_file import read_yaml
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.shipped import shipped_transformers

__all__ = ["draft_nemo", "nemo_options", "nemo_table"]

_DATA = Path(__file__).parent / "data" / "nemo.toml"
_REFERENCE = re.compile(r"\$\{(\.*)([A-Za-z0-9_.]+)\}")
#: references to references at most
_DEEPEST = 8
#: precision of Lightning's trainer -> flag
_PRECISIONS = {"bf16": "bf16", "bf16-mixed": "bf16", "16": "fp16", "16-mixed": "fp16", "fp16": "fp16"}
_NORMS = {"layernorm": "LayerNorm", "layernorm1p": "LayerNorm", "rmsnorm": "RMSNorm"}
_ACTIVATIONS = {
    "swiglu": "gated_linear_unit",
    "fast-swiglu": "gated_linear_unit",
    "geglu": "quick_geglu",
    "fast-geglu": "quick_geglu",
    "squared-relu": "squared_relu",
    "gelu": "",
}
#: optimizers whose states data-parallel ranks share
_DISTRIBUTED = ("distributed_fused_adam", "mcore_distributed_optim")
#: keys that stand for something else than an option of their name, by their end
_SPECIAL = (
    *("precision", "activation", "activation_func", "virtual_pipeline_model_parallel_size", "mixed_precision"),
    *("share_embeddings_and_output_weights", "grad_reduce_in_fp32", "fp8_hybrid", "fp8_e4m3", "fp8", "_target_"),
    *("normalization", "bias_activation_fusion", "megatron_amp_O2"),
)


def nemo_options(source: JobSource) -> tuple[list[GivenOption], list[str]]:
    """Keys of a YAML file, or of key=value arguments, with references to other keys put in."""
    if source.path:
        rows = read_yaml(source.path)
    else:
        pairs = [word.lstrip("+~").partition("=") for word in source.words]
        odd = [name for name, equals, _ in pairs if not equals]
        if odd:
            raise InputError(
                Problem("no key=value", file="arguments", value=odd[0], expected="such as trainer.devices=8")
            )
        rows = [(name, _typed(value), 0) for name, _, value in pairs]
    values = {name: value for name, value, _ in rows}
    given, notes = [], []
    for name, value, line in rows:
        told = _followed(name, value, values)
        if isinstance(told, str) and "${" in told:
            notes.append(f"{name} (line {line}): not understood (read: '{told[:80]}')")
        elif told is not None:
            given.append(GivenOption(name, (), told, line))
    return given, notes


def _typed(word: str) -> Any:
    """A word in the type that it looks like."""
    if word.startswith("[") and word.endswith("]"):
        return [_typed(one) for one in word.strip("[]").replace(" ", "").split(",") if one]
    if word.lower() in ("true", "false", "null", "none", ""):
        return {"true": True, "false": False}.get(word.lower())
    for kind in (int, float):
        try:
            return kind(word) if len(word) < 25 else word
        except ValueError:
            continue
    return word


def _followed(name: str, value: Any, values: Mapping[str, Any]) -> Any:
    """A value, or what it refers to."""
    for _ in range(_DEEPEST):
        found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if not found:
            return value
        dots, key = len(found.group(1)), found.group(2)
        if dots:
            parents = name.split(".")[:-dots]
            key = ".".join([*parents, key])
        if key not in values:
            return value
        name, value = key, values[key]
    return value


@cache
def nemo_table() -> OptionTable:
    """Options of Megatron-Core as NeMo has them."""
    data, base = read_toml(_DATA).data, option_table("megatron")
    options = {}
    for name, one in base.options.items():
        kind = "bool" if one.kind in ("on", "off") else one.kind
        default = data["default"].get(name, one.default)
        options[name] = OptionSpec((name, *data["alias"].get(name, ())), kind, default)
    without = tuple(data["without_effect"]["patterns"])
    return replace(
        base,
        title=data["title"],
        source=data["source"],
        options=options,
        without_effect=without,
        unplayed=data["unplayed"],
        refused=data["refused"],
    )


def draft_nemo(options: JobOptionsRead, draft: JobDraft, *, gpus: int, on: str) -> None:
    """Draft the tables of a job of NeMo; the parameters are those of `draft_megatron`."""
    given, options.unnamed = options.unnamed, []
    names = options.table.names
    plain: list[GivenOption] = []
    for one in _in_order(given):
        last = one.name.rpartition(".")[2]
        two = ".".join(one.name.split(".")[-2:])
        name = names.get(two) or names.get(last)
        if last in _SPECIAL and _special(options, one, last):
            continue
        if name is not None and not one.name.startswith(("trainer.callbacks", "model.data.")):
            options.take(name, one)
        else:
            plain.append(one)
    options.read(plain)
    if any(one.name.rpartition(".")[2] == "fp8" and one.value is False for one in given):
        options.values.pop("fp8", None)  # a format alone switches nothing on
    if options["recompute_granularity"] == "selective":
        options.values.pop("activations_checkpoint_method", None)  # NeMo wants one, and recomputes in all layers
    if options["num_query_groups"]:
        options.values["group_query_attention"] = True
    if not options["activations_checkpoint_method"] and options["recompute_granularity"] == "full":
        options.values.setdefault("recompute_method", "uniform")
    elif options["activations_checkpoint_method"]:
        options.values["recompute_method"] = options.values.pop("activations_checkpoint_method")
        options.values.setdefault("recompute_granularity", "full")
    if str(options["optimizer"]) in _DISTRIBUTED:
        options.values["use_distributed_optimizer"] = True
        options.values["optimizer"] = "adam"
    draft_megatron(options, draft, gpus=gpus, on=on)
    if any(one.key in ("num_layers", "hidden_size", "num_attention_heads") for one in options.problems):
        options.problems += _unknown_models(options, given)


def _unknown_models(options: JobOptionsRead, given: list[GivenOption]) -> Iterator[Problem]:
    """Classes of models whose dimensions are not known, where some are missing."""
    known = read_toml(_DATA).data["model"]
    for one in given:
        kind = str(one.value).rpartition(".")[2][:60]
        if one.name.startswith("model.") and one.name.endswith("_target_") and "Config" in kind and kind not in known:
            message = f"no dimensions are known of {kind!r}{nearest(kind, known, show=4)}"
            yield options.problem_at(one, message, expected="a class that is known, or num_layers and such beside it")


def _in_order(given: list[GivenOption]) -> Iterator[GivenOption]:
    """Classes of models first, whose values others replace."""
    yield from (one for one in given if one.name.endswith("_target_"))
    yield from (one for one in given if not one.name.endswith("_target_"))


def _special(options: JobOptionsRead, one: GivenOption, last: str) -> bool:
    """Take a key that stands for another option; whether it does."""
    value = one.value
    word = str(value)
    if last == "_target_":
        return _model(options, one, word.rpartition(".")[2])
    if last == "normalization":
        options.take(last, replace(one, value=_NORMS.get(word.lower(), word)))
        return True
    if last == "precision" and one.name.startswith("trainer"):
        if word in _PRECISIONS:
            options.take(_PRECISIONS[word], replace(one, value=True))
        elif word not in ("32", "32-true"):
            options.problems.append(options.problem_at(one, "is not simulated", expected=", ".join(_PRECISIONS)))
        return True
    if last == "mixed_precision":
        flag = next((flag for flag in ("bf16", "fp16") if word.startswith(flag)), "")
        if flag:
            options.take(flag, replace(one, value=True))
        return bool(flag)
    if last in ("activation", "activation_func"):
        name = _ACTIVATIONS.get(word.lower())
        if name:
            options.take(name, replace(one, value=True))
        return name is not None
    return _renamed(options, one, last)


def _renamed(options: JobOptionsRead, one: GivenOption, last: str) -> bool:
    """Take a key that is another option of Megatron-LM by another name or sense; whether it is one."""
    value = one.value
    if last == "virtual_pipeline_model_parallel_size":
        options.take("num_virtual_stages_per_pipeline_rank", one)
    elif last == "share_embeddings_and_output_weights" and isinstance(value, bool):
        options.take("untie_embeddings_and_output_weights", replace(one, value=not value))
    elif last == "grad_reduce_in_fp32" and isinstance(value, bool):
        options.take("grad_reduce_in_bf16", replace(one, value=not value))
    elif last in ("fp8_hybrid", "fp8_e4m3") or (last == "fp8" and isinstance(value, bool)):
        if value is True:
            options.take("fp8", replace(one, value="hybrid"))
    elif last == "bias_activation_fusion":
        options.take("bias_gelu_fusion", one)
        options.take("bias_swiglu_fusion", one)
    elif last == "megatron_amp_O2":
        options.without_effect.append(one.name)
    else:
        return False
    return True


def _model(options: JobOptionsRead, one: GivenOption, kind: str) -> bool:
    """Take the values of a class of models; whether it is one."""
    models: Mapping[str, str] = read_toml(_DATA).data["model"]
    if kind not in models:
        if "Config" in kind and one.name.startswith("model."):
            options.notes.append(
                f"{one.name}: no dimensions are known of {kind[:60]}: its values have to stand beside it"
            )
            return True
        return False
    if not one.name.startswith("model"):
        return True
    for name, value in _values(shipped_transformers()[models[kind]]).items():
        options.values[name] = value
        options.assumed[name] = f"of {kind}"
    return True


def _values(model: Transformer) -> dict[str, Any]:
    """Options of Megatron-Core that describe a model."""
    found = {
        "num_layers": model.layers,
        "hidden_size": model.hidden,
        "num_attention_heads": model.heads,
        "num_query_groups": model.kv_heads or model.heads,
        "kv_channels": model.head_width,
        "ffn_hidden_size": model.ffn or 4 * model.hidden,
        "seq_length": model.sequence,
        "vocab_size": model.vocabulary,
        "normalization": "RMSNorm" if model.norm == "rms" else "LayerNorm",
        "position_embedding_type": {"rotary": "rope", "learned": "learned_absolute"}.get(model.positions, "none"),
        "gated_linear_unit": model.activation == "swiglu",
        "quick_geglu": model.activation == "geglu",
        "squared_relu": model.activation == "relu2",
        "add_bias_linear": model.bias,
        "add_qkv_bias": model.qkv_bias,
        "untie_embeddings_and_output_weights": not model.tied,
        "qk_layernorm": model.qk_norm,
        "attention_dropout": 0.1 if model.dropout else 0.0,
        "hidden_dropout": 0.1 if model.dropout else 0.0,
    }
    if model.experts:
        freq = f"([0]*{model.dense_layers}+[1]*{model.layers - model.dense_layers})" if model.dense_layers else "1"
        found |= {
            "num_moe_experts": model.experts,
            "moe_router_topk": model.experts_per_token,
            "moe_ffn_hidden_size": model.inner_width,
            "moe_layer_freq": freq,
            "moe_shared_expert_intermediate_size": model.shared_experts * model.inner_width,
            "moe_router_enable_expert_bias": model.router_bias,
            "moe_grouped_gemm": True,
        }
    if model.kv_rank:
        found |= {
            "multi_latent_attention": True,
            "q_lora_rank": model.q_rank,
            "kv_lora_rank": model.kv_rank,
            "qk_head_dim": model.head_width,
            "qk_pos_emb_head_dim": model.rope_dim,
            "v_head_dim": model.value_dim or model.head_width,
        }
    return found
