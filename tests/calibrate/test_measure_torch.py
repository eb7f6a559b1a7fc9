"""Measuring with real torch; skipped where it is not installed."""

import multiprocessing
import re
import signal
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="measuring runs torch, which is not installed")

from simperf.calibrate.dataset import Dataset, Measurement  # noqa: E402
from simperf.calibrate.measure.bench import Bench  # noqa: E402
from simperf.calibrate.measure.clock import Care  # noqa: E402
from simperf.calibrate.measure.conditions import op_of  # noqa: E402
from simperf.calibrate.measure.task import FAMILIES, Task, tasks  # noqa: E402
from simperf.errors import InputError  # noqa: E402
from simperf.workload import zoo  # noqa: E402
from simperf.workload.kinds import conv2d, matmul  # noqa: E402

HASTY = Care(budget=1e-3, block=1e-5, least=2, most=2, few=2)


@pytest.fixture(scope="module")
def bench():
    return Bench(quick=True, care=HASTY)


@pytest.fixture(scope="module")
def listed(bench):
    return list(tasks(bench))


def test_the_amounts_are_those_of_the_operation_types(bench):
    def product(new):
        a, b = new(40, 60), new(60, 50)
        return lambda: torch.mm(a, b)

    found, known = bench.describe(product, "fp32"), matmul(40, 50, k=60)
    assert (found.flops, found.nbytes_read, found.nbytes_written) == (
        known.flops,
        known.nbytes_read,
        known.nbytes_written,
    )
    assert found.gemm == known.gemm

    def convolution(new):
        x, weight = new(2, 3, 16, 16), new(8, 3, 3, 3)
        return lambda: torch.nn.functional.conv2d(x, weight, None, 1, 1)

    found, known = bench.describe(convolution, "fp32"), conv2d(2, 3, filters=8, height=16, width=16, padding=1)
    assert (found.flops, found.nbytes, found.gemm) == (known.flops, known.nbytes, known.gemm)


def test_every_point_has_a_key_of_its_own_and_operations_can_be_rebuilt(listed):
    keys = [key for _, task in listed if isinstance(task, Task) for key in task.keys]
    assert len(keys) == len(set(keys)) > 150
    for _, task in listed:
        if isinstance(task, Task) and task.title.startswith("op/"):
            for measured in ((series, at) for series, at in task.points):
                op = op_of(Measurement(*measured, (1.0,)))
                assert op.family == measured[0].removeprefix("op/")


def test_quick_sessions_have_sizes_enough_for_the_constants_of_each_kind(listed):
    """Else a kind goes by what its whole family does, and dropout takes as long as filling with zeros."""
    pytest.importorskip("scipy")
    from simperf.calibrate.fit.choose import choose

    tasks = [task for _, task in listed if isinstance(task, Task) and task.title.startswith("op/")]
    readings = tuple(
        Measurement(series, at, (1e-6 + 1e-10 * float(at["nbytes_read"]),))
        for one in tasks
        for series, at in one.points
    )
    found = [one for one in choose(Dataset("a machine", measurements=readings)) if one.keys]
    families = ("op/elementwise", "op/copy", "op/reduction", "op/normalization", "op/optimizer")
    assert {one.series for one in found} >= set(families)
    assert not [one.reason for one in found if one.series in families and one.reason]
    assert sum(one.series == "op/elementwise" for one in found) > 8


def test_what_a_cpu_lacks_is_said_with_the_reason(listed):
    notes = [task for _, task in listed if isinstance(task, str)]
    for series in ("queue/depth", "streams/concurrent", "graph/replay", "overlap/copy-compute", "all-reduce/nccl"):
        assert any(note.startswith(f"{series}: not measured: ") for note in notes), series


def test_every_kind_of_kernel_of_a_traced_step_is_measured(bench):
    full = Bench(care=HASTY)
    kinds = {
        op_kind
        for _, task in tasks(full, ("gemm", "conv", "elementwise", "rows", "attention", "optimizer"))
        if isinstance(task, Task)
        for op_kind in (str(task.points[0][1]["kind"]),)
    }
    needed = {
        op.kind
        for name, batch in (("resnet18", 4), ("bert-base-128", 2), ("lenet", 8))
        for op in zoo.load(name).at(batch).ops
    }
    # a few calls on scalars or on one row, and the bias that oneDNN adds inside its convolution
    assert needed - kinds <= {
        "bias",
        "nll_loss",
        "nll_loss_backward",
        "mse_loss",
        "mse_loss_backward",
        "select_backward",
        "tanh_backward",
    }


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"step", "loader", "storage", "collective"}))
def test_one_point_of_each_family_gives_plausible_readings(bench, family):
    found = [task for _, task in tasks(bench, (family,)) if isinstance(task, Task)]
    for task in found[:1]:
        for measured in task.run([0]):
            assert len(measured.samples) >= 2
            assert all(0 < sample < 1.0 for sample in measured.samples)


def test_a_training_step_has_parts_that_add_up(bench):
    from simperf.calibrate.measure.steps import family

    task = next(task for task in family(bench) if isinstance(task, Task))
    measured = {point.at["part"]: point.samples for point in task.run([0, 1, 2, 3])}
    for whole, *parts in zip(*(measured[part] for part in ("step", "forward", "backward", "update")), strict=True):
        assert sum(parts) == pytest.approx(whole)


def test_processes_of_a_collective_are_gone_afterwards(bench):
    from simperf.calibrate.measure.collectives import family

    task = next(task for task in family(bench) if isinstance(task, Task))
    running = task.run([0, 1])
    first = next(running)
    if sys.platform == "linux":  # Ctrl-C on a terminal goes to all its processes; only their parent is to hear it
        for child in multiprocessing.active_children():
            (blocked,) = re.findall(r"SigBlk:\s*(\w+)", Path(f"/proc/{child.pid}/status").read_text())
            assert int(blocked, 16) & 1 << signal.SIGINT - 1
    assert first.at["ranks"] == 2
    assert first.median > 0
    running.close()  # as an interruption would
    assert multiprocessing.active_children() == []


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no such device"):
        Bench("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="no CUDA device"):
            Bench("cuda:0")
