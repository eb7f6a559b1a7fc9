"""The model that arguments of Megatron-LM describe."""

from __future__ import annotations

import re

from simperf.frameworks.draft import JobDraft
from simperf.frameworks.options import JobOptionsRead

__all__ = ["draft_model"]

#: tokens of a tokenizer -> how it is known
_VOCABULARIES = {
    "GPT2BPETokenizer": (50257, "GPT-2's vocabulary"),
    "Llama2Tokenizer": (32000, "Llama 2's vocabulary"),
}
_POSITIONS = {"learned_absolute": "learned", "rope": "rotary", "none": "none"}
_NORMS = {"LayerNorm": "layer", "RMSNorm": "rms"}
_LAYERS = re.compile(r"\(?\[([01])\]\*(\d{1,5})\)?")


def draft_model(options: JobOptionsRead, draft: JobDraft) -> None:
    """Draft ``[model]``; what is missing or cannot be is a problem of the options."""
    for key, name in (("layers", "num_layers"), ("hidden", "hidden_size"), ("heads", "num_attention_heads")):
        if name in options:
            draft.set("model", key, options[name], name)
        elif not draft.is_changed(f"model.{key}"):
            options.problems.append(options.problem(name, "is needed", expected=f"{options.argument(name)} N"))
    _sequence(options, draft)
    _attention(options, draft)
    _network(options, draft)
    _vocabulary(options, draft)
    norm = options.choice("normalization", _NORMS, "layer")
    draft.set("model", "norm", norm, "normalization")
    bias = options["add_bias_linear"]
    draft.set("model", "bias", bias, "add_bias_linear")
    if options["add_qkv_bias"] and not bias:
        draft.set("model", "qkv_bias", True, "add_qkv_bias")
    tied = not options["untie_embeddings_and_output_weights"]
    draft.set("model", "tied", tied, "untie_embeddings_and_output_weights")
    dropout = options["attention_dropout"] > 0.0 or options["hidden_dropout"] > 0.0
    kind = "hidden_dropout" if "hidden_dropout" in options else "attention_dropout"
    draft.set("model", "dropout", dropout, kind)
    if options["mtp_num_layers"]:
        draft.set("model", "mtp", options["mtp_num_layers"], "mtp_num_layers")


def _sequence(options: JobOptionsRead, draft: JobDraft) -> None:
    """Length of a sample, and positions."""
    name = "encoder_seq_length" if "encoder_seq_length" in options and "seq_length" not in options else "seq_length"
    if name not in options and "max_position_embeddings" in options:
        name = "max_position_embeddings"
    if name in options:
        why = "not printed: as many as positions" if name == "max_position_embeddings" else ""
        draft.set("model", "sequence", options[name], name, why=why)
    elif not draft.is_changed("model.sequence"):
        options.problems.append(options.problem("seq_length", "is needed", expected="--seq-length N"))
    most = options["max_position_embeddings"]
    if most is not None and options["seq_length"] is not None and options["seq_length"] > most:
        message = f"sequences are longer than {options.argument('max_position_embeddings')} {most}"
        options.problems.append(options.problem("seq_length", message, expected=f"at most {most}"))
    positions = options.choice("position_embedding_type", _POSITIONS, "rotary")
    if options["use_rotary_position_embeddings"]:
        draft.set("model", "positions", "rotary", "use_rotary_position_embeddings")
        return
    why = ""
    if positions == "learned" and most is not None and most != options[name]:
        why = f"{most} positions are learned, as many as tokens of a sample are simulated"
    draft.set("model", "positions", positions, "position_embedding_type", why=why)


def _attention(options: JobOptionsRead, draft: JobDraft) -> None:
    """Heads, and latent attention."""
    if options["multi_latent_attention"]:
        for key, name in (
            ("head_dim", "qk_head_dim"),
            ("kv_rank", "kv_lora_rank"),
            ("q_rank", "q_lora_rank"),
            ("rope_dim", "qk_pos_emb_head_dim"),
            ("value_dim", "v_head_dim"),
        ):
            draft.set("model", key, options[name], name)
        return
    if options["group_query_attention"]:
        draft.set("model", "kv_heads", options["num_query_groups"], "num_query_groups")
    elif "num_query_groups" in options and options["num_query_groups"] != options["num_attention_heads"]:
        message = "has no effect without --group-query-attention"
        options.problems.append(options.problem("num_query_groups", message, expected="both, or neither"))
    if "kv_channels" in options:
        draft.set("model", "head_dim", options["kv_channels"], "kv_channels")
    if options["qk_layernorm"]:
        draft.set("model", "qk_norm", True, "qk_layernorm")


