"""The part of measuring that needs a GPU, run on a pretended one: every family's code, from set-up to readings.

It is played on the CPU (`tests.calibrate.fake_cuda`). So no time means anything, and nothing is said of real
hardware; but no line of it is left that has never run.
"""

import pytest

torch = pytest.importorskip("torch", reason="measuring runs torch, which is not installed")

from simperf.calibrate.dataset import Dataset  # noqa: E402
from simperf.calibrate.measure import collectives, facts, overlap, streams  # noqa: E402
from simperf.calibrate.measure.bench import Bench  # noqa: E402
from simperf.calibrate.measure.clock import Care  # noqa: E402
from simperf.calibrate.measure.task import FAMILIES, Task, tasks  # noqa: E402
from tests.calibrate.fake_cuda import PART, fake_cuda  # noqa: E402

#: more FLOP and bytes than a test has time for
WORK, SIZE = 5e8, 2e7


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(overlap, "KERNELS", 1)
    monkeypatch.setattr(streams, "KERNELS", 1)
    with fake_cuda(monkeypatch, devices=2):
        yield Bench("cuda:0", quick=True, care=Care(budget=1e-3, block=1e-4, least=2, most=3, few=2))


def small(task):
    """Whether all points of a task are soon done."""
    return all(
        float(at.get("flops", 0.0)) <= WORK
        and sum(float(at.get(name, 0.0)) for name in ("nbytes", "nbytes_read", "nbytes_written")) <= SIZE
        for _, at in task.points
    )


def one_a_series(found):
    """The first small task of each kind."""
    chosen = {}
    for task in found:
        series, at = task.points[0]
        kind = (series, *(str(at.get(name)) for name in ("kind", "dtype", "mode", "state", "part", "beside", "pass")))
        if isinstance(task, Task) and small(task):
            chosen.setdefault(kind, task)
    return list(chosen.values())


#: families that need no GPU, and whole programs, which `tests.calibrate.test_gpu_chain` runs
ELSEWHERE = {"step", "loader", "storage", "collective", "program"}


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - ELSEWHERE))
def test_each_family_gives_readings(bench, family):
    found = [task for _, task in tasks(bench, (family,)) if isinstance(task, Task)]
    chosen = one_a_series(found) or found[:1]
    assert chosen
    for task in chosen:
        measured = list(task.run(range(len(task.points))))
        assert [point.key for point in measured] == list(task.keys)
        assert all(len(point.samples) >= 2 and min(point.samples) >= 0 for point in measured)
        assert all(point.at["device"] == "cuda" for point in measured)


def test_everything_that_the_fit_reads_of_a_gpu_is_listed(bench):
    listed = [(series, at) for _, task in tasks(bench) if isinstance(task, Task) for series, at in task.points]
    series = {name for name, _ in listed}
    copies = {f"copy/{kind}" for kind in ("h2d-pinned", "h2d-pageable", "d2h-pinned", "d2h-pageable", "d2d", "peer")}
    assert copies < series
    others = {"program/chain", "program/graph", "program/batches", "program/streams"}
    assert others < series
    others = {"queue/depth", "queue/launch", "streams/concurrent", "graph/replay", "overlap/copy-compute", "sync/item"}
    assert others < series
    assert {at["state"] for name, at in listed if name == "sync/synchronize"} == {
        "idle",
        "after-launch",
        "launch-to-return",
    }
    assert {(at["ranks"], name) for name, at in listed if name.startswith("all-")} == {(2, "all-reduce/nccl")}
    keys = [Task(((name, at),), lambda wanted: iter(())).keys for name, at in listed]
    assert len(set(keys)) == len(keys)


def test_a_whole_step_is_taken_as_it_runs_and_in_parts(bench):
    from simperf.calibrate.measure.steps import _steps

    bench.care = Care(budget=1e-3)
    points = list(_steps(bench, "lenet", 4, optimizer="sgd").run(range(4)))
    assert [point.at["part"] for point in points] == ["step", "forward", "backward", "update"]
    assert len(points[1].samples) == min(10, len(points[0].samples))


def test_facts_of_the_gpu(bench, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: PART)
    found = facts.machine_facts(torch, bench.device)
    assert (found["gpu"], found["gpus"], found["sms"], found["capability"]) == ("Pretended 1", 2, 9, "9.0")


def test_ranks_of_nccl_go_where_there_are_gpus(bench, monkeypatch):
    found = [task for _, task in tasks(bench, ("collective",)) if isinstance(task, Task)]
    (task,) = found
    ran = {}
    monkeypatch.setattr(collectives, "_run", lambda bench, points, wanted: ran.update(points=points) or iter(()))
    assert list(task.run([0])) == []
    assert {at["backend"] for _, at in ran["points"]} == {"nccl"}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    (note,) = [text for _, text in tasks(bench, ("collective",))]
    assert note == "all-reduce/nccl: not measured: 1 GPU: NCCL between GPUs needs two"


def test_a_data_set_of_a_gpu_can_be_fitted(bench, tmp_path):
    """Readings of a pretended GPU go through the fit as those of a real one would."""
    pytest.importorskip("scipy")
    from simperf.calibrate.fit import fit_dataset

    points = []
    for family in ("sync", "queue", "graph", "copy"):
        for _, task in tasks(bench, (family,)):
            if isinstance(task, Task) and small(task):
                points += task.run(range(len(task.points)))
    found = fit_dataset(Dataset("pretended", {"gpu": "Pretended 1"}, measurements=tuple(points)), draws=4)
    names = {one.fit.model.name for one in found.fits}
    assert {"frontend.result", "frontend.launch", "frontend.depth", "wait.idle", "wait.round"} < names
    assert {"copy.h2d-pinned", "copy.d2h-pageable", "copy.d2d"} < names
