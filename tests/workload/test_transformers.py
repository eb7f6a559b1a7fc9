"""Transformers by their dimensions: the published numbers of parameters, and what makes no sense."""

import json
import math

import pytest

from simperf.errors import InputError
from simperf.workload.transformers import Transformer, from_config, read_config

#: config.json and number of parameters as huggingface.co has them: `safetensors` of each model card, bytes / 2 for bf16
LLAMA = {"model_type": "llama", "max_position_embeddings": 4096, "hidden_act": "silu", "tie_word_embeddings": False}
PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": (
        {**LLAMA, "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32}
        | {"intermediate_size": 11008, "vocab_size": 32000},
        6_738_415_616,
    ),
    "meta-llama/Llama-2-13b-hf": (
        {**LLAMA, "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 40}
        | {"intermediate_size": 13824, "vocab_size": 32000},
        13_015_864_320,
    ),
    "meta-llama/Llama-2-70b-hf": (
        {**LLAMA, "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8}
        | {"intermediate_size": 28672, "vocab_size": 32000},
        68_976_648_192,
    ),
    "meta-llama/Meta-Llama-3-8B": (
        {**LLAMA, "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
        | {"intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192},
        8_030_261_248,
    ),
    "meta-llama/Meta-Llama-3-70B": (
        {**LLAMA, "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8}
        | {"intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 8192},
        70_553_706_496,
    ),
    "meta-llama/Llama-3.1-405B": (
        {**LLAMA, "num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128, "num_key_value_heads": 8}
        | {"intermediate_size": 53248, "vocab_size": 128256, "max_position_embeddings": 131072},
        405_853_388_800,
    ),
    "mistralai/Mixtral-8x7B-v0.1": (
        {**LLAMA, "model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
        | {"num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "num_local_experts": 8}
        | {"num_experts_per_tok": 2, "sliding_window": None},
        46_702_792_704,
    ),
    "mistralai/Mixtral-8x22B-v0.1": (
        {**LLAMA, "model_type": "mixtral", "num_hidden_layers": 56, "hidden_size": 6144, "num_attention_heads": 48}
        | {"num_key_value_heads": 8, "intermediate_size": 16384, "vocab_size": 32000, "num_local_experts": 8}
        | {"num_experts_per_tok": 2, "sliding_window": None},
        140_620_634_112,
    ),
    "Qwen/Qwen3-30B-A3B": (
        {**LLAMA, "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32}
        | {"num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "vocab_size": 151936}
        | {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1}
        | {"mlp_only_layers": [], "use_sliding_window": False},
        30_532_122_624,
    ),
    **{
        name: (
            {"model_type": "gpt2", "n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": 1024}
            | {"vocab_size": 50257},
            parameters,
        )
        for name, layers, width, heads, parameters in (
            ("openai-community/gpt2", 12, 768, 12, 124_439_808),
            ("openai-community/gpt2-medium", 24, 1024, 16, 354_823_168),
            ("openai-community/gpt2-large", 36, 1280, 20, 774_030_080),
            ("openai-community/gpt2-xl", 48, 1600, 25, 1_557_611_200),
        )
    },
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers_of_parameters(name):
    config, parameters = PUBLISHED[name]
    found = from_config(config)
    assert found.parameters == parameters
    if found.layers * max(found.experts, 1) < 500:
        weights = list(found.weights())
        assert sum(math.prod(one.shape) for one in weights) == parameters
        assert len({one.name for one in weights}) == len(weights)
        assert [*found.end_weights()] == [one for one in weights if not one.name.startswith("blocks.")]


@pytest.mark.parametrize("depths", [0, 1, 2])
def test_weights_around_the_blocks_have_one_depth_of_multi_token_prediction(depths):
    found = Transformer(**{**SMALL, "mtp": depths, "positions": "learned"})
    blocks = ("blocks.", *(f"mtp.{number}" for number in range(1, depths)), "mtp.0.block.")
    assert [*found.end_weights()] == [one for one in found.weights() if not one.name.startswith(blocks)]


def test_active_parameters_of_experts():
    """12.9 billion of 46.7 (Jiang et al., "Mixtral of Experts", 2024: 13B); 3.3 of 30.5 (Qwen3 Technical Report)."""
    assert from_config(PUBLISHED["mistralai/Mixtral-8x7B-v0.1"][0]).active_parameters == 12_879_925_248
    assert from_config(PUBLISHED["Qwen/Qwen3-30B-A3B"][0]).active_parameters == pytest.approx(3.3e9, rel=0.02)
    dense = from_config(PUBLISHED["openai-community/gpt2"][0])
    assert dense.active_parameters == dense.parameters


SMALL = {"layers": 2, "hidden": 64, "heads": 4, "vocabulary": 100, "sequence": 16}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layers": 0}, "layers: a whole number, 1 or more"),
        ({"hidden": 64.0}, "hidden: a whole number"),
        ({"heads": 5}, "not a multiple of 5 heads"),
        ({"kv_heads": 3}, "kv_heads: 4 query heads"),
        ({"activation": "swigl"}, "did you mean 'swiglu'"),
        ({"experts": 4}, "experts_per_token: a router chooses"),
        ({"experts": 4, "experts_per_token": 5}, "experts_per_token"),
        ({"expert_ffn": 8}, "has no effect without experts"),
        ({"bias": True, "qkv_bias": True}, "qkv_bias: has no effect"),
    ],
)
def test_dimensions_that_make_no_sense(given, message):
    with pytest.raises(InputError, match=message):
        Transformer(**{**SMALL, **given})


def test_heads_of_a_width_of_their_own():
    found = Transformer(**{**SMALL, "heads": 5, "head_dim": 16, "kv_heads": 1, "qk_norm": True})
    shapes = {one.name: one.shape for one in found.block_weights("b")}
    assert (shapes["b.q.weight"], shapes["b.k.weight"], shapes["b.o.weight"]) == ((80, 64), (16, 64), (64, 80))
    assert shapes["b.q_norm.weight"] == (16,)


def test_configurations_from_a_file(tmp_path):
    config, parameters = PUBLISHED["openai-community/gpt2"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_config(tmp_path).parameters == parameters
    assert read_config(tmp_path / "config.json").sequence == 1024


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "lama"}, "model_type: not the configuration.*did you mean 'llama'"),
        ({"kv_lora_rank": 512}, "kv_lora_rank: a kind of layer"),
        ({"hidden_act": "silux"}, "hidden_act: no such activation"),
        ({"attention_bias": True}, "attention_bias: biases in one half"),
        ({"model_type": "mistral", "sliding_window": 1024}, "window of 1024 tokens"),
        ({"num_key_value_heads": 5}, "config.json:1: num_key_value_heads: 32 query heads"),
    ],
)
def test_configurations_of_other_models_are_refused(change, message, tmp_path):
    config = {**PUBLISHED["meta-llama/Llama-2-7b-hf"][0], **change}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=message):
        read_config(tmp_path)


def test_files_that_are_no_configuration(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_config(tmp_path / "none.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="invalid JSON"):
        read_config(tmp_path)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InputError, match="not the configuration"):
        read_config(tmp_path)
    config = dict(PUBLISHED["meta-llama/Llama-2-7b-hf"][0])
    del config["hidden_size"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="hidden_size: is missing"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"num_attention_heads": 7}, "num_attention_heads", "hidden_size = 64 is not a multiple"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "expected: 2 or 4"),
        ({"vocab_size": 0}, "vocab_size", "a whole number, 1 or more"),
        ({"hidden_size": "64"}, "hidden_size", "a whole number is expected"),
        ({"num_experts": 4, "num_experts_per_tok": 5}, "num_experts_per_tok", "1 to 4"),
        ({"sliding_window": "all", "use_sliding_window": True}, "sliding_window", "a whole number is expected"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_told_by_its_own_keys(tmp_path, change, key, words):
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    config |= {"intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 16, **change}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config, indent=1))
    with pytest.raises(InputError) as caught:
        read_config(file)
    (problem,) = caught.value.problems
    assert (problem.file, problem.key) == (str(file), key)
    assert problem.line == list(config).index(key) + 2
    assert words in str(problem)