def _network(options: JobOptionsRead, draft: JobDraft) -> None:
    """The feed-forward network, and experts."""
    hidden = draft.value("model.hidden", options["hidden_size"]) or 0
    gated = options["gated_linear_unit"] or options["quick_geglu"]
    if options["squared_relu"] and gated:
        message = f"contradicts {options.argument('gated_linear_unit')}"
        options.problems.append(options.problem("squared_relu", message, expected="one of them"))
    activation, name = ("gelu", "gated_linear_unit")
    if options["squared_relu"]:
        activation, name = "relu2", "squared_relu"
    elif options["quick_geglu"]:
        activation, name = "geglu", "quick_geglu"
    elif gated:
        activation = "swiglu"
    draft.set("model", "activation", activation, name)
    if "ffn_hidden_size" in options:
        draft.set("model", "ffn", options["ffn_hidden_size"], "ffn_hidden_size")
    elif gated:  # two thirds of four times the width, down to a multiple of 64
        why = "two thirds of 4 x hidden, as Megatron-LM has it"
        draft.set("model", "ffn", 8 * hidden // 3 // 64 * 64, "hidden_size", why=why)
    else:
        draft.set("model", "ffn", 4 * hidden, "hidden_size", why="4 x hidden, as Megatron-LM has it")
    if options["num_moe_experts"]:
        _experts(options, draft)


def _experts(options: JobOptionsRead, draft: JobDraft) -> None:
    """Experts, shared ones, and first layers without."""
    draft.set("model", "experts", options["num_moe_experts"], "num_moe_experts")
    draft.set("model", "experts_per_token", options["moe_router_topk"], "moe_router_topk")
    width = options["moe_ffn_hidden_size"] or draft.tables["model"].get("ffn", 0)
    if "moe_ffn_hidden_size" in options:
        draft.set("model", "expert_ffn", width, "moe_ffn_hidden_size")
    if options["moe_router_enable_expert_bias"]:
        draft.set("model", "router_bias", True, "moe_router_enable_expert_bias")
    shared = options["moe_shared_expert_intermediate_size"]
    if shared:
        if not width or shared % width:
            message = f"the shared expert is no multiple of an expert's width of {width}"
            problem = options.problem("moe_shared_expert_intermediate_size", message, expected=f"a multiple of {width}")
            options.problems.append(problem)
        else:
            draft.set("model", "shared_experts", shared // width, "moe_shared_expert_intermediate_size")
    dense = _dense_layers(str(options["moe_layer_freq"]), options["num_layers"] or 0)
    if dense is None:
        expected = "1, or the first layers without experts: ([0]*3+[1]*58)"
        options.problems.append(options.problem("moe_layer_freq", "is not simulated", expected=expected))
    elif dense:
        draft.set("model", "dense_layers", dense, "moe_layer_freq")


def _dense_layers(text: str, layers: int) -> int | None:
    """First layers without experts; None where others have none."""
    plain = text.replace(" ", "")
    if plain == "1":
        return 0
    plain = plain[1:-1] if plain.startswith("(") and plain.endswith(")") else plain
    kinds: list[tuple[str, int]] = []
    if plain.startswith("[") and plain.endswith("]") and "*" not in plain:
        kinds = [(one, 1) for one in plain[1:-1].split(",")]
    else:
        found = [_LAYERS.fullmatch(part) for part in plain.split("+")]
        if any(one is None for one in found):
            return None
        kinds = [(one.group(1), int(one.group(2))) for one in found if one is not None]
    if sum(count for _, count in kinds) != layers or any(kind not in ("0", "1") for kind, _ in kinds):
        return None
    names = [kind for kind, _ in kinds]
    return None if names != sorted(names) else sum(count for kind, count in kinds if kind == "0")


def _vocabulary(options: JobOptionsRead, draft: JobDraft) -> None:
    """Tokens of the embedding, padded as Megatron-LM does."""
    if draft.is_changed("model.vocabulary"):
        return
    kind = str(options["tokenizer_type"])
    name, why = "vocab_size", ""
    if "vocab_size" in options:
        tokens = options["vocab_size"] + (1 if kind == "NullTokenizer" else 0)
    elif kind in _VOCABULARIES or not kind:
        # without a type the scripts of GPT and BERT name a vocabulary of GPT-2
        tokens, why = _VOCABULARIES[kind or "GPT2BPETokenizer"]
        name = "tokenizer_type"
        why = why if kind else f"not printed: assumed is {why}"
    else:
        message = f"the vocabulary of {kind} is not printed"
        expected = "--vocab-size N, or --set model.vocabulary=N"
        options.problems.append(options.problem("tokenizer_type", message, expected=expected))
        return
    multiple = max(1, options["make_vocab_size_divisible_by"]) * max(1, options["tensor_model_parallel_size"])
    padded = -(-tokens // multiple) * multiple
    if padded != tokens:
        why = f"{why}; " * bool(why) + f"{tokens} tokens, padded to a multiple of {multiple}"
    draft.set("model", "vocabulary", padded, name, why=why)
