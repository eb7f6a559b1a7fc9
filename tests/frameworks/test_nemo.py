"""YAML files and key=value words of NeMo become the scenario of the job that they configure."""

import time

import pytest

from simperf.errors import InputError
from simperf.frameworks import import_job
from simperf.frameworks.nemo import _typed

RECIPE = """
_target_: nemo.collections.llm.api.pretrain
data: {global_batch_size: 128, micro_batch_size: 1, seq_length: 4096, paths: &paths [a, b]}
more: *paths
model:
  config:
    _target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B
    num_layers: 16
    cross_entropy_loss_fusion: true
    cross_entropy_fusion_impl: te
optim:
  config: {bf16: true, lr: 3.0e-4, optimizer: adam, use_distributed_optimizer: true}
trainer:
  devices: 8
  num_nodes: 2
  mine: 5
  plugins: {precision: bf16-mixed, fp8: hybrid, fp8_recipe: tensorwise}
  strategy:
    context_parallel_size: 2
    virtual_pipeline_model_parallel_size: null
    ddp: {overlap_grad_reduce: true, overlap_param_gather: true, grad_reduce_in_fp32: true}
"""
CONFIGURATION = """
trainer: {devices: 8, num_nodes: 4, precision: bf16}
model:
  micro_batch_size: 4
  global_batch_size: 64
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  encoder_seq_length: 2048
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 24
  hidden_size: 2048
  ffn_hidden_size: 5504
  num_attention_heads: 16
  activation: fast-swiglu
  normalization: rmsnorm
  bias: false
  activations_checkpoint_granularity: full
  activations_checkpoint_method: block
  activations_checkpoint_num_layers: 4
  sequence_parallel: true
  optim: {name: distributed_fused_adam, lr: 2e-4}
"""


def imported(tmp_path, text, **keywords):
    pytest.importorskip("yaml")
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return import_job(path, on="dgx-h100", **keywords)


def test_a_recipe(tmp_path):
    job = imported(tmp_path, RECIPE)
    model, layout, program = job.tables["model"], job.scenario.parameters["layout"], job.tables["program"]
    assert (model["layers"], model["hidden"], model["ffn"], model["sequence"]) == (16, 4096, 14336, 4096)
    assert (layout.cp, layout.dp, layout.sharding) == (2, 8, "zero-1")
    assert (program["batch"], program["microbatch"], program["precision"]) == (128, 1, "bf16-master")
    assert (program["product_precision"], program["cross_entropy"]) == ("fp8-current", "in-place")
    assert program["overlap_weights"] is True
    assert "hidden = 4096  # of Llama3Config8B" in job.text
    assert any(one.startswith("trainer.mine (line ") for one in job.notes)


@pytest.mark.parametrize("name", ["distributed_fused_adam", "mcore_distributed_optim"])
def test_distributed_optimizers_share_their_states(tmp_path, name):
    job = imported(tmp_path, CONFIGURATION.replace("distributed_fused_adam", name))
    assert job.scenario.parameters["layout"].sharding == "zero-1"
    assert not any(name in one for one in job.notes)


def test_a_configuration_with_references(tmp_path):
    job = imported(tmp_path, CONFIGURATION)
    model, layout, program = job.tables["model"], job.scenario.parameters["layout"], job.tables["program"]
    assert (model["activation"], model["norm"], model["bias"], model["sequence"]) == ("swiglu", "rms", False, 2048)
    assert (layout.tp, layout.pp, layout.dp, layout.sharding) == (4, 2, 4, "zero-1")
    assert (program["recompute"], program["recompute_layers"], program["sequence_parallel"]) == ("full", 4, True)


@pytest.mark.parametrize(("fp8", "recipe"), [("false", None), ("true", "fp8-delayed")])
def test_the_first_version_switches_fp8_and_selective_recomputation_as_its_recipes_do(tmp_path, fp8, recipe):
    text = CONFIGURATION.replace("granularity: full", "granularity: selective") + f"  fp8: {fp8}\n  fp8_hybrid: true\n"
    program = imported(tmp_path, text).tables["program"]
    assert (program["recompute"], program.get("product_precision")) == ("selective", recipe)
    assert "recompute_layers" not in program


def test_gradients_overlap_where_the_first_version_says_so(tmp_path):
    assert "gradient_bucket" not in imported(tmp_path, CONFIGURATION).tables["program"]
    job = imported(tmp_path, CONFIGURATION.replace("lr: 2e-4", "overlap_grad_sync: true"))
    assert "gradient_bucket" in job.tables["program"]
    assert not job.notes


def test_words_say_the_same_as_a_file(tmp_path):
    words = "model._target_=Llama3Config8B data.micro_batch_size=1 data.global_batch_size=64 data.seq_length=4096"
    words += " trainer.devices=8 trainer.plugins.precision=bf16-mixed +model.tensor_model_parallel_size=2"
    job = import_job(words.split(), on="dgx-h100")
    assert job.framework == "nemo"
    text = "model: {_target_: a.Llama3Config8B, tensor_model_parallel_size: 2}\n"
    text += "data: {micro_batch_size: 1, global_batch_size: 64, seq_length: 4096}\n"
    text += "trainer: {devices: 8, plugins: {precision: bf16-mixed}}\n"
    from_file = imported(tmp_path, text)
    assert {**job.tables, "scenario": {}} == {**from_file.tables, "scenario": {}}


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        ("global_batch_size: 64", "global_batch_size: 63", "model.global_batch_size", 5),
        ("num_layers: 24", "num_layers: many", "model.num_layers", 10),
        ("normalization: rmsnorm", "normalization: mine", "model.normalization", 15),
        ("precision: bf16", "precision: int3", "trainer.precision", 2),
        ("tensor_model_parallel_size: 4", "tensor_model_parallel_size: 5", "model.tensor_model_parallel_size", 6),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, old, new, key, line):
    with pytest.raises(InputError) as caught:
        imported(tmp_path, CONFIGURATION.replace(old, new))
    found = [one for one in caught.value.problems if one.key.startswith((key, "trainer.devices"))]
    assert found, caught.value
    assert found[0].line in (line, 2)
    assert found[0].expected


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} {{b: *a{n - 1}, c: *a{n - 1}, d: *a{n - 1}, e: *a{n - 1}}}\n" for n in range(1, 40)
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        "{" * 5000,
        "[" * 5000,
        BOMB,
        "a: &a [*a]",
        "!!python/object/apply:os.system ['true']",
        "a: 1\nb",
        "- 1",
    ],
)
def test_hostile_files_end_soon_with_a_message(tmp_path, text):
    began = time.monotonic()
    with pytest.raises(InputError):
        imported(tmp_path, text)
    assert time.monotonic() - began < 20


def test_lists_among_arguments():
    """Of words, without their depth: NeMo has none that is nested."""
    assert _typed("[core_attn, mlp]") == ["core_attn", "mlp"]
    assert _typed("[" * 5000 + "2" + "]" * 5000) == [2]
    assert _typed("[]") == []


def test_a_class_of_models_that_is_not_known_is_named_where_its_dimensions_are_missing(tmp_path):
    path = tmp_path / "job.yaml"
    text = "model:\n  config:\n    _target_: nemo.collections.llm.FooConfig7B\n    seq_length: 4096\n"
    path.write_text(f"{text}trainer:\n  devices: 8\ndata:\n  global_batch_size: 8\n  micro_batch_size: 1\n")
    with pytest.raises(InputError, match=r"job.yaml:3: model.config._target_: no dimensions are known of"):
        import_job(path, framework="nemo", on="dgx-h100")
