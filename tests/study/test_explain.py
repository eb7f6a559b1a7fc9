"""A recorded step beside the simulated one: parts that add up, and name what was changed."""

import json
import os
from pathlib import Path

import pytest

import simperf
from simperf.errors import InputError
from simperf.scenario.load import change_scenario
from simperf.study.explain import explain
from simperf.study.virtual import speed_up
from tests.study.written_step import write_step
from tests.workload.recorded.written import SHIPPED

DDP = {
    "machine": {"use": "dgx-a100-80gb"},
    "frontend": {"use": "pytorch"},
    "program": {"use": "train", "model": "bert-base-128", "batch_per_gpu": 8, "precision": "fp16", "steps": 1},
}
SHARDED = {
    "machine": {"use": "dgx-a100-80gb"},
    "frontend": {"use": "pytorch"},
    "model": {"layers": 4, "hidden": 1024, "heads": 16, "ffn": 2816, "vocabulary": 32000, "sequence": 1024},
    "layout": {"dp": 4, "tp": 2, "sharding": "zero-1"},
    "program": {
        "use": "train",
        "strategy": "model-parallel",
        "stack": "megatron-core",
        "precision": "bf16-master",
        "batch": 16,
        "sequence_parallel": True,
        "steps": 1,
    },
}
TRUTH = Path(os.environ.get("SIMPERF_TRUTH", Path(__file__).parents[3] / "shared" / "truth")) / "traces"


@pytest.fixture(params=[DDP, SHARDED], ids=["ddp", "sharded"])
def job(request):
    return simperf.make_scenario(request.param)


def parts(found):
    return {one.part: one for one in found.parts}


def test_of_a_trace_that_simperf_wrote_no_part_differs(tmp_path, job):
    path = tmp_path / "step.json.gz"
    result = write_step(path, job, "gpu0")
    found = explain(path, job)
    assert found.simulated == result.time
    assert found.recorded == pytest.approx(result.time, rel=1e-9)
    for one in found.parts:
        assert one.difference == pytest.approx(0.0, abs=1e-6 * result.time), one
        assert one.recorded_count == one.simulated_count, one
    assert found.told == "the recorded step takes as long as the simulated one, part by part"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"cost.efficiency": {"gemm": 0.2}}, "products"),
        ({"frontend.launch": "30 us"}, "host"),
        ({"cost.efficiency": {"attention": 0.02}}, "attention"),
    ],
)
def test_a_known_change_is_named(tmp_path, changes, part):
    job = simperf.make_scenario(DDP)
    path = tmp_path / "step.json.gz"
    slower = write_step(path, change_scenario(job, changes), "gpu0")
    found = explain(path, job)
    assert found.parts[0].part == part
    assert found.parts[0].difference > 0.5 * abs(found.difference)
    assert found.difference == pytest.approx(slower.time - found.simulated, rel=1e-6)
    assert part in found.told


def test_a_slower_network_is_exposed_communication(tmp_path):
    job = simperf.make_scenario(SHARDED)
    path = tmp_path / "step.json.gz"
    slow = speed_up(job, {"nvlink3": 0.2})
    write_step(path, slow, "gpu0")
    found = explain(path, job)
    assert found.parts[0].part.startswith("exposed ")
    kernels = [one for one in found.parts if one.part in ("products", "attention", "elementwise")]
    assert sum(abs(one.difference) for one in kernels) < 0.05 * found.difference


def test_parts_add_up_to_the_difference(tmp_path):
    path = tmp_path / "step.json.gz"
    write_step(path, simperf.make_scenario(DDP), "gpu0")
    found = explain(path, simperf.make_scenario(SHARDED))
    assert sum(one.difference for one in found.parts) == pytest.approx(found.difference, rel=1e-9)
    assert sum(one.recorded for one in found.parts) == pytest.approx(found.recorded, rel=1e-9)
    assert sum(one.simulated for one in found.parts) == pytest.approx(found.simulated, rel=1e-9)


def test_ranks_and_steps(tmp_path):
    path = tmp_path / "step.json.gz"
    job = simperf.make_scenario(DDP)
    write_step(path, job, "gpu0", rank=3)
    found = explain(path, job, step=3)
    assert found.device == "gpu3"
    assert any("rank 3 is simulated as gpu0" in one for one in found.notes)
    assert explain(path, job, rank=0).device == "gpu0"
    with pytest.raises(InputError, match="no such rank"):
        explain(path, job, rank=8)
    with pytest.raises(InputError, match="no such step"):
        explain(path, job, step=4)


