"""Reader of published cases of large models: other models, GPUs and layouts than the shipped tables have."""

import json
from dataclasses import replace

import pytest

from simperf.accuracy.large_cases import LargeCase, read_large_cases
from simperf.accuracy.large_hardware import find_gpu, large_machine, network_rate
from simperf.accuracy.large_stacks import stack_of
from simperf.accuracy.large_unprinted import completed
from simperf.errors import InputError

LLAMA = {
    "layers": 8,
    "hidden": 2048,
    "heads": 16,
    "kv_heads": 4,
    "ffn": 5504,
    "vocab": 32000,
    "seq": 4096,
    "gated": True,
}
HOW = {
    "tp": 2,
    "pp": 2,
    "dp": 4,
    "zero": 1,
    "recompute": "full",
    "micro_batch": 2,
    "global_batch": 64,
    "precision": "BF16",
}
CASE = {
    "id": "one",
    "kind": "training",
    "hardware": {"gpu": "NVIDIA H100-SXM5-80GB", "n_gpus": 16, "gpus_per_node": 8, "inter": "400 Gb/s per GPU (CX-7)"},
    "model": LLAMA,
    "parallelism": HOW,
    "measured": {"metric": "iteration_time", "unit": "s", "value": 2.5},
}


def read(tmp_path, *cases):
    """Cases of a family that nobody knows."""
    (tmp_path / "new_family.json").write_text(json.dumps({"family": "new", "cases": cases}), "utf-8")
    found, left = read_large_cases(tmp_path)
    assert all(one.family == "new_family" for one in (*found, *left))
    return found, left


def with_(**tables):
    """The case with other entries of its tables; None takes one away."""
    changed = json.loads(json.dumps(CASE))
    for name, entries in tables.items():
        changed[name] = {key: value for key, value in {**changed[name], **entries}.items() if value is not None}
    return changed


def test_a_case_becomes_types(tmp_path):
    (one,), left = read(tmp_path, CASE)
    assert isinstance(one, LargeCase)
    assert left == []
    assert (one.model.layers, one.model.kv_heads, one.model.vocabulary, one.model.gated) == (8, 4, 32000, True)
    assert (one.machine.server, one.machine.servers, one.machine.gpu.name) == ("dgx-h100", 2, "h100-sxm5-80gb")
    assert str(one.layout.layout) == "dp=4 tp=2 pp=2 zero-1"
    assert (one.layout.microbatches, one.layout.recompute, one.layout.precision) == (8, "full", "bf16")
    assert (one.time, one.memory, one.peer_time) == (2.5, None, None)
    assert one.assumed == ("norms, positions, biases and dropout as of Llama",)


def test_tokens_a_second_become_a_time(tmp_path):
    rate = {"metric": "tokens_per_s_per_gpu", "value": 1000, "unit": "tok/s/GPU"}
    (one,), _ = read(tmp_path, {**CASE, "measured": rate})
    assert one.time == 64 * 4096 / (1000 * 16)


def test_units_and_counters_of_memory(tmp_path):
    gib = {
        "metric": "peak_allocated_max_over_ranks",
        "value": 10,
        "unit": "GiB",
        "per_rank_max_allocated_mb": {"0": 5.0},
    }
    total = {"metric": "gpu_memory", "value": 10, "unit": "GB"}
    found, _ = read(tmp_path, {**CASE, "measured_memory": gib}, {**CASE, "measured_memory": total})
    assert [(one.memory.counter, one.memory.nbytes) for one in found] == [("allocated", 10 * 2**30), ("device", 10e9)]
    assert found[0].memory.by_rank == {0: 5 * 2**20}


def test_what_is_not_printed_is_assumed_and_told(tmp_path):
    (one,), _ = read(tmp_path, with_(parallelism={"recompute": None, "zero": None, "dp": None}))
    assert {"no recomputation", "no sharding"} <= set(one.assumed)
    assert one.layout.layout.dp == 4
    assert one.layout.sequence_parallel is None, "unknown is not false"


