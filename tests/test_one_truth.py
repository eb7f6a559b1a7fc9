"""Every way to a time gives the same number for the same thing: what `run` plays, to 1e-12.

Each case is one question. Its first answer is `simperf.run`'s; every other way that can be asked the same is asked.
"""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest

import simperf
from simperf.accuracy.collectives import collective_table
from simperf.accuracy.kernels import kernel_table
from simperf.accuracy.validation import validation_table
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.steps import point_scenario, step_predictor
from simperf.calibrate.validate import validate
from simperf.cli import main
from simperf.hardware import Catalog
from simperf.run import run
from simperf.scenario import Scenario, load_scenario, make_scenario
from simperf.study.planning import make_request
from simperf.teach import find_lesson
from simperf.teach.exercise import Measure

ROOT = Path(__file__).parents[1]
CASES = {}
#: all ways to a time; each has to be asked by a case
WAYS = {
    *("run", "run command", "compare", "compare command", "sweep", "limits", "predict", "simulate"),
    *("plan", "collective", "train", "validate", "accuracy", "lesson"),
}


def case(function):
    """A case: a function that yields ways and their answers, the run's first."""
    CASES[function.__name__.replace("_", " ")] = function
    return function


def answer(result, metric="time"):
    return result.time if metric == "time" else result.metrics[metric].value


def command(capsys, *words):
    """What a command prints as JSON."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def written(data):
    """The text of a scenario's file."""
    import tomli_w

    return tomli_w.dumps(data)


def studies(scenario: Scenario, key: str, metric="time"):
    """Python's ways of a scenario: itself, beside another, at a point of a sweep, in the search for its limits."""
    scenario = replace(scenario, variants=(), expectations=(), measurements=())
    yield "run", answer(run(scenario, record=False), metric)
    yield "run", answer(run(scenario), metric)
    table = scenario.data
    for part in key.split("."):
        table = table[part]
    found = simperf.compare(scenario)
    yield "compare", answer(found.attempts[0].result, metric)
    (row,) = simperf.sweep(scenario, {key: [table]}, cache=False).rows
    assert row["error"] is None
    yield "sweep", row["time"] if metric == "time" else row["metrics"][metric][0]
    yield "limits", answer(simperf.limits(scenario, cache=False).result, metric)


def commands(capsys, file, metric="time"):
    """The same of a file, asked on the command line."""

    def of(document):
        return document["time"] if metric == "time" else document["metrics"][metric]["value"]

    yield "run command", of(command(capsys, "run", file, "--format", "json"))
    first, *_ = command(capsys, "compare", file, "--format", "json")["results"]
    yield "compare command", of(first)


def collective(capsys, nbytes, *words):
    """The time in the table of collectives."""
    (row,) = command(capsys, "collective", "all-reduce", *words, "-b", nbytes, "-e", nbytes, "--format", "json")
    return row["time"]


def all_reduce(machine, nbytes, algorithm, **further):
    return make_scenario(
        {
            "machine": {"use": machine},
            "program": {"use": "all-reduce", "nbytes": f"{nbytes} B", "algorithm": algorithm, **further},
        }
    )


def bucket(machine, nbytes, algorithm):
    """What one bucket of a training step adds to it: nothing else moves, and it is all that is exposed."""
    training = {"use": "train", "layers": 1, "forward": "1 ms", "backward": "1 ms", "batch": 64, "steps": 1}
    training |= {"weights": f"{nbytes} B", "bucket": f"{nbytes} B", "first_bucket": f"{nbytes} B"}
    found = run(make_scenario({"machine": {"use": machine}, "program": {**training, "algorithm": algorithm}}))
    return found.metrics["exposed communication"].value


