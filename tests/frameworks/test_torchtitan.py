"""TOML files of torchtitan become the scenario of the job that they configure."""

import pytest

import simperf
from simperf.errors import InputError
from simperf.frameworks import import_job

BASE = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 4096
[parallelism]
data_parallel_shard_degree = 8
[activation_checkpoint]
mode = "full"
"""


def imported(tmp_path, text=BASE, **keywords):
    path = tmp_path / "job.toml"
    path.write_text(text)
    return import_job(path, on="dgx-h100", **keywords)


def test_fully_sharded(tmp_path):
    job = imported(tmp_path)
    layout, program = job.scenario.parameters["layout"], job.tables["program"]
    assert (layout.dp, layout.sharding, layout.dp_replicate) == (8, "zero-3", 1)
    assert (program["batch"], program["microbatch"], program["recompute"]) == (16, 2, "full")
    assert program["stack"] == "torch-fsdp2"
    assert job.scenario.parameters["model"].sequence == 4096
    assert job.framework == "torchtitan"


def test_it_runs(tmp_path):
    job = imported(tmp_path, BASE + "[compile]\nenable = true\n")
    assert job.tables["program"]["stack"] == "torch-fsdp2-compiled-2025"
    assert simperf.run(job.scenario, record=False).metrics["GPUs"].value == 8


def test_weights_in_fp32(tmp_path):
    text = BASE.replace("seq_len = 4096", 'seq_len = 4096\nmixed_precision_param = "float32"')
    program = imported(tmp_path, text).tables["program"]
    assert (program["precision"], program["attention_library"]) == ("fp32", "auto")


def test_replicas_of_shards(tmp_path):
    job = imported(tmp_path, BASE.replace("shard_degree = 8", "shard_degree = 8\ndata_parallel_replicate_degree = 4"))
    layout = job.scenario.parameters["layout"]
    assert (layout.dp, layout.dp_replicate, layout.sharding) == (32, 4, "zero-3")


def test_replicas_alone(tmp_path):
    text = BASE.replace("shard_degree = 8", "shard_degree = 1\ndata_parallel_replicate_degree = 8")
    job = imported(tmp_path, text.replace("8B", "1B"))
    assert job.scenario.parameters["layout"].sharding == "none"
    assert job.tables["program"]["gradient_bucket"] == "100 MiB"


def test_left_over_ranks_share_the_weights(tmp_path):
    text = BASE.replace("shard_degree = 8", "shard_degree = -1\ntensor_parallel_degree = 4")
    assert imported(tmp_path, text, gpus=64).scenario.parameters["layout"].dp == 16
    assert "assumed: 8 GPUs" in imported(tmp_path, text).text


@pytest.mark.parametrize(
    ("mode", "key", "value"),
    [
        ('mode = "none"', "recompute", "none"),
        ('mode = "selective"\nselective_ac_option = "op"', "recompute", "selective-op"),
        ('mode = "selective"\nselective_ac_option = "2"', "recompute_layers", 16),
    ],
)
def test_recomputation(tmp_path, mode, key, value):
    assert imported(tmp_path, BASE.replace('mode = "full"', mode)).tables["program"][key] == value


def test_a_pipeline_counts_embedding_and_head_as_layers(tmp_path):
    text = BASE.replace(
        "shard_degree = 8", 'shard_degree = 2\npipeline_parallel_degree = 4\npipeline_parallel_schedule = "1F1B"'
    )
    job = imported(tmp_path, text.replace("local_batch_size = 2", "local_batch_size = 8"))
    assert job.tables["program"]["stage_layers"] == [8, 9, 8, 7]
    assert job.tables["program"]["microbatch"] == 1
    assert "pipeline_runs" not in job.tables["program"]
    often = text.replace("local_batch_size = 2", "local_batch_size = 8\nglobal_batch_size = 64")
    assert imported(tmp_path, often).tables["program"]["pipeline_runs"] == 4
    for count in (0, 3):
        lines = f"[experimental]\npipeline_parallel_microbatches = {count}\n"
        with pytest.raises(InputError, match="no multiple"):
            imported(tmp_path, lines + text.replace("local_batch_size = 2", "local_batch_size = 8"))
    split = text.replace("1F1B", "Interleaved1F1B").replace("local_batch_size = 2", "local_batch_size = 8")
    points = ", ".join(f'"layers.{4 * n}"' for n in range(1, 8))
    job = imported(tmp_path, split.replace("[activation", f"pipeline_parallel_split_points = [{points}]\n[activation"))
    assert job.tables["program"]["chunks"] == 2
    assert "stage_layers" not in job.tables["program"]


@pytest.mark.parametrize(
    ("schedule", "each", "chunks"),
    [("Interleaved1F1B", 4, None), ("Interleaved1F1B", 3, 3), ("1F1B", 9, 1), ("1F1B", 4, None), ("1F1B", 5, None)],
)
def test_layers_of_a_part_make_parts_that_the_stages_take(tmp_path, schedule, each, chunks):
    """34 with embedding and head on 4 stages: 9 parts of 4, 12 of 3, 4 of 9, 7 of 5."""
    degrees = f'2\npipeline_parallel_degree = 4\npipeline_parallel_schedule = "{schedule}"\n'
    text = BASE.replace("shard_degree = 8", f"shard_degree = {degrees}pipeline_parallel_layers_per_stage = {each}")
    text = text.replace("local_batch_size = 2", "local_batch_size = 8")
    if chunks is None:
        with pytest.raises(InputError, match=rf"layers_per_stage: 34 layers.* which 4 stages of {schedule} do not"):
            imported(tmp_path, text)
    else:
        assert imported(tmp_path, text).tables["program"].get("chunks", 1) == chunks


def test_products_in_8_bits_and_asynchronous_tensor_parallelism(tmp_path):
    text = BASE.replace('flavor = "8B"', 'flavor = "8B"\nconverters = "float8"').replace(
        "shard_degree = 8", "shard_degree = 4\ntensor_parallel_degree = 2\nenable_async_tensor_parallel = true"
    )
    text += "[compile]\nenable = true\n[float8]\nenable_fsdp_float8_all_gather = true\n"
    program = imported(tmp_path, text).tables["program"]
    assert (program["product_precision"], program["gathered_precision"]) == ("float8", "fp8")
    assert (program["product_parts"], program["parts_exchange"], program["sequence_parallel"]) == (2, "ring", True)


def test_keys_of_2024(tmp_path):
    text = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nbatch_size = 1\nseq_len = 8192\ncompile = true\n'
    text += "data_parallel_shard_degree = 4\ntensor_parallel_degree = 2\n[experimental]\ncontext_parallel_degree = 2\n"
    layout = imported(tmp_path, text).scenario.parameters["layout"]
    assert (layout.dp, layout.tp, layout.cp) == (4, 2, 2)


def test_what_is_not_understood_is_listed(tmp_path):
    job = imported(tmp_path, BASE + "[mine]\nspeed = 3\n[optimizer]\nname = 'Muon'\nlr = 1e-4\n")
    assert "mine.speed (line 13): not understood (read: '3')" in job.notes
    assert any("Muon" in one for one in job.notes)
    assert "optimizer.lr" in job.without_effect


@pytest.mark.parametrize(
    ("old", "new", "key", "line"),
    [
        ('flavor = "8B"', 'flavor = "9B"', "model.flavor", 4),
        ("= 4096", "= -1", "training.seq_len", 7),
        ("= 4096", '= "long"', "training.seq_len", 7),
        ("shard_degree = 8", "shard_degree = 0", "parallelism.data_parallel_shard_degree", 9),
        ('mode = "full"', 'mode = "some"', "activation_checkpoint.mode", 11),
        ("seq_len", "global_batch_size = 7\nseq_len", "training.global_batch_size", 7),
        (
            "shard_degree = 8",
            "shard_degree = 8\nenable_async_tensor_parallel = true\ntensor_parallel_degree = 2",
            "parallelism.enable_async_tensor_parallel",
            10,
        ),
        (
            "shard_degree = 8",
            "shard_degree = 2\npipeline_parallel_degree = 4\npipeline_parallel_schedule = 'mine'",
            "parallelism.pipeline_parallel_schedule",
            11,
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, old, new, key, line):
    with pytest.raises(InputError) as caught:
        imported(tmp_path, BASE.replace(old, new))
    (found,) = (one for one in caught.value.problems if one.key.startswith(key))
    assert found.line == line
    assert found.file.endswith("job.toml")
    assert found.expected


def test_gpus_that_contradict_the_degrees(tmp_path):
    with pytest.raises(InputError, match="12 GPUs are not the product"):
        imported(tmp_path, gpus=12)
