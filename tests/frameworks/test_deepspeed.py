"""JSON configurations of DeepSpeed become the scenario of the job that they configure."""

import json

import pytest

import simperf
from simperf.errors import InputError
from simperf.frameworks import import_job

BASE = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 5e8},
}
CONFIG = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 1024,
}


def imported(tmp_path, more=None, *, gpus=8, model="llama3.2-1b", **keywords):
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**BASE, **(more or {})}, indent=1))
    return import_job(path, gpus=gpus, model=model, **keywords)


def test_stages(tmp_path):
    job = imported(tmp_path)
    layout, program = job.scenario.parameters["layout"], job.tables["program"]
    assert (layout.dp, layout.sharding) == (8, "zero-2")
    assert (program["batch"], program["microbatch"], program["gradient_bucket"]) == (64, 2, "1000 MB")
    for stage, sharding in ((0, "none"), (1, "zero-1"), (3, "zero-3")):
        job = imported(tmp_path, {"zero_optimization": {"stage": stage}})
        assert job.scenario.parameters["layout"].sharding == sharding


@pytest.mark.parametrize("more", [{}, {"fp16": {"enabled": True}, "bf16": {"enabled": False}}])
@pytest.mark.parametrize("stage", [0, 1])
def test_gradients_without_shards_are_added_in_fp32_in_bf16_alone(tmp_path, more, stage):
    """deepspeed/runtime/engine.py: get_data_types."""
    exchange = {"stage": stage, "overlap_comm": True, "reduce_bucket_size": 1e8}
    program = imported(tmp_path, {**more, "zero_optimization": exchange}).tables["program"]
    wide = not more and not stage
    assert program.get("gradient_precision") == (None if wide else "as-weights")
    assert program["gradient_bucket"] == ("400 MB" if wide else "200 MB")


def test_a_model_by_its_configuration_runs(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    job = imported(tmp_path, model=tmp_path / "config.json")
    assert job.tables["model"]["hidden"] == 512
    assert simperf.run(job.scenario, record=False).metrics["GPUs"].value == 8


def test_the_number_of_gpus_follows_from_the_batch(tmp_path):
    assert imported(tmp_path, {"train_batch_size": 128}, gpus=0).scenario.parameters["layout"].dp == 16


def test_what_is_auto_is_not_given(tmp_path):
    job = imported(tmp_path, {"train_batch_size": "auto", "bf16": {"enabled": "auto"}})
    assert "train_batch_size: auto: not printed" in job.notes
    assert 'precision = "bf16-master"  # not printed: assumed' in job.text


def test_states_on_the_host(tmp_path):
    offload = {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": True}}
    assert imported(tmp_path, {"zero_optimization": offload}).tables["program"]["offload_states"] == "host"
    job = imported(tmp_path, {"zero_optimization": {**offload, "stage": 3}})
    assert any("offload_optimizer" in one for one in job.notes)


def test_shards_inside_of_groups(tmp_path):
    job = imported(tmp_path, {"zero_optimization": {"stage": 3, "mics_shard_size": 4}})
    assert job.scenario.parameters["layout"].dp_replicate == 2


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_parts_of_weights_are_narrow_beside_those_in_fp32(tmp_path, precision):
    """DeepSpeed's estimate of stage 3 has 2 bytes for the first, as 4 for the second and 8 for Adam's states."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    modes = {"bf16": {"enabled": precision == "bf16"}, "fp16": {"enabled": precision == "fp16"}}
    more = {**modes, "zero_optimization": {"stage": 3}}

    def memory(**changes):
        job = imported(tmp_path, more, model=tmp_path / "config.json", changes=changes)
        return job, simperf.run(job.scenario, record=False).metrics["memory"].value

    job, both = memory()
    _, one = memory(**{"program.kept_precision": "fp32"})
    weights, ranks = job.scenario.parameters["model"].parameters, 8
    assert both - one == pytest.approx(2 * weights / ranks, rel=1e-3)


def test_one_part_of_weights_that_stay_in_fp32(tmp_path):
    more = {"bf16": {"enabled": False}, "zero_optimization": {"stage": 3}}
    job = imported(tmp_path, more)
    assert "kept_precision" not in job.tables["program"]
    assert job.tables["program"]["attention_library"] == "auto"


def test_what_is_not_understood_is_listed(tmp_path):
    job = imported(tmp_path, {"mine": {"a": 3}, "optimizer": {"type": "Lion", "params": {"lr": 1e-4}}})
    assert any(one.startswith("mine.a (line ") for one in job.notes)
    assert any("Lion" in one for one in job.notes)
    assert "optimizer.params.lr" in job.without_effect


@pytest.mark.parametrize(
    ("more", "keywords", "key"),
    [
        ({}, {"model": ""}, "model"),
        ({}, {"model": "llama9"}, ""),
        ({"train_batch_size": 100}, {}, "train_batch_size"),
        ({"train_micro_batch_size_per_gpu": 0}, {}, "train_micro_batch_size_per_gpu"),
        ({"zero_optimization": {"stage": 4}}, {}, "zero_optimization.stage"),
        ({"zero_optimization": {"stage": "two"}}, {}, "zero_optimization.stage"),
        ({"fp16": {"enabled": True}}, {}, "bf16.enabled"),
        ({"zero_optimization": {"stage": 3, "mics_shard_size": 3}}, {}, "zero_optimization.mics_shard_size"),
        ({"tensor_parallel": {"autotp_size": 3}}, {}, "tensor_parallel.autotp_size"),
    ],
)
def test_what_contradicts_is_refused(tmp_path, more, keywords, key):
    with pytest.raises(InputError) as caught:
        imported(tmp_path, more, **keywords)
    assert any(one.key.startswith(key) and one.expected for one in caught.value.problems), caught.value


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": 1, "a": 2}', '{"zero_optimization": ' * 100])
def test_wrong_files(tmp_path, text):
    path = tmp_path / "job.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"job\.json"):
        import_job(path, model="llama3.2-1b")


def test_a_model_for_a_framework_that_has_one(tmp_path):
    with pytest.raises(InputError, match="has no effect"):
        import_job(["--num-layers", "2"], model="llama3-8b")


def test_the_sequence_that_is_assumed_is_told(tmp_path):
    job = imported(tmp_path)
    assert job.tables["model"]["sequence"] == 131072
    assert any("131,072 tokens" in one and "--set model.sequence=N" in one for one in job.notes)
    assert "# assumed: the 131,072 tokens" in job.text
    job = imported(tmp_path, changes={"model.sequence": 2048})
    assert job.tables["model"]["sequence"] == 2048
    assert not any("model.sequence" in one for one in job.notes)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert any("1,024 tokens" in one for one in imported(tmp_path, model=tmp_path / "config.json").notes)