@case
def four_gpus_of_the_textbook(capsys, tmp_path):
    """Adding up on one GPU, in a lesson, too."""
    file = tmp_path / "naive.toml"
    scenario = next(one for one in load_scenario("d2l/sync-160mb").variants if one.name == "on GPU 0")
    file.write_text(written({key: scenario.data[key] for key in ("machine", "program")}))
    yield from studies(scenario, "program.nbytes")
    yield from commands(capsys, file)
    yield "collective", collective(capsys, 160_000_000, "--server", "book-4gpu", "--algo", "naive")
    exercise = find_lesson("synchronisation").exercises[0]
    assert exercise.measure.scenario == "d2l/sync-160mb"
    yield "lesson", exercise.measure.value()[0]
    yield "train", bucket("book-4gpu", 160_000_000, "naive")


@case
def a_ring_on_nvlink(capsys, tmp_path):
    """An algorithm that was asked for: alone, in the table and as the one bucket of a step."""
    scenario = all_reduce("dgx-1v", 1 << 26, "ring")
    file = tmp_path / "ring.toml"
    file.write_text(written(scenario.data))
    yield from studies(scenario, "program.nbytes")
    yield from commands(capsys, file)
    yield "collective", collective(capsys, 1 << 26, "--server", "dgx-1v", "--algo", "ring")
    yield "collective", collective(capsys, 1 << 26, "--server", "dgx-1v", "--algo", "ring", "--exact")
    yield "train", bucket("dgx-1v", 1 << 26, "ring")


@case
def a_tree_over_two_servers(capsys, tmp_path):
    scenario = all_reduce("p3dn-x2", 1 << 24, "halving-doubling")
    yield from studies(scenario, "program.nbytes")
    yield "collective", collective(capsys, 1 << 24, "--cluster", "p3dn-x2", "--algo", "halving-doubling")
    yield "train", bucket("p3dn-x2", 1 << 24, "halving-doubling")


@case
def a_tree_of_open_degree(capsys, tmp_path):
    """A chain is faster than a binary tree on servers of PCIe: every way takes it."""
    scenario = all_reduce("pcie-4gpu-x4", 1 << 24, "pipelined-tree")
    yield from studies(scenario, "program.nbytes")
    chain = {"degree": 1, "overlap": False}
    yield "run", run(all_reduce("pcie-4gpu-x4", 1 << 24, "pipelined-tree", options=chain)).time
    yield "collective", collective(capsys, 1 << 24, "--cluster", "pcie-4gpu-x4", "--algo", "pipelined-tree")
    yield "train", bucket("pcie-4gpu-x4", 1 << 24, "pipelined-tree")


@case
def an_alias(capsys, tmp_path):
    """A short name is the algorithm that it stands for."""
    scenario = all_reduce("dgx-1v", 1 << 24, "direct")
    yield from studies(scenario, "program.nbytes")
    yield "run", run(all_reduce("dgx-1v", 1 << 24, "sharded")).time
    yield "collective", collective(capsys, 1 << 24, "--server", "dgx-1v", "--algo", "direct")
    yield "train", bucket("dgx-1v", 1 << 24, "direct")


@case
def nccl_on_one_server(capsys, tmp_path):
    """The library's own choice, which is also what a table and a scenario take if they name none."""
    scenario = all_reduce("dgx-a100", 1 << 26, "nccl")
    yield from studies(scenario, "program.nbytes")
    yield "run", run(all_reduce("dgx-a100", 1 << 26, "")).time
    yield "collective", collective(capsys, 1 << 26, "--server", "dgx-a100", "--algo", "nccl")
    yield "collective", collective(capsys, 1 << 26, "--server", "dgx-a100")
    yield "collective", simperf.collective("all-reduce", on="dgx-a100", sizes=["64M"])[0].time
    yield "train", bucket("dgx-a100", 1 << 26, "nccl")
    yield "accuracy", published("nccl-a100x8-allreduce-superbench", 1 << 26)