@pytest.mark.parametrize(
    ("gpu", "printed", "recipe", "gathered"),
    [
        ("H100-SXM5-80GB", "FP8", "fp8-delayed", "fp8"),
        ("H100-SXM5-80GB", "FP8-CS", "fp8-current", "fp8"),
        ("H100-SXM5-80GB", "FP8 (block/MX scaling)", "fp8-block", ""),
        ("B200", "FP8 (block/MX scaling)", "mxfp8", ""),
        ("GB200", "NVFP4", "nvfp4", ""),
        ("H100-SXM5-80GB", "bf16+float8 linear, float8 all-gather", "float8", "fp8"),
        ("H100-SXM5-80GB", "float8 rowwise", "float8-rowwise", ""),
        ("H100-SXM5-80GB", "BF16", "", ""),
    ],
)
def test_precisions_are_recipes(tmp_path, gpu, printed, recipe, gathered):
    (one,), _ = read(tmp_path, with_(hardware={"gpu": gpu}, parallelism={"precision": printed}))
    assert (one.layout.precision, one.layout.products, one.layout.gathered) == ("bf16", recipe, gathered)


def test_what_a_familys_program_does_is_assumed_where_it_is_not_printed(tmp_path):
    given = with_(parallelism={"sequence_parallel": None, "overlap_dp": None, "micro_batch": None})
    (tmp_path / "nemo_h100_longseq.json").write_text(json.dumps({"cases": [given]}))
    (one,), _ = read_large_cases(tmp_path)
    assert {
        "parallelism.sequence_parallel = True",
        "parallelism.overlap_dp = True",
        "micro-batches of one sequence",
    } <= set(one.assumed)
    assert (one.layout.sequence_parallel, one.layout.overlap, one.layout.weights_overlap) == (True, True, True)


def test_widths_of_a_shipped_model_bring_its_layers(tmp_path):
    shape = {"hidden": 14336, "heads": 112, "kv_heads": None, "ffn": 57344, "vocab": 250880, "gated": False}
    (one,), _ = read(tmp_path, with_(model=shape))
    assert (one.model.positions, one.model.embed_norm, one.model.tied) == ("alibi", True, True)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"hardware": {"gpu": "TPU-v5p"}}, "the catalogue has no GPU 'TPU-v5p'"),
        ({"hardware": {"gpu": "H100-SXM5 48GB HBM2e"}}, "the catalogue has no GPU 'H100-SXM5 48GB HBM2e'"),
        ({"hardware": {"n_gpus": 32}}, "the layout has 16 ranks for 32 GPUs"),
        ({"model": {"layers": None}}, "model.layers is not printed"),
        ({"model": {"layers": 9}}, "9 layers do not divide into 2 parts of a pipeline"),
        ({"parallelism": {"pp_partition": "by size"}, "model": {"layers": 6}}, "stages of unequal layers (by size)"),
        ({"parallelism": {"precision": "FP6"}}, "precision FP6"),
        ({"parallelism": {"recompute": "selective (by hand)"}}, "recomputation 'selective (by hand)'"),
        ({"parallelism": {"global_batch": None}}, "parallelism.global_batch is not printed"),
        ({"parallelism": {"global_batch": 62}}, "62 sequences are no multiple of 4 ranks x 2"),
        ({"parallelism": {"task": "LoRA fine-tuning"}}, "parallelism.lora_rank is not printed"),
        ({"parallelism": {"zero": 1, "zero_group": 3}}, "sharding over 3 of 4 data-parallel ranks"),
        ({"measured": {"metric": "mfu"}}, "mfu is no time and no memory of a GPU"),
    ],
)
def test_what_cannot_be_expressed_is_left_out_with_its_reason(tmp_path, tables, reason):
    found, (left,) = read(tmp_path, with_(**tables))
    assert found == []
    assert reason in left.reasons


def test_embedding_and_loss_may_count_as_layers(tmp_path):
    (one,), _ = read(tmp_path, with_(model={"layers": 126}, parallelism={"vpp": 4}))
    assert one.layout.stage_layers == (15, 16, 16, 16, 16, 16, 16, 15)
    assert "embedding and loss count as layers" in one.assumed


