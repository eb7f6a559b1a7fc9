"""Arguments of Megatron-LM become the scenario of the job that they start."""

import re

import pytest

import simperf
from simperf.errors import InputError
from simperf.frameworks import import_job
from simperf.frameworks.options import option_table
from simperf.scenario import load_scenario

BASE = {
    "--num-layers": "16",
    "--hidden-size": "2048",
    "--num-attention-heads": "16",
    "--seq-length": "1024",
    "--max-position-embeddings": "1024",
    "--micro-batch-size": "1",
    "--global-batch-size": "32",
    "--bf16": None,
}
LLAMA = {
    "--swiglu": None,
    "--normalization": "RMSNorm",
    "--position-embedding-type": "rope",
    "--disable-bias-linear": None,
    "--untie-embeddings-and-output-weights": None,
    "--hidden-dropout": "0",
    "--attention-dropout": "0",
    "--vocab-size": "32000",
}


def imported(more=None, *, gpus=8, without=(), **keywords):
    given = {name: value for name, value in {**BASE, **(more or {})}.items() if name not in without}
    words = [part for name, value in given.items() for part in (name, *(value or "").split())]
    return import_job(words, gpus=gpus, on="dgx-h100", **keywords)


def problems(more=None, **keywords):
    with pytest.raises(InputError) as caught:
        imported(more, **keywords)
    assert caught.value.exit_code == 2
    assert all(one.expected and one.key for one in caught.value.problems), caught.value
    return {one.key.partition(" ")[0]: one for one in caught.value.problems}


def test_a_gpt_by_its_defaults():
    job = imported()
    model = job.scenario.parameters["model"]
    assert (model.layers, model.hidden, model.heads, model.ffn) == (16, 2048, 16, 8192)
    assert (model.norm, model.positions, model.activation) == ("layer", "learned", "gelu")
    assert (model.bias, model.tied, model.dropout) == (True, True, True)
    assert model.vocabulary == 50304  # 50,257 of GPT-2 to a multiple of 128
    assert "assumed is GPT-2's vocabulary" in job.text


def test_a_llama():
    job = imported({**LLAMA, "--group-query-attention": None, "--num-query-groups": "4"})
    model = job.scenario.parameters["model"]
    assert (model.norm, model.positions, model.activation, model.kv_heads) == ("rms", "rotary", "swiglu", 4)
    assert (model.bias, model.tied, model.dropout, model.vocabulary) == (False, False, False, 32000)
    assert model.ffn == 5440  # two thirds of 8192, down to a multiple of 64


def test_the_vocabulary_is_padded_by_tensor_parallelism():
    job = imported({**LLAMA, "--tensor-model-parallel-size": "8"})
    assert job.tables["model"]["vocabulary"] == 32768


def test_ranks_batch_and_sharding():
    more = {"--tensor-model-parallel-size": "2", "--pipeline-model-parallel-size": "2", "--sequence-parallel": None}
    job = imported({**more, "--use-distributed-optimizer": None, "--overlap-grad-reduce": None}, gpus=16)
    layout = job.scenario.parameters["layout"]
    assert (layout.tp, layout.pp, layout.dp, layout.sharding) == (2, 2, 4, "zero-1")
    assert job.tables["program"]["gradient_bucket"] == "160 MB"
    assert job.tables["program"]["sequence_parallel"] is True
    assert job.tables["machine"] == {
        "kind": "cluster",
        "server": "dgx-h100",
        "count": 2,
        "fabric": {"type": "rail", "link": "infiniband-ndr", "switch": "infiniband-ndr-switch"},
    }


@pytest.mark.parametrize(
    ("more", "key", "value"),
    [
        ({"--recompute-activations": None}, "recompute", "selective"),
        ({"--recompute-granularity": "full", "--recompute-method": "uniform"}, "recompute", "full"),
        (
            {"--recompute-granularity": "full", "--recompute-method": "block", "--recompute-num-layers": "4"},
            "recompute_layers",
            4,
        ),
        ({"--fp8-format": "hybrid"}, "product_precision", "fp8-delayed"),
        ({"--fp8-format": "hybrid", "--fp8-recipe": "blockwise"}, "product_precision", "fp8-block"),
        ({"--grad-reduce-in-bf16": None}, "gradient_precision", "as-weights"),
        ({"--clip-grad": "0"}, "clip", False),
        ({"--cross-entropy-loss-fusion": None}, "cross_entropy", "fused"),
        ({"--no-bias-dropout-fusion": None}, "residual_kernels", "unfused"),
        ({"--context-parallel-size": "2", "--cp-comm-type": "a2a"}, "context_exchange", "all-to-all"),
    ],
)
def test_an_option_has_its_effect(more, key, value):
    assert imported({**LLAMA, **more}).tables["program"][key] == value


