"""The whole chain for a GPU, on a pretended one: measure, fit, write a profile, and validate what was held out.

What the pretended device does is known, so that errors must be small where it obeys the model, and large where one
mechanism of it is changed behind the profile's back. It says nothing of real hardware.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="measuring runs torch, which is not installed")
pytest.importorskip("scipy")

from simperf.calibrate.fit import fit_dataset  # noqa: E402
from simperf.calibrate.measure import facts, queue, steps  # noqa: E402
from simperf.calibrate.measure.bench import Bench  # noqa: E402
from simperf.calibrate.measure.clock import Care  # noqa: E402
from simperf.calibrate.measure.session import MeasuringSession  # noqa: E402
from simperf.calibrate.measure.task import Task, tasks  # noqa: E402
from simperf.calibrate.steps import step_predictor  # noqa: E402
from simperf.calibrate.validate import validate  # noqa: E402
from simperf.hardware import Catalog  # noqa: E402
from simperf.report.calibration import calibration_text  # noqa: E402
from tests.calibrate.pretended import Truth, but, pretended  # noqa: E402
from tests.calibrate.synthetic import write_profile  # noqa: E402

#: calls that the pretended device gives no time to, or that torch does not run on the meta device
LEFT_OUT = ("frontend/view", "copy/host", "copy/fresh", "op/attention")
FITTED = (
    *("frontend", "mixed", "sync", "gemm", "conv", "elementwise", "rows", "optimizer"),
    *("queue", "streams", "graph", "copy", "overlap"),
)


def wanted(task):
    series, at = task.points[0]
    if series in LEFT_OUT or at.get("kind") in ("sgd", "adam") or at.get("dtype") == "fp16":
        return False
    return series != "step/resnet18" or at["batch"] == 32


def measured(folder, truth, families, *, seed=0):
    """A file of a session on the pretended device, as the command writes it."""
    patch = pytest.MonkeyPatch()
    part = SimpleNamespace(name="Pretended 1", total_memory=8 << 30, multi_processor_count=truth.sms, major=9, minor=0)
    patch.setattr(queue, "LAUNCHES", 900)
    patch.setattr(torch.cuda, "get_device_properties", lambda device: part, raising=False)
    try:
        with pretended(patch, truth, seed):
            bench = Bench("cuda:0", quick=True, care=Care(budget=1e-4, block=3e-5, least=3, most=5, few=3))
            listed = [
                (family, task)
                for family in families
                for _, task in tasks(bench, (family,))
                if not isinstance(task, Task) or wanted(task)
            ]
            path = folder / f"{'-'.join(families[:2])}-{seed}.json"
            machine = facts.machine_facts(torch, bench.device)
            session = MeasuringSession(path, machine=machine, versions={"torch": "pretended"}, fresh=True)
            return session.run(listed, tell=lambda family, series, count: None)
    finally:
        patch.undo()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gpu")


@pytest.fixture(scope="module")
def profile(folder):
    found = fit_dataset(measured(folder, Truth(), FITTED), hold_out=5, draws=16)
    path = folder / "pretended.toml"
    write_profile(path, found)
    return Catalog.load().profile(str(path))


def checked(profile, folder, truth, families=("program",), *, seed=1):
    return validate(profile, measured(folder, truth, families, seed=seed), steps=step_predictor(profile))


def errors(found):
    return {
        (row.series.partition("/")[2], row.key.partition('"part": "')[2].partition('"')[0], '"gemm"' in row.key): row
        for row in found.points
    }


def test_constants_of_the_device_come_back(profile):
    truth = Truth()
    frontend = profile.frontend()
    assert frontend["launch"] == pytest.approx(truth.launch, rel=0.02)
    assert frontend["result"] == pytest.approx(truth.result, rel=0.03)
    assert frontend["synchronize"] == pytest.approx(truth.wait, rel=0.1)
    assert frontend["depth"] == truth.depth
    assert frontend["graph_launch"] == pytest.approx(truth.graph[0], rel=0.05)
    assert frontend["graph_gap"] == pytest.approx(truth.gap, rel=0.2)
    assert frontend["calls"]["conv2d"] == pytest.approx(truth.calls["conv2d"], rel=0.05)
    # on the meta device dropout is three calls, two of them unrecorded, as the count of a batch normalization is
    assert frontend["calls"]["pass:forward"] == pytest.approx(truth.forward + 1.6 / 15, rel=0.1)
    assert frontend["calls"]["pass:backward"] == pytest.approx(truth.backward, abs=0.06)
    device = profile.device()
    for kind, (kernel, copy) in zip(("compute", "memory"), truth.beside, strict=True):
        assert device["beside"][f"kernel.{kind}"] == pytest.approx(kernel, rel=0.05)
        assert device["beside"][f"copy.{kind}"] == pytest.approx(copy, rel=0.05)


def test_programs_and_steps_that_were_held_out_are_met(profile, folder):
    found = checked(profile, folder, Truth(), ("program", "step"))
    rows = [row for row in found.points if row.series.startswith(("program/", "step/"))]
    assert len(rows) == 9 + 3 * 4
    print(calibration_text(found, points=True))
    for row in rows:
        assert abs(row.error) < (0.08 if row.series.startswith("program/") else 0.12), (row.key, row.error)
    assert not any(row.fitted for row in rows)


@pytest.mark.parametrize(
    ("changed", "program", "least"),
    [
        ({"depth": 900}, ("chain", "issued", False), 0.2),
        ({"launch": 6e-6}, ("item", "whole", False), 0.2),
        ({"result": 60e-6}, ("item", "whole", False), 0.2),
        ({"wait": 12e-6}, ("wait", "whole", False), 0.2),
        ({"gap": 1e-6}, ("graph", "whole", False), 0.2),
        ({"graph": (20e-6, 3e-8)}, ("graph", "issued", False), 0.3),
        ({"pinned": 1.1e10}, ("batches", "whole", True), 0.2),
        ({"beside": ((1.05, 1.1), (2.5, 1.6))}, ("batches", "whole", False), 0.1),
        ({"held": 3.0}, ("streams", "whole", False), 0.2),
    ],
)
def test_a_mechanism_that_is_changed_is_noticed(profile, folder, changed, program, least):
    """And the programs that do not depend on it are met as before."""
    found = errors(checked(profile, folder, but(**changed), seed=7))
    assert abs(found[program].error) > least, {key: round(row.error, 3) for key, row in found.items()}
    assert not found[program].inside
    if changed.keys() & {"depth", "gap", "held"}:
        assert abs(found["wait", "whole", False].error) < 0.08


def test_steps_that_are_bound_by_their_launches(profile, folder, monkeypatch):
    """Smaller batches than are measured otherwise: what calls of each type take, in each pass, makes up the step."""
    monkeypatch.setattr(steps, "MODELS", {"lenet": ((), (4, 8))})
    found = checked(profile, folder, Truth(), ("step",))
    assert len(found.points) == 2 * 4
    for row in found.points:
        assert abs(row.error) < 0.05, (row.key, row.error)
    slower = checked(profile, folder, but(calls={**Truth().calls, "conv2d": 9.0}), ("step",), seed=3)
    (backward, *_) = (row for row in slower.points if '"backward"' in row.key)
    assert backward.error < -0.2


def test_three_commands_lead_from_a_gpu_to_a_validated_profile(folder, capsys, monkeypatch):
    """As `docs/how-to/calibrate.md` has them; the first as it is called, on some families."""
    from simperf.calibrate.measure import clock
    from simperf.cli import main

    care = Care(budget=1e-4, block=3e-5, least=3, most=5, few=3)
    monkeypatch.setattr(clock, "QUICK", care)
    monkeypatch.setattr(queue, "LAUNCHES", 900)
    part = SimpleNamespace(name="Pretended 1", total_memory=8 << 30, multi_processor_count=60, major=9, minor=0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: part)
    data, profile = str(folder / "mine.json"), str(folder / "mine.toml")
    only = "sync,queue,streams,graph,overlap,program"

    def run(*words):
        assert main(["calibrate", *words]) == 0
        return capsys.readouterr()

    with pretended(monkeypatch, Truth(), seed=4):
        told = run("measure", "--device", "cuda:0", "--quick", "--only", only, "-o", data)
    assert f"next: simperf calibrate fit {data}" in told.err
    told = run("fit", data, "-o", profile)
    assert "[[Model]] overlap.memory" in told.out
    told = run("validate", profile, data)
    assert "program/wait" in told.out