@case
def nccl_on_four_servers(capsys, tmp_path):
    scenario = all_reduce("dgx-a100-x4", 1 << 28, "nccl")
    yield from studies(scenario, "program.nbytes")
    yield "collective", collective(capsys, 1 << 28, "--cluster", "dgx-a100-x4")
    yield "train", bucket("dgx-a100-x4", 1 << 28, "nccl")


def published(name, nbytes):
    """What the accuracy page says of a size of a published table; the time that was measured plays no part."""
    table = {"columns": ["size_B", "time_us_out_of_place"], "unit": {}, "table": [[nbytes, 1.0]]}
    (row,) = collective_table([{"id": name, "kind": "allreduce", "measured": table}])
    return row.predicted


@case
def training_that_was_published(capsys, tmp_path):
    """A row of the accuracy page."""
    name, metric = "measured/ddp-resnet50", "time per step"
    scenario = next(one for one in load_scenario(name).variants if one.name == "8 GPUs")
    yield from studies(scenario, "program.model", metric)
    (row,) = [row for row in validation_table([name]) if row.variant == "8 GPUs"]
    assert row.quantity == f"metrics.{metric}"
    yield "accuracy", row.predicted
    results = command(capsys, "compare", name, "--format", "json")["results"]
    yield "compare command", next(one for one in results if one["name"] == "8 GPUs")["metrics"][metric]["value"]


@case
def a_candidate_of_a_plan(capsys, tmp_path):
    metric, instance = "samples per second", "p3-16xlarge"
    request = {
        "plan": {"model": "resnet50", "precision": "fp16", "samples": 1_281_167, "epochs": 90},
        "candidates": {"instances": [instance], "nodes": 1, "batch_per_gpu": 64},
        "prices": {"own": {instance: "1 USD/h"}},
    }
    found = simperf.plan(make_request(request), cache=False)
    yield from studies(found.scenario(1), "program.model", metric)
    yield "plan", found.winner.rate
    program = {"use": "train", "model": "resnet50", "precision": "fp16", "algorithm": "nccl", "batch_per_gpu": 64}
    file, frontend = tmp_path / "train.toml", {"use": "pytorch"}
    file.write_text(written({"machine": {"use": instance}, "frontend": frontend, "program": {**program, "steps": 3}}))
    yield from commands(capsys, file, metric)


@case
def asynchronous_workers(capsys, tmp_path):
    metric = "samples per second"
    scenario = load_scenario("training/async-saturation").variants[-1]
    yield from studies(scenario, "program.workers", metric)
    results = command(capsys, "compare", "training/async-saturation", "--format", "json")["results"]
    yield "compare command", results[-1]["metrics"][metric]["value"]
    measure = Measure(scenario="training/async-saturation", variant=scenario.name, metric=metric)
    yield "lesson", measure.value()[0]


@case
def a_step_on_a_cpu_that_was_measured(capsys, tmp_path):
    """A profile's validation: a point of a recording, and a file that names the profile."""
    folder = ROOT / "calibration"
    use = str(folder / "cpu-epyc-zen5-2c.toml")
    profile = Catalog.load().profile(use)
    data = Dataset.load(folder / "cpu-epyc-zen5-2c-7.json.gz")
    point = next(one for one in data.select("step/lenet") if one.at.get("part") == "step")
    program = {"use": "training-step", "model": "lenet", "batch": int(point.number("batch"))}
    table = {"machine": {"use": "desktop-1gpu"}, "calibration": {"use": use}, "program": program}
    scenario, file = make_scenario(table), tmp_path / "step.toml"
    file.write_text(written(table))
    yield from studies(scenario, "program.batch")
    yield from commands(capsys, file)
    yield "run", run(point_scenario(profile, point)).time
    yield "predict", simperf.predict(scenario, samples=2).time
    yield "validate", step_predictor(profile)(point)[0]
    (checked,) = validate(profile, replace(data, measurements=(point,)), steps=step_predictor(profile)).points
    yield "validate", checked.predicted
    training = {**program, "use": "train", "steps": 2, "watched": True}
    yield "train", run(make_scenario({**table, "program": training})).metrics["time per step"].value


