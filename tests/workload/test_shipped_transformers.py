"""Transformers that come with simperf: their published numbers of parameters, and arithmetic by the usual formulas."""

import math
from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.workload import zoo
from simperf.workload.transformers import Transformer, from_config
from simperf.workload.transformers.flops import RECOMPUTATIONS, attention_flops, forward_flops, step_flops
from simperf.workload.transformers.shipped import shipped_transformers

#: parameters where they are published exactly: model cards of huggingface.co (safetensors), tables of llm-foundry
EXACT = {
    "bloom-176b": 176_247_271_424,
    "deepseek-v2": 235_741_434_880,
    "gpt-oss-120b": 116_829_156_672,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "mpt-1b": 1_315_950_592,
    "mpt-3b": 2_651_837_440,
    "mpt-7b": 6_658_859_008,
    "mpt-13b": 12_853_954_560,
    "mpt-30b": 29_975_214_080,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-32b": 32_762_123_264,
    "qwen3-235b-a22b": 235_093_634_560,
    "tinyllama-1.1b": 1_100_048_384,
}
#: in billions, as their papers round them: all, and those that a token meets where they say so
ROUNDED = {
    "gpt3-175b": (175, None, 0.005),
    "megatron-22b": (22, None, 0.01),
    "megatron-175b": (175, None, 0.005),
    "megatron-530b": (530, None, 0.005),
    "megatron-1t": (1008, None, 0.005),
    "mpt-70b": (65, None, 0.01),
    "nemotron4-15b": (12.5 + 3.2, None, 0.01),
    "nemotron4-340b": (331.6 + 9.4, None, 0.001),
    "deepseek-v2": (236, 21, 0.02),
    "deepseek-v3": (671 + 11.5, None, 0.005),
    "kimi-k2": (1040, 32, 0.03),
    "qwen3-235b-a22b": (235, 22, 0.02),
    "gpt-oss-120b": (116.83, 5.13 + 0.58, 0.01),  # its paper leaves the embedding out of what a token meets
    "grok-1": (314, None, 0.01),
}


def test_every_one_is_compared_with_what_is_published():
    shipped = shipped_transformers()
    assert set(shipped) == {*EXACT, *ROUNDED}
    assert all(one.name == name and one.title and one.source for name, one in shipped.items())


