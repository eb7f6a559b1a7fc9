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


@pytest.mark.parametrize("text", ["", "{", "[]", '{"traceEvents": 3}', json.dumps({"traceEvents": [{"ph": "X"}]})])
def test_wrong_traces(tmp_path, text):
    path = tmp_path / "step.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"step\.json"):
        explain(path, simperf.make_scenario(DDP))


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