def test_layers_of_stages_are_those_that_are_known(tmp_path):
    (one,), _ = read(tmp_path, with_(model={"layers": 13}, parallelism={"stage_layers": [6, 7]}))
    assert one.layout.stage_layers == (6, 7)


def test_prediction_further_ahead_takes_layers_from_the_last_part(tmp_path):
    (one,), _ = read(tmp_path, with_(model={"layers": 15, "mtp_layers": 1}, parallelism={"vpp": 4}))
    assert one.layout.stage_layers == (2, 2, 2, 2, 2, 2, 2, 1)
    assert one.model.mtp == 1


def test_a_network_that_no_server_has_leaves_the_memory(tmp_path):
    (one,), _ = read(tmp_path, with_(hardware={"inter": "4 x 100 Gb/s RoCE per node"}))
    assert one.machine.server == ""
    assert one.machine.why_not == "no server of the catalogue has 8 x h100-sxm5-80gb and a network of 400 Gbit/s"


def test_a_rack_that_is_one_domain_of_nvlink_is_one_server(tmp_path):
    rack = {"gpu": "GB200", "gpus_per_node": 4, "nvlink_domain": 72, "inter": "400 Gb/s per GPU (CX-7)"}
    (one,), _ = read(tmp_path, with_(hardware=rack))
    assert one.machine.server == "gb200-nvl72"
    assert one.machine.servers == -(-one.gpus // 72)


@pytest.mark.parametrize(
    ("gpus", "inside", "servers"), [(64, 72, 1), (144, 72, 2), (128, 64, 2), (2496, 64, 39), (76, 72, 2)]
)
def test_a_job_of_several_racks_takes_16_trays_of_each_unless_it_fills_them(gpus, inside, servers):
    rack = {"gpu": "GB200", "n_gpus": gpus, "gpus_per_node": 4, "nvlink_domain": 72}
    assumed = []
    machine = large_machine({**rack, "inter": "400 Gb/s per GPU (CX-7)"}, assumed)
    assert (machine.gpus_per_server, machine.servers) == (inside, servers)
    assert machine.server == ("gb200-nvl72-64gpu" if inside == 64 else "gb200-nvl72")
    assert assumed == (["64 GPUs of each rack of 72"] if inside == 64 else [])


def test_other_kinds_are_left_out(tmp_path):
    _, (left,) = read(tmp_path, {"id": "x", "kind": "inference"})
    assert left.reasons == ("a case of inference, not of training",)


def test_a_file_without_cases_is_refused(tmp_path):
    (tmp_path / "bad.json").write_text('{"family": "x"}', "utf-8")
    with pytest.raises(InputError, match="a list of cases is expected"):
        read_large_cases(tmp_path)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "b200-sxm-180gb"),
        ("NVIDIA H200-SXM5-141GB", "h200-sxm-141gb"),
        ("A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("A10G-24GB", "a10g"),
        ("GB200", "gb200"),
        ("MI300X-192GB", "mi300x"),
    ],
)
def test_names_of_gpus(name, part):
    assert find_gpu(name, []).name == part


def test_rates_of_networks():
    texts = ("1600 Gb/s per node (8x200 RoCE)", "4 x Omni-Path 100 Gb/s per node", "200 Gb/s per GPU (HDR)", "unknown")
    assert [8e-9 * network_rate(text, 8) for text in texts] == [1600, 400, 1600, 0]


def test_a_model_by_its_name_alone_and_adapters(tmp_path):
    how = {"method": "qlora", "lora_rank": 8, "lora_targets": ["q", "v"], "micro_batch": 1, "grad_accum": 1}
    verdict = {"metric": "peak_memory", "unit": "GB", "value": None, "oom": True}
    case = {
        "id": "tuned",
        "kind": "memory",
        "hardware": {"gpu": "A10G-24GB", "n_gpus": 1, "gpus_per_node": 4},
        "model": {"name": "Mistral-7B-v0.2", "seq": 512},
        "parallelism": {**how, "pure_precision": True},
        "measured": verdict,
    }
    (one,), left = read(tmp_path, case)
    assert left == []
    assert (one.model.layers, one.model.sequence) == (32, 512)
    assert (one.layout.adapters.rank, one.layout.adapters.base, one.layout.pure) == (8, "nf4", True)
    assert one.memory.fits is False
    unknown = {**case, "model": {"name": "nobody-7b", "seq": 512}}
    rankless = {**case, "parallelism": {**how, "lora_rank": None}}
    other = {**case, "parallelism": {**how, "method": "prefix"}}
    found, left = read(tmp_path, unknown, rankless, other)
    assert found == []
    assert [one.reasons for one in left] == [
        ("a model by its name alone that is not known: nobody-7b",),
        ("parallelism.lora_rank is not printed",),
        ("fine-tuning by prefix",),
    ]