def test_virtual_stages():
    more = {"--pipeline-model-parallel-size": "4", "--num-layers-per-virtual-pipeline-stage": "2"}
    program = imported(more).tables["program"]
    assert (program["schedule"], program["chunks"], program["overlap_messages"]) == ("interleaved", 2, True)
    ends = {"--pipeline-model-parallel-size": "4", "--decoder-first-pipeline-num-layers": "1"}
    assert imported(ends | {"--num-layers": "13"}).tables["program"]["stage_layers"] == [1, 4, 4, 4]


def test_experts():
    more = {**LLAMA, "--num-experts": "8", "--moe-router-topk": "2", "--moe-grouped-gemm": None}
    more |= {"--expert-model-parallel-size": "4", "--moe-ffn-hidden-size": "1024", "--moe-layer-freq": "([0]*2+[1]*14)"}
    more |= {"--moe-token-dispatcher-type": "alltoall", "--moe-shared-expert-intermediate-size": "2048"}
    job = imported(more)
    model = job.scenario.parameters["model"]
    assert (model.experts, model.experts_per_token, model.expert_ffn) == (8, 2, 1024)
    assert (model.dense_layers, model.shared_experts) == (2, 2)
    assert job.scenario.parameters["layout"].ep == 4
    assert not job.notes


def test_latent_attention():
    more = {**LLAMA, "--multi-latent-attention": None, "--q-lora-rank": "512", "--kv-lora-rank": "256"}
    model = imported(more).scenario.parameters["model"]
    assert (model.q_rank, model.kv_rank, model.rope_dim, model.value_dim, model.head_dim) == (512, 256, 64, 128, 128)


def test_a_run_of_the_outcome_is_that_of_the_scenario_by_hand(tmp_path):
    job = imported(LLAMA)
    job.save(tmp_path / "job.toml")
    from_file = load_scenario(tmp_path / "job.toml")
    assert from_file.parameters == job.scenario.parameters
    by_hand = {
        "machine": {"use": "dgx-h100"},
        "frontend": {"use": "pytorch"},
        "model": {"layers": 16, "hidden": 2048, "heads": 16, "ffn": 5440, "vocabulary": 32000, "sequence": 1024},
        "layout": {"dp": 8},
        "program": {
            "use": "train",
            "strategy": "model-parallel",
            "stack": "megatron-core",
            "precision": "bf16-master",
            "batch": 32,
            "steps": 2,
        },
    }
    expected = simperf.run(simperf.make_scenario(by_hand), record=False)
    assert simperf.run(from_file, record=False).time == expected.time


def test_what_is_assumed_has_a_comment():
    text = imported(gpus=8).text
    for key in ("stack", "vocabulary", "norm", "recompute", "dropout"):
        assert re.search(rf"^{key} = [^#\n]+  # ", text, re.MULTILINE), key
    for key in ("layers", "hidden", "microbatch", "batch"):
        assert re.search(rf"^{key} = [^#\n]+$", text, re.MULTILINE), key


@pytest.mark.parametrize(
    "more",
    [
        {"--cuda-graph-impl": "local"},
        {"--cuda-graph-impl": "transformer_engine", "--cuda-graph-scope": "attn mlp"},
        {"--enable-cuda-graph": None, "--cuda-graph-warmup-steps": "3"},
        {"--external-cuda-graph": None, "--cuda-graph-scope": "full"},
    ],
    ids=" ".join,
)
def test_captured_layers(more):
    job = imported(more)
    assert job.scenario.parameters["captured"] == "layers"
    assert not any("graph" in one for one in job.notes)
    assert "captured" not in imported().tables["program"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"--cuda-graph-impl": "local", "--cuda-graph-scope": "attn"}, "attn is captured, not a whole layer"),
        ({"--cuda-graph-impl": "full_iteration"}, "a whole iteration is captured"),
        ({"--cuda-graph-impl": "local", "--num-experts": "8"}, "experts take any number of rows"),
        ({"--enable-cuda-graph": None, "--recompute-activations": None}, "layers are computed again"),
    ],
)
def test_graphs_of_something_else_than_layers_are_noted(more, why):
    job = imported(more)
    assert "captured" not in job.tables["program"]
    (note,) = [one for one in job.notes if "graph" in one]
    assert "not simulated, each kernel is launched by itself: " + why in note


