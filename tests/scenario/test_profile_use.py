"""A profile is applied or refused: what changes nothing is an error, and only what was used is a source."""

import json
from dataclasses import replace

import pytest

import simperf
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.cli import main
from simperf.errors import InputError
from simperf.hardware.profile import FittedConstant, FittedModel
from simperf.results import Result
from simperf.run import run_variants
from simperf.scenario import load_scenario
from simperf.study.compare import compare
from simperf.study.limits import limits
from simperf.study.planning import make_request, plan
from simperf.study.sweep import sweep
from simperf.study.uncertainty import predict

#: units of constants that are no times
UNITS = {"rate": "B/s", "bandwidth": "B/s", "beta": "s/B"}


def model(unit="", **values):
    constants = {
        key: FittedConstant(
            value=one, low=one, high=one, stderr=0.01 * one, unit=unit or UNITS.get(key, "s"), draws=(0.9, 1.1)
        )
        for key, one in values.items()
    }
    return FittedModel(points=9, error=0.01, scatter=0.01, constant=constants)


LAUNCH = {"frontend.launch": model(launch=3e-6)}
KERNEL = {"kernel.elementwise-fp32": model(overhead=2e-6, rate=5e11)}
LINK = {"link.pcie3-x16": model("B/s", bandwidth=9e9)}
READ = {"storage.read": model(setup=1e-4, bandwidth=1e9), "chain.eager": model(alpha=1e-6, beta=1e-9)}

SCENARIO = """
[scenario]
title = "one"

[machine]
use = "p3-8xlarge"

[calibration]
use = "mine.toml"

[program]
"""
CHAIN = 'use = "async-chain"\nn = 10\n'
ADDITIONS = 'use = "additions"\nn = 10\nelements = 4096\n'
COPY = 'use = "host-copy"\n'
SENDS = 'use = "sends"\n'


@pytest.fixture
def make(tmp_path):
    def write(program, models, text="", *, gpu="", name="mine"):
        data = Dataset("a machine of mine")
        (tmp_path / f"{name}.toml").write_text(models_text(data, models, points=9, gpu=gpu))
        file = tmp_path / "one.toml"
        file.write_text(SCENARIO + program + text)
        return file

    return write


def play(file, *overrides):
    return simperf.run(load_scenario(file, list(overrides)))


def refused(file, *overrides):
    with pytest.raises(InputError) as caught:
        play(file, *overrides)
    (problem,) = caught.value.problems
    return problem


def test_only_what_was_used_is_a_source(make):
    file = make(ADDITIONS, {**KERNEL, **LAUNCH, **READ})
    found = play(file, "frontend.use=pytorch")
    assert found.sources["profile mine"] == "kernels, frontend, fitted to a machine of mine"
    assert found.unused == {}
    assert "profile mine: its constants of storage, chain change nothing in this run" in found.notes
    own = play(file, "frontend.use=pytorch", "frontend.launch=4 us")
    assert own.sources["profile mine"] == "kernels, fitted to a machine of mine"


def test_a_profile_that_changes_nothing_is_refused_with_what_it_holds_and_what_takes_it(make, tmp_path):
    problem = refused(make(SENDS, {**KERNEL, **READ}, gpu="v100-sxm2-16gb"))
    assert problem.file == str(tmp_path / "mine.toml")
    assert "changes nothing in this run" in problem.message
    assert problem.value == "constants of kernels, storage, chain"
    assert problem.expected == "kernels: operations, or a model of the zoo, on v100-sxm2-16gb"
    assert "there to be read" in refused(make(SENDS, READ)).expected


@pytest.mark.parametrize(
    ("program", "models", "overrides"),
    [
        (ADDITIONS, KERNEL, ("cost.corner=sharp",)),
        (ADDITIONS, KERNEL, ("cost.efficiency.elementwise=0.5",)),
        (ADDITIONS, LAUNCH, ("frontend.launch=4 us",)),
        (SENDS, LAUNCH, ()),
        (COPY, {"link.nvlink2": model("B/s", bandwidth=9e9)}, ()),
        (CHAIN, {"streams": model("1", held=0.5, limit=4.0)}, ()),
    ],
)
def test_constants_that_something_else_stands_before_are_refused(make, program, models, overrides):
    file = make(program, models)
    assert refused(file, *overrides).file.endswith("mine.toml")
    data = {key: value for key, value in load_scenario(file, list(overrides)).data.items() if key != "calibration"}
    without = simperf.run(simperf.make_scenario(data))
    told = simperf.run(load_scenario(file, list(overrides)), unused="tell")
    assert told.time == without.time
    assert "profile mine" not in told.sources
    assert any("changes nothing" in note for note in told.notes)