def test_states_may_be_shared_by_a_part_of_the_ranks(tmp_path):
    (one,), _ = read(tmp_path, with_(parallelism={"zero": 1, "zero_group": 2}))
    assert (one.layout.layout.dp_replicate, one.layout.layout.sharding) == (2, "zero-1")


@pytest.mark.parametrize(
    ("repository", "tag", "stack", "told"),
    [
        ("mlcommons/training_results_v5.0", "", "mlperf-pretraining-5", ""),
        ("mlcommons/training_results_v5.1", "", "mlperf-pretraining-5", "training_results_v 5.1: the stack of 5.0"),
        ("mlcommons/training_results_v2.0", "", "mlperf-pretraining-3", "training_results_v 2.0: the stack of 3.1"),
        ("NVIDIA/dgxc-benchmarking", "v25.04", "dgxc-25.04", ""),
        ("NVIDIA/NeMo", "r2", "megatron-core", ""),
    ],
)
def test_the_stack_of_a_release_is_that_of_the_latest_one_that_is_not_newer(tmp_path, repository, tag, stack, told):
    """A repository with its release stands for the software that is not printed."""
    (one,), _ = read(tmp_path, {**CASE, "source": {"repo": repository, "tag": tag}})
    assert stack_of(one) == stack
    assert [text for text in one.assumed if "the stack of" in text] == ([told] if told else [])


@pytest.mark.parametrize(
    ("release", "stack"), [("4.1", "megatron-core"), ("5.0", "mlperf-lora-5.0"), ("5.1", "megatron-core")]
)
def test_fine_tuning_is_another_program_than_pre_training(tmp_path, release, stack):
    software = f"training_results_v{release}"
    (one,), _ = read(tmp_path, {**CASE, "software": software, "id": "mlperf-llama2_70b_lora"})
    assert stack_of(one) == stack


def test_what_a_program_does_may_depend_on_its_gpu_and_layout():
    how = {"tp": 1, "pp": 1, "cp": 1, "precision": "FP8"}
    found = []
    for gpu, changed in (
        ("NVIDIA Blackwell GPU (GB200)", {}),
        ("H100", {}),
        ("NVIDIA Blackwell GPU (GB200)", {"cp": 2}),
    ):
        case = {"id": "mlperf-v5.0-mine-lora", "hardware": {"gpu": gpu}, "parallelism": how | changed}
        found.append(completed("mlperf_training", case, [])["parallelism"].get("activation_inputs"))
    assert found == ["fp8", None, None]


def test_a_table_of_another_year_is_of_another_version_of_its_program(tmp_path):
    """torchtitan has compiled its loss since 2025; a framework of other families is found by its name."""
    ours = with_(parallelism={"framework": "torch FSDP2", "compile": True, "zero": 3, "pp": 1, "dp": 8})
    (one,), _ = read(tmp_path, ours)
    of = {
        name: stack_of(replace(one, family="torchtitan", name=name))
        for name in ("torchtitan-8b-8g", "torchtitan-2506-x", "torchtitan-h200-8b")
    }
    assert of == {
        "torchtitan-8b-8g": "torch-fsdp2-compiled",
        "torchtitan-2506-x": "torch-fsdp2-compiled-2025",
        "torchtitan-h200-8b": "torch-fsdp2-compiled-2025",
    }
    assert stack_of(replace(one, name="torchtitan-2506-x")) == "torch-fsdp2-compiled"
