"""Facts of the machine, shapes, and operations as conditions and back."""

import json
import os
import platform

import pytest

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.measure import facts
from simperf.calibrate.measure.allocator import keep_memory
from simperf.calibrate.measure.conditions import amounts, op_of
from simperf.calibrate.measure.queue import depth_of
from simperf.calibrate.measure.shapes import conv_shapes, gemm_shapes, sizes
from simperf.calibrate.measure.update import update_op
from simperf.workload import zoo
from simperf.workload.kinds import attention, conv2d, layernorm, unary
from simperf.workload.optimizers import OPTIMIZERS


def test_facts_say_what_the_machine_is_and_name_nobody():
    found = facts.machine_facts()
    assert found["cpu"]
    assert found["cores"] >= 1
    text = json.dumps([found, facts.version_facts()])
    assert platform.node() not in text or len(platform.node()) < 3
    assert os.environ.get("USER", "nobody-at-all") not in text
    assert facts.version_facts()["python"] == platform.python_version()


def test_what_goes_into_a_file_has_no_folder_host_or_user(monkeypatch):
    monkeypatch.setattr(facts.platform, "node", lambda: "lab-7")
    monkeypatch.setattr(facts, "_user", lambda: "ada")
    gloo = "no address for: lab-7 (/opt/x/gloo/tcp/device.cc:83)"
    assert facts.anonymous(gloo) == "no address for: <host> (.../device.cc:83)"
    inductor = r"C:\Users\ada\a.json, '/tmp/torchinductor_ada/c/x.cpp' of ada"
    assert facts.anonymous(inductor) == ".../a.json, '.../x.cpp' of <user>"
    assert facts.anonymous("lab-70 and Canada: 1/2 of 3 GB/s") == "lab-70 and Canada: 1/2 of 3 GB/s"


def test_a_cpu_that_hides_its_model_gets_its_numbers(tmp_path, monkeypatch):
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: AMD EPYC\ncpu family\t: 26\nmodel\t\t: 2\n")
    monkeypatch.setattr(facts, "_CPUINFO", info)
    assert facts.machine_facts()["cpu"] == "AMD EPYC (family 26, model 2)"


def test_caches_are_read_in_bytes_with_who_shares_them(tmp_path, monkeypatch):
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("3", "Unified", "32M")]
    ):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", "0-3,8")):
            (folder / name).write_text(text + "\n")
    monkeypatch.setattr(facts, "_CACHES", tmp_path)
    found = facts.machine_facts()
    assert (found["l1d"], found["l3"], found["l3_shared"]) == (48 * 1024, 32 * 1024**2, 5)
    assert "l2" not in found


def test_a_busy_machine_is_told(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (3.5, 1.0, 1.0))
    assert "load 3.5" in facts.busy()
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 1.0, 1.0))
    assert facts.busy() == ""


def test_keeping_memory_is_asked_of_glibc_only(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert keep_memory() is False


@pytest.mark.parametrize(
    "op",
    [
        conv2d(2, 3, filters=8, height=16, width=16, padding=1),
        attention(2, 4, queries=128, head_dim=64, dtype="bf16"),
        layernorm(10, 768),
        unary("relu", 1000),
    ],
)
def test_an_operation_survives_as_conditions_in_a_file(op):
    at = json.loads(json.dumps(amounts(op)))
    found = op_of(Measurement(f"op/{op.family}", at, (1e-6,)))
    for name in ("kind", "family", "dtype", "flops", "nbytes_read", "nbytes_written", "elements", "gemm"):
        assert getattr(found, name) == getattr(op, name)


def test_optimizer_kernels_count_as_a_traced_step_counts_them():
    step = zoo.load("mlp").at(32, optimizer="adamw")
    count = zoo.load("mlp").parameter_count
    whole = update_op(OPTIMIZERS["adamw"].kernels, count, kind="adamw")
    assert whole.flops == sum(op.flops for op in step.update)
    assert whole.nbytes == sum(op.nbytes for op in step.update)


def test_shapes_are_the_same_everywhere_and_within_their_bounds():
    assert sizes(1e3, 1e6, 4) == [1000, 10000, 100000, 1000000]
    first = list(gemm_shapes(20, flops=(1e6, 1e9), largest=2048, seed=3))
    assert first == list(gemm_shapes(20, flops=(1e6, 1e9), largest=2048, seed=3))
    assert all(1e6 <= 2.0 * m * n * k <= 1e9 for m, n, k in first)
    assert any(side % 16 for shape in first for side in shape)
    for batch, channels, filters, side, kernel, stride in conv_shapes(20, flops=(1e7, 1e9), seed=1):
        op = conv2d(
            batch, channels, filters=filters, height=side, width=side, kernel=kernel, stride=stride, padding=kernel // 2
        )
        assert 1e7 <= op.flops <= 1e9


def test_the_queue_is_as_deep_as_the_first_launch_that_blocks():
    assert depth_of([5e-6] * 1022 + [3e-3, 4e-6]) == 1022
    assert depth_of([5e-6] * 500) == 500
    assert depth_of([5e-6] * 10 + [1e-3] + [5e-6] * 500) == 511  # one hiccup at the start is none