def test_a_scope_without_graphs_has_no_effect():
    assert any("--cuda-graph-scope: has no effect" in one for one in imported({"--cuda-graph-scope": "attn"}).notes)


def test_what_is_not_played_or_not_understood_is_listed():
    job = imported({"--tp-comm-overlap": None, "--my-own-flag": "3", "--lr": "1e-4", "--optimizer": "muon"})
    assert any(one.startswith("--tp-comm-overlap: not simulated") for one in job.notes)
    assert any(one == "--my-own-flag: not understood (read: '3')" for one in job.notes)
    assert any("muon" in one for one in job.notes)
    assert job.without_effect == ("--lr",)
    assert all(f"# - {one}" in job.text for one in job.notes)


@pytest.mark.parametrize(
    ("more", "keywords", "key"),
    [
        ({}, {"without": ("--num-layers",)}, "--num-layers"),
        ({}, {"without": ("--micro-batch-size",)}, "--micro-batch-size"),
        ({"--num-layers": "many"}, {}, "--num-layers"),
        ({"--bf16": "true"}, {}, "--bf16"),
        ({"--fp16": None}, {}, "--bf16"),
        ({"--tensor-model-parallel-size": "3"}, {}, "--tensor-model-parallel-size"),
        ({"--tensor-model-parallel-size": "0"}, {}, "--tensor-model-parallel-size"),
        ({"--global-batch-size": "12"}, {}, "--global-batch-size"),
        ({"--num-query-groups": "4"}, {}, "--num-query-groups"),
        ({"--seq-length": "4096"}, {}, "--seq-length"),
        ({"--expert-model-parallel-size": "2"}, {}, "--expert-model-parallel-size"),
        ({"--swiglu": None, "--squared-relu": None}, {}, "--squared-relu"),
        ({"--recompute-granularity": "full"}, {}, "--recompute-method"),
        ({"--recompute-granularity": "some"}, {}, "--recompute-granularity"),
        ({"--normalization": "BatchNorm"}, {}, "--normalization"),
        ({"--overlap-param-gather": None}, {}, "--overlap-param-gather"),
        ({"--tokenizer-type": "HuggingFaceTokenizer"}, {}, "--tokenizer-type"),
        ({"--hybrid-override-pattern": "M*"}, {}, "--hybrid-override-pattern"),
        ({"--num-layers": "18", "--pipeline-model-parallel-size": "4"}, {}, "--pipeline-model-parallel-size"),
        (
            {"--pipeline-model-parallel-size": "0", "--num-layers-per-virtual-pipeline-stage": "1"},
            {},
            "--pipeline-model-parallel-size",
        ),
        ({"--hidden-size": "2050"}, {}, "--num-attention-heads"),
        ({"--pipeline-model-parallel-layout": "Et*3"}, {}, "--pipeline-model-parallel-layout"),
    ],
)
def test_what_contradicts_is_refused_by_its_option(more, keywords, key):
    found = problems(more, **keywords)
    assert key in found or any(key in one.key for one in found.values()), found


def test_all_that_is_wrong_is_told_at_once():
    found = problems({"--num-layers": "x", "--global-batch-size": "12", "--fp16": None})
    assert {"--num-layers", "--global-batch-size", "--bf16"} <= set(found)


def test_a_change_goes_before_the_options():
    job = imported({"--tokenizer-type": "HuggingFaceTokenizer"}, changes={"model.vocabulary": 1000})
    assert job.tables["model"]["vocabulary"] == 1000
    assert "vocabulary = 1000  # given by --set" in job.text


def test_what_does_not_fit_is_a_note():
    job = imported({"--num-layers": "160", "--hidden-size": "16384"})
    assert any(one.startswith("does not fit") for one in job.notes)


def test_the_table_has_no_pattern_that_hides_an_option():
    table = option_table("megatron")
    assert len(table.names) == sum(len(one.arguments) for one in table.options.values())
    kinds = {one.kind for one in table.options.values()}
    assert kinds <= {"int", "float", "text", "texts", "on", "off"}
    assert all(one.default is (one.kind == "off") for one in table.options.values() if one.kind in ("on", "off"))
