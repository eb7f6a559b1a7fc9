"""``[scenario] answer``: read and checked where it is written, in files, variants and on the command line."""

import json

import pytest

from simperf.analysis.ranking import rank_results
from simperf.answer import Answer
from simperf.errors import InputError
from simperf.results import Result
from simperf.run import run, run_variants
from simperf.scenario import load_scenario, make_scenario
from simperf.study.sweep import sweep

CHAIN = '[scenario]\ntitle = "t"\nanswer = {answer}\n\n[program]\nuse = "async-chain"\nn = 10\n'


@pytest.fixture
def written(tmp_path):
    def write(answer):
        path = tmp_path / "chain.toml"
        path.write_text(CHAIN.replace("{answer}", answer))
        return path

    return write


def problem(scenario):
    with pytest.raises(InputError) as caught:
        run(load_scenario(scenario))
    (found,) = caught.value.problems
    return found


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{ metric = "operations per second" }', Answer("operations per second", "higher")),
        ('{ metric = "operations per second", better = "lower" }', Answer("operations per second", "lower")),
        ('{ metric = "time" }', Answer("time", "lower")),
    ],
)
def test_the_unit_says_which_end_is_better_unless_the_file_does(written, answer, expected):
    result = run(load_scenario(written(answer)))
    assert result.answer == expected
    assert result.headline[0] == expected.metric
    assert Result.from_dict(json.loads(result.to_bytes())) == result


def test_without_an_answer_it_is_the_time():
    result = run(make_scenario({"program": {"use": "async-chain", "n": 10}}))
    assert result.answer is None
    assert result.headline == ("time", result.number("time"))


def test_a_metric_that_is_not_there(written):
    path = written('{ metric = "operations per secnd" }')
    found = problem(path)
    assert (found.file, found.line, found.key) == (str(path), 3, "scenario.answer.metric")
    assert "did you mean 'operations per second'?" in found.message
    assert found.expected == "time, operations per second"


def test_a_plain_number_needs_to_say_which_end_is_better(tmp_path):
    program = {"use": "failing-job", "work": "1 h", "interval": "1 h"}
    scenario = make_scenario({"scenario": {"answer": {"metric": "goodput"}}, "program": program})
    with pytest.raises(InputError, match=r'scenario\.answer\.better: .*which end.*\n.*better = "higher"'):
        run(scenario)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('{ metric = "time", better = "faster" }', "scenario.answer.better"),
        ("{}", "scenario.answer.metric"),
        ('{ metric = "time", worse = "higher" }', "scenario.answer.worse"),
        ('"time"', "scenario.answer"),
    ],
)
def test_what_cannot_be_read(written, answer, said):
    with pytest.raises(InputError, match=said) as caught:
        load_scenario(written(answer))
    assert caught.value.problems[0].line == 3


def test_the_command_line_and_variants_may_ask_for_something_else(written):
    path = written('{ metric = "time" }')
    text = 'scenario.answer={ metric = "operations per second" }'
    changed = load_scenario(path, [text])
    assert run(changed).answer == Answer("operations per second", "higher")
    assert not changed.overridden
    with pytest.raises(InputError, match=r"--set: scenario\.answer\.metric"):
        run(load_scenario(path, ['scenario.answer={ metric = "x" }']))


def test_a_sweep_ranks_its_points_by_the_answer(written):
    scenario = load_scenario(written('{ metric = "operations per second" }'))
    table = sweep(scenario, {"program.n": [10, 100], "program.t2": ["2 us", "4 us"]}, cache=False)
    assert table.ranking.headline.startswith("Highest operations per second: n 100, t2 2 us, ")
    assert table.best()["set"] == {"program.n": 100, "program.t2": "2 us"}
    assert table.shown()[0][3] == "operations per second"
    plain = sweep(load_scenario(written('{ metric = "time" }')), {"program.n": [10, 100]}, cache=False)
    assert plain.best() is None
    assert "operations: 10 to 100" in plain.ranking.refusal
    with pytest.raises(InputError, match="has no metric 'x'"):
        sweep(load_scenario(written('{ metric = "x" }')), {"program.n": [10, 100]}, cache=False)


def test_eight_gpus_are_faster_than_one():
    """DDP with as many samples on each GPU takes a little longer a step and trains more."""
    results = [attempt.result for attempt in run_variants(load_scenario("measured/ddp-resnet50"), record=False)]
    found = rank_results(results)
    assert found.headline.startswith("Highest samples per second: 16 GPUs")
    assert min(results, key=lambda result: result.time).name == "2 GPUs"