def test_a_profile_of_another_gpu_is_refused(make):
    assert "a100-sxm4-40gb" in refused(make(ADDITIONS, KERNEL, gpu="a100-sxm4-40gb")).expected


@pytest.mark.parametrize(
    ("program", "models", "subject"),
    [
        (ADDITIONS, KERNEL, "kernels"),
        (ADDITIONS, LAUNCH, "frontend"),
        (COPY, LINK, "links"),
        (ADDITIONS, {"gpu": model(kernel_floor=9e-6)}, "devices"),
    ],
)
def test_each_subject_is_used_where_it_changes_the_time(make, program, models, subject):
    file = make(program, models)
    found = play(file, "frontend.use=pytorch")
    assert found.sources["profile mine"].startswith(f"{subject}, fitted")
    data = {key: value for key, value in found.scenario.items() if key != "calibration"}
    assert simperf.run(simperf.make_scenario(data)).time != found.time


def test_of_two_profiles_each_is_judged(make, tmp_path):
    make(ADDITIONS, KERNEL, name="first")
    file = make(ADDITIONS, KERNEL)
    both = 'calibration.use=["first.toml", "mine.toml"]'
    assert refused(file, both).file.endswith("first.toml")
    make(ADDITIONS, LAUNCH, name="first")
    assert {"profile first", "profile mine"} <= set(play(file, both, "frontend.use=pytorch").sources)


VARIANTS = '\n[[compare]]\nname = "sends"\nset = { program = { use = "sends" } }\n'
OTHER = '\n[[compare]]\nname = "additions"\nset = { program = { use = "additions", n = 3 } }\n'


def test_of_several_variants_one_must_use_it(make, capsys):
    file = make(SENDS, KERNEL, VARIANTS + OTHER)
    attempts = run_variants(load_scenario(file))
    assert [bool(one.result.unused) for one in attempts] == [True, False]
    assert len(compare(file).attempts) == 2
    assert main(["compare", str(file)]) == 0
    alone = make(SENDS, KERNEL, VARIANTS)
    for refuse in (lambda: run_variants(load_scenario(alone)), lambda: compare(alone)):
        with pytest.raises(InputError, match="changes nothing"):
            refuse()
    capsys.readouterr()
    assert main(["compare", str(alone)]) == 2
    assert main(["check", str(alone)]) == 0, "without --run nothing is known of it"
    assert main(["run", str(alone)]) == 2
    assert "mine.toml: the profile changes nothing in this run" in capsys.readouterr().err


def test_of_several_points_one_must_use_it(make):
    file = make(ADDITIONS, KERNEL)
    assert all(row["error"] is None for row in sweep(file, {"program.n": [3, 4]}, cache=False).rows)
    table = sweep(file, {"cost.corner": ["smooth", "sharp"]}, cache=False)
    assert ["unused" in row for row in table.rows] == [False, True]
    with pytest.raises(InputError, match="changes nothing"):
        sweep(make(SENDS, KERNEL), {"program.nbytes": ["3 MB", "4 MB"]}, cache=False)


def test_of_the_candidates_of_a_plan_one_must_use_it(make, tmp_path):
    def planned(models, gpu):
        make(CHAIN, models, gpu=gpu)
        wanted = {"model": "lenet", "samples": 60_000, "deadline": "20 h"}
        candidates = {"instances": ["p3-2xlarge", "g4dn-xlarge"], "nodes": [1], "batch_per_gpu": [64]}
        used = {"use": str(tmp_path / "mine.toml")}
        return plan(make_request({"plan": wanted, "candidates": candidates, "calibration": used}), cache=False)

    assert len(planned(KERNEL, "v100-sxm2-16gb").ranked) == 2
    with pytest.raises(InputError, match="changes nothing"):
        planned(KERNEL, "a100-sxm4-40gb")


def test_the_search_for_limits_refuses_it_too(make):
    with pytest.raises(InputError, match="changes nothing"):
        limits(make(SENDS, KERNEL), cache=False)


def test_draws_and_saved_results_know_it_too(make, tmp_path):
    with pytest.raises(InputError, match="changes nothing"):
        predict(load_scenario(make(SENDS, KERNEL)), samples=2)
    found = simperf.run(load_scenario(make(SENDS, KERNEL)), unused="tell")
    found.save(tmp_path / "result.json")
    assert Result.load(tmp_path / "result.json") == found
    assert json.loads((tmp_path / "result.json").read_text())["unused"]["mine"]["file"].endswith("mine.toml")
    assert replace(found, unused={}) != found