def test_another_gpu_or_number_of_ranks_is_told(tmp_path):
    path = tmp_path / "step.json.gz"
    job = simperf.make_scenario(SHARDED)
    write_step(path, job, "gpu0", gpu="NVIDIA H100 80GB HBM3")
    assert any("the trace is of NVIDIA H100 80GB HBM3" in one for one in explain(path, job).notes)


def test_a_scenario_without_a_gpu(tmp_path):
    path = tmp_path / "step.json.gz"
    write_step(path, simperf.make_scenario(DDP), "gpu0")
    with pytest.raises(InputError, match="no GPU of a machine"):
        explain(path, simperf.make_scenario({"program": {"use": "async-chain", "n": 10}}))


def kernel(name, start, length, number=1, stream=7):
    """A kernel of a hand-made trace and its launch; times in microseconds."""
    own = {"correlation": number, "device": 0, "stream": stream}
    call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": start - 2, "dur": 1}
    return [
        {**call, "args": {"correlation": number}},
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": start, "dur": length, "args": own},
    ]


def profiler_step(number, start, length):
    name = f"ProfilerStep#{number}"
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length}


@pytest.fixture(scope="module")
def against():
    """Explain a trace of rows against one job, which is simulated once."""
    job, seen = simperf.make_scenario(DDP), []
    result = simperf.run(job, watch=seen.append)

    def play(scenario, watch):
        watch(seen[0])
        return result

    def explained(path, rows, **keywords):
        path.write_text(json.dumps(rows))
        found = explain(path, job, play=play, **keywords)
        assert sum(one.recorded for one in found.parts) == pytest.approx(found.recorded, rel=1e-9)
        assert sum(one.difference for one in found.parts) == pytest.approx(found.difference, rel=1e-9)
        return found

    return explained


def test_time_between_steps_that_do_not_follow_each_other_is_in_no_step(tmp_path, against):
    """Of a profiler's schedule that skips steps; what a step launched still ends after it."""
    first = [profiler_step(1, 0, 1000), *kernel("gemm", 900, 300)]
    second = [profiler_step(9, 1e6, 1000), *kernel("gemm", 1e6 + 10, 500, 2)]
    found = against(tmp_path / "step.json", first + second)
    assert found.recorded == pytest.approx((1200e-6 + 1000e-6) / 2)
    assert parts(found)["products"].recorded == pytest.approx(400e-6)
    assert parts(found)["products"].recorded_count == 1
    assert against(tmp_path / "step.json", first + second, step=1).recorded == pytest.approx(1200e-6)


def test_a_step_without_an_activity_is_refused(tmp_path, against):
    rows = [profiler_step(1, 0, 10), profiler_step(2, 4000, 1000), *kernel("gemm", 5000, 500)]
    with pytest.raises(InputError, match="no activity of the GPU takes time in step 1") as caught:
        against(tmp_path / "step.json", [*rows, *kernel("gemm", 4500, 100, 2)], step=1)
    assert caught.value.problems[0].expected == "2"
    with pytest.raises(InputError, match="takes time in the profiler's steps"):
        against(tmp_path / "step.json", [profiler_step(1, 0, 10), *kernel("gemm", 5000, 500)])
    with pytest.raises(InputError, match="takes time in the trace"):
        against(tmp_path / "step.json", kernel("gemm", 20, 0))


def test_what_the_optimizer_launches_is_its_part(tmp_path, against):
    """As torch annotates its step; a product stays one, and what runs around the step has its own part."""
    names = ("vectorized_elementwise", "gemm", "direct_copy_kernel", "vectorized_elementwise")
    rows = [row for number, name in enumerate(names, 1) for row in kernel(name, 100 * number, 50, number)]
    own = {"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1, "name": "Optimizer.step#AdamW.step"}
    kinds = parts(against(tmp_path / "step.json", [*rows, {**own, "ts": 90, "dur": 260}]))
    assert kinds["optimizer"].recorded == pytest.approx(100e-6)
    assert kinds["products"].recorded == pytest.approx(50e-6)
    assert kinds["elementwise"].recorded == pytest.approx(50e-6)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("aten::native_layer_norm", "normalization"),
        ("aten::sum", "reduction"),
        ("aten::zero_", "copy kernels"),
        ("aten::embedding", "copy kernels"),
        ("aten::normal_", "elementwise"),
        ("aten::add_", "elementwise"),
        ("aten::summary", "elementwise"),
    ],
)
def test_an_elementwise_kernel_belongs_to_the_operation_that_launched_it(tmp_path, against, name, part):
    op = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 5, "dur": 20}
    found = against(tmp_path / "step.json", [op, *kernel("vectorized_elementwise_kernel", 10, 50)])
    assert parts(found)[part].recorded == pytest.approx(50e-6)