@pytest.mark.parametrize("name", EXACT)
def test_exact_numbers_of_parameters(name):
    assert shipped_transformers()[name].parameters == EXACT[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_numbers_of_parameters(name):
    model, (all_of_them, active, rel) = shipped_transformers()[name], ROUNDED[name]
    assert model.parameters / 1e9 == pytest.approx(all_of_them, rel=rel)
    if active is not None:
        assert model.active_parameters / 1e9 == pytest.approx(active, rel=rel)


def test_without_further_prediction_deepseek_v3_is_that_of_its_card():
    model = replace(shipped_transformers()["deepseek-v3"], mtp=0)
    assert model.parameters == 671_026_419_200
    assert model.active_parameters / 1e9 == pytest.approx(37, rel=0.02)


@pytest.mark.parametrize("name", ["bloom-176b", "deepseek-v2", "gpt-oss-120b", "nemotron4-15b"])
def test_weights_by_name_are_all_parameters(name):
    model = replace(shipped_transformers()[name], layers=3, window_layers=0, window=0)
    weights = list(model.weights())
    assert sum(math.prod(one.shape) for one in weights) == model.parameters
    assert len({one.name for one in weights}) == len(weights)


@pytest.mark.parametrize("name", ["megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t"])
def test_arithmetic_of_a_step_by_the_formulas_of_megatron(name):
    """72 L s h² (1 + s / 6h + V / 12hL), and 96 for 72 and 16 for 12 with full recomputation (SC 2021, MLSys 2023)."""
    model = shipped_transformers()[name]
    layers, s, h, v = model.layers, model.sequence, model.hidden, model.vocabulary
    plain = 72 * layers * s * h**2 * (1 + s / (6 * h) + v / (12 * h * layers))
    full = 96 * layers * s * h**2 * (1 + s / (6 * h) + v / (16 * h * layers))
    assert step_flops(model) == pytest.approx(plain, rel=1e-12)
    assert step_flops(model, recompute="full") == pytest.approx(full, rel=1e-12)
    selective = step_flops(model, recompute="selective") - step_flops(model)
    assert selective == attention_flops(model) == 4 * layers * s**2 * h


def test_a_traced_model_has_the_same_products():
    """The traced step counts what the causal mask leaves."""
    for name in ("llama2-7b", "gpt2-xl"):
        model = shipped_transformers().get(name) or Transformer(
            layers=48, hidden=1600, heads=25, vocabulary=50257, sequence=1024, activation="gelu", norm="layer",
            positions="learned", bias=True, tied=True,
        )  # fmt: skip
        assert 2 * zoo.load(name).macs() == pytest.approx(forward_flops(model, causal=True), rel=2e-3)


def test_windows_and_masks_take_attention_away():
    model = shipped_transformers()["gpt-oss-120b"]
    whole = replace(model, window=0, window_layers=0)
    assert attention_flops(whole, causal=True) == attention_flops(whole) / 2
    near = replace(model, window_layers=model.layers)
    assert attention_flops(near) == attention_flops(whole) * model.window / model.sequence
    assert attention_flops(model) == (attention_flops(whole) + attention_flops(near)) / 2
    wide = replace(near, window=10**6)
    assert attention_flops(wide, causal=True) == attention_flops(whole, causal=True)


def test_tokens_meet_the_experts_that_are_chosen():
    model = shipped_transformers()["mixtral-8x7b"]
    ends = 2 * model.vocabulary * model.hidden
    norms = (2 * model.layers + 1) * model.hidden
    products = model.active_parameters - ends / 2 - norms
    assert forward_flops(model) - attention_flops(model) == 2 * model.sequence * products


def test_recomputation_that_there_is_not():
    with pytest.raises(InputError, match="did you mean 'full'"):
        step_flops(shipped_transformers()["llama3-8b"], recompute="fulll")
    assert RECOMPUTATIONS == ("none", "selective", "selective-op", "full")


def test_the_zoo_makes_a_step_of_those_whose_kernels_are_known():
    assert zoo.load("llama3-8b").parameter_count == EXACT["llama3-8b"]
    with pytest.raises(InputError, match="kv_rank"):
        zoo.load("deepseek-v3")


DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
    "max_position_embeddings": 4096, "moe_layer_freq": 1, "topk_method": "noaux_tc", "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False, "attention_bias": False, "hidden_act": "silu",
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 128,
    "num_experts_per_tok": 4, "vocab_size": 201088, "max_position_embeddings": 4096, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18, "attention_bias": True, "hidden_act": "silu",
}  # fmt: skip
NEMOTRON = {
    "model_type": "nemotron", "num_hidden_layers": 32, "hidden_size": 6144, "num_attention_heads": 48,
    "num_key_value_heads": 8, "intermediate_size": 24576, "vocab_size": 256000, "max_position_embeddings": 4096,
    "hidden_act": "relu2",
}  # fmt: skip
BLOOM = {"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112, "vocab_size": 250880}


@pytest.mark.parametrize(
    ("config", "name"),
    [(DEEPSEEK_V3, "deepseek-v3"), (GPT_OSS, "gpt-oss-120b"), (NEMOTRON, "nemotron4-15b"), (BLOOM, "bloom-176b")],
)
def test_configurations_are_the_shipped_models(config, name):
    shipped = shipped_transformers()[name]
    found = from_config(config)
    assert found.parameters == shipped.parameters
    assert forward_flops(found) == forward_flops(shipped)


def test_latent_attention_is_no_llama_s():
    with pytest.raises(InputError, match="kv_lora_rank: a kind of layer"):
        from_config({**DEEPSEEK_V3, "model_type": "llama"})
    with pytest.raises(InputError, match="hidden_act: another activation"):
        from_config({**NEMOTRON, "hidden_act": "gelu"})


SMALL = {"layers": 2, "hidden": 64, "heads": 4, "vocabulary": 100, "sequence": 16}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rope_dim": 16}, "rope_dim: has no effect without kv_rank"),
        ({"kv_rank": 16, "kv_heads": 2}, "kv_heads: latent attention"),
        ({"kv_rank": 16, "qk_norm": True}, "qk_norm: has no effect with latent attention"),
        ({"window": 8}, "window_layers: a window holds"),
        ({"window": 8, "window_layers": 3}, "window_layers: a window holds"),
        ({"shared_experts": 1}, "shared_experts: has no effect without experts"),
        ({"experts": 4, "experts_per_token": 1, "dense_layers": 3}, "dense_layers: there are 2 layers"),
        ({"norm_bias": False}, "norm_bias: has no effect"),
        ({"router_bias": True}, "router_bias: has no effect without experts"),
        ({"title": 3}, "title: a text is expected"),
    ],
)
def test_kinds_of_layers_that_make_no_sense(given, message):
    with pytest.raises(InputError, match=message):
        Transformer(**{**SMALL, **given})