@case
def a_kernel_that_was_published(capsys, tmp_path):
    """A row of the accuracy page is a kernel's time, and what its measuring program adds."""
    scenario = make_scenario(
        {
            "machine": {"node": [{"id": "gpu0", "gpu": "l4"}, {"id": "cpu0", "cpu": "xeon-8168"}],
                        "link": [{"a": "cpu0", "b": "gpu0", "part": "pcie4-x16"}]},
            "program": {"use": "operations", "ops": [{"op": "relu", "elements": 1 << 26}]},
        }
    )  # fmt: skip
    yield from studies(scenario, "program.ops")
    case = {
        **{"id": "roof-x", "kind": "roofline", "hardware": {"gpu": "L4"}, "workload": {}, "source": {}},
        "measured": {"columns": ["op", "B", "H", "latency_ms"], "table": [["relu", 1 << 16, 1 << 10, 1.0]]},
    }
    (row,) = kernel_table([case])
    yield "accuracy", row.predicted


@case
def ten_thousand_additions(capsys, tmp_path):
    """A program in a file, in a session and in a lesson's notebook."""
    n, t1, t2 = 200, 10e-6, 20e-6
    program = runpy.run_path(str(ROOT / "docs" / "lessons" / "asynchrony.py"))["program"]
    (tmp_path / "mine.py").write_text(
        "import simperf\n\n\n"
        "def chain(m, *, n: int = 10, t1: simperf.Seconds = 1e-6, t2: simperf.Seconds = 1e-6):\n"
        "    add = simperf.Kernel('y = x + 1', time=t2, launch=t1, result=10e-6)\n"
        "    for _ in range(n):\n        yield simperf.launch(add, m.gpu())\n    yield simperf.synchronize(m.gpu())\n"
    )
    file = tmp_path / "chain.toml"
    file.write_text(
        written(
            {
                "machine": {"use": "desktop-1gpu"},
                "frontend": {"use": "pytorch"},
                "program": {"python": "mine.py:chain", "n": n, "t1": f"{t1} s", "t2": f"{t2} s"},
            }
        )
    )
    yield from studies(load_scenario(file), "program.n")
    yield from commands(capsys, file)
    yield "simulate", simperf.simulate(program, n=n, t1=t1, t2=t2).time
    yield "lesson", _notebook("asynchrony", n=n, t1=t1 * 1e6, t2=t2 * 1e6, wait=False)


def _notebook(name, **chosen):
    """The time that a lesson's notebook shows for these values of its controls."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    return runpy.run_path(str(find_lesson(name).notebook))["outcome"](**chosen)


@case
def disks(capsys, tmp_path):
    """Something that neither computes nor communicates."""
    scenario = next(one for one in load_scenario("d2l/disks").variants if one.name.startswith("NVMe drive, random, 32"))
    yield from studies(scenario, "program.outstanding")
    results = command(capsys, "compare", "d2l/disks", "--format", "json")["results"]
    yield "compare command", next(one for one in results if one["name"] == scenario.name)["time"]


ASKED = {}


@pytest.mark.filterwarnings("default::DeprecationWarning")
@pytest.mark.parametrize("name", CASES)
def test_every_way_gives_what_a_run_gives(name, capsys, tmp_path):
    answers = list(CASES[name](capsys, tmp_path))
    (first, wanted), *others = answers
    assert first == "run"
    assert wanted > 0
    ASKED[name] = {way for way, _ in answers}
    wrong = [f"{way}: {got!r} for {wanted!r}" for way, got in others if got != pytest.approx(wanted, rel=1e-12, abs=0)]
    assert not wrong, "\n".join(wrong)


def test_every_way_is_asked():
    assert len(CASES) == 14
    if len(ASKED) == len(CASES):  # where all of them were run, and none was skipped
        assert set().union(*ASKED.values()) == WAYS