def test_the_shipped_trace_of_its_own_job_has_the_same_optimizer_and_norms():
    host = {"use": "pytorch", "in_step": 1.0}
    found = explain(SHIPPED, simperf.make_scenario({**DDP, "frontend": host}))
    kinds = parts(found)
    for one in ("optimizer", "normalization", "products", "attention"):
        assert kinds[one].recorded == pytest.approx(kinds[one].simulated, rel=1e-3), one
        assert kinds[one].recorded_count == kinds[one].simulated_count


def test_kernels_that_no_name_tells_are_noted(tmp_path, against):
    rows = [*kernel("gemm", 10, 500), *kernel("zzz_mine", 600, 400, 2), *kernel("vectorized_elementwise", 1100, 90, 3)]
    found = against(tmp_path / "step.json", rows)
    assert parts(found)["elementwise"].recorded == pytest.approx(490e-6)
    (note,) = [one for one in found.notes if "zzz_mine" in one]
    assert note.startswith("400.0 us of kernels")
    assert not any("no family" in one for one in against(tmp_path / "step.json", kernel("gemm", 10, 5)).notes)


def test_a_trace_of_another_model_is_told(tmp_path, against):
    rows = [row for number in range(5) for row in kernel("gemm", 100 * number + 10, 50, number)]
    notes = against(tmp_path / "step.json", rows).notes
    assert any("5 matrix products a step, the simulated step" in one for one in notes)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"traceEvents": 3}', json.dumps({"traceEvents": [{"ph": "X"}]})])
def test_wrong_traces(tmp_path, text):
    path = tmp_path / "step.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"step\.json"):
        explain(path, simperf.make_scenario(DDP))


@pytest.mark.parametrize(
    ("name", "part"),
    [  # as profilers of H100 write them, some of them cut off
        ("void vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::T&)::{lambd", "elementwise"),
        ("void unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::T&)::{lamb", "copy kernels"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native", "optimizer"),
        ("Memcpy DtoD (Device -> Device)", "copy kernels"),
        ("void apex::lamb_stage_1<float>(float*)", "optimizer"),
        ("void deep_ep::internode::dispatch<true, 2>(int4*)", "exposed dispatch"),
        ("void deep_ep::intranode::combine<8>(int4*)", "exposed combine"),
        ("two_shot_all_reduce_kernel", "exposed all-reduce"),
        ("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop", "exposed communication"),
        ("triton_red_fused__to_copy_mean_mul_pow_rsqrt_5", "normalization"),
        ("triton_poi_fused__to_copy_mul_silu_7", "elementwise"),
        ("triton_per_fused_native_layer_norm_3", "normalization"),
        ("triton_red_fused_sum_0", "reduction"),
        ("triton_tem_fused_mm_12", "products"),
        ("triton_tem_fused_addmm_native_layer_norm_transpose_1", "products"),
        ("triton_red_fused__to_copy_mean_transpose_rsqrt_4", "normalization"),
        ("void cudnn::fusion::convert_dq_to_16bits<true>(void const*, void*, unsigned int)", "elementwise"),
        ("sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x64", "products"),
        ("sm90_xmma_wgrad_indexed_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc", "products"),
        ("nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_NNT", "products"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26", "attention"),
    ],
)
def test_kernels_of_todays_libraries_are_known_by_their_names(tmp_path, against, name, part):
    found = against(tmp_path / "step.json", kernel(name, 10, 50))
    assert parts(found)[part].recorded == pytest.approx(50e-6)


@pytest.mark.skipif(not TRUTH.is_dir(), reason="there is no folder of recorded traces")
@pytest.mark.parametrize("name", ["ddp_a100_rank3_of_8", "ddp_v100_rank1", "ns_resolution", "alexnet_a100"])
def test_a_real_trace_adds_up(name):
    found = explain(TRUTH / f"{name}.json.gz", simperf.make_scenario(DDP))
    assert sum(one.recorded for one in found.parts) == pytest.approx(found.recorded, rel=1e-9)
    kinds = parts(found)
    assert kinds["products"].recorded > 0
    assert kinds["elementwise"].recorded > 0
    if name.startswith("ddp"):
        assert any(one.part.startswith("exposed ") and one.recorded > 0 for one in found.parts)
