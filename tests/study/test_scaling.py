"""Extra runs on fewer devices, and lines of comparisons and sweeps."""

import pytest

from simperf.errors import InputError, Problem, SimperfError
from simperf.run import run, run_variants
from simperf.scenario import load_scenario, make_scenario
from simperf.study.scaling import fewer, halvings, of_results, of_table
from simperf.study.sweep import sweep

TRAIN = {
    "machine": {"use": "dgx-1v"},
    "program": {"use": "train", "algorithm": "ring", "batch_per_gpu": 8, "gpus": 8, "steps": 2},
}


def trained(**program):
    return make_scenario({**TRAIN, "program": {**TRAIN["program"], **program}})


def test_counts_are_halves():
    assert halvings(8) == [1, 2, 4]
    assert halvings(0) == halvings(1) == []
    assert halvings(512)[0] == 1
    assert len(halvings(2**20)) < 12


@pytest.mark.parametrize("gpus", [0, 6])
def test_the_same_program_on_fewer_gpus_is_what_running_it_gives(gpus):
    scenario = trained(gpus=gpus)
    line, told = fewer(scenario, run(scenario))
    assert [point.count for point in line.points] == ([1, 2, 4, 8] if gpus == 0 else [1, 3, 6])
    alone = run(trained(gpus=1))
    assert line.points[0].time == alone.metrics["time per step"].value
    assert 0 < line.points[-1].efficiency < 1
    assert "gpus = 1" in told[0]


def test_only_what_has_devices_to_vary_and_a_rate_is_run():
    def refuse(*_, **__):
        raise AssertionError("nothing is to be run")

    for scenario in (
        load_scenario("d2l/async"),
        load_scenario("d2l/input-pipeline", ["program.workers=1"]),
        trained(devices=["gpu0", "gpu1"], gpus=0),
    ):
        assert fewer(scenario, run(scenario), play=refuse)[0] is None


def test_a_count_that_does_not_run_is_told_and_left_out():
    scenario = trained()

    def play(one, *, record):
        if one.parameters["gpus"] == 1:
            raise SimperfError("gpu0 is out of memory\nmore")
        return run(one, record=record)

    line, told = fewer(scenario, run(scenario), play=play)
    assert [point.count for point in line.points] == [2, 4, 8]
    assert "gpus = 1 does not run: gpu0 is out of memory" in told


def test_without_another_count_that_runs_there_is_no_line_and_nothing_to_tell():
    scenario = trained()

    def play(one, *, record):
        raise InputError(Problem("the layout has another number of ranks", file="/home/me/a.toml", line=43))

    assert fewer(scenario, run(scenario), play=play) == (None, [])


def test_why_a_count_does_not_run_names_no_file():
    scenario = trained()

    def play(one, *, record):
        if one.parameters["gpus"] == 1:
            raise InputError(Problem("no room", file="/home/me/a.toml", line=43, key="program.gpus"))
        return run(one, record=record)

    assert "gpus = 1 does not run: program.gpus: no room" in fewer(scenario, run(scenario), play=play)[1]


def test_variants_of_a_count_are_lines():
    results = [attempt.result for attempt in run_variants(load_scenario("training/weak-and-strong"))]
    lines = of_results(results)
    assert {line.label for line in lines} == {"", "batch_per_gpu 256"}
    assert [[point.count for point in line.points] for line in lines] == [[1, 4, 8, 32], [4, 8, 32]]
    assert of_results([run(load_scenario("d2l/async"))]) == []


def test_a_sweep_over_a_count_is_a_line_for_each_of_the_other_keys():
    table = sweep(trained(), {"program.gpus": [2, 4], "program.weights": ["10 MB", "100 MB"]}, cache=False)
    lines = of_table(table)
    assert [line.label for line in lines] == ["weights 10 MB", "weights 100 MB"]
    assert lines[0].points[1].efficiency > lines[1].points[1].efficiency
    assert of_table(sweep(trained(), {"program.weights": ["10 MB", "20 MB"]}, cache=False)) == []
