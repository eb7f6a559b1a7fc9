"""``[scenario] answer``: read and checked where it is written, in files, variants and on the command line."""

import json

import pytest

from simperf.analysis.ranking import rank_results
from simperf.answer import Answer
from simperf.cli import main
from simperf.errors import InputError
from simperf.results import Result
from simperf.run import run, run_variants
from simperf.scenario import load_scenario, make_scenario
from simperf.study.compare import compare
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


@pytest.fixture
def trained(tmp_path):
    """A step whose answer one GPU alone does not have."""
    path = tmp_path / "train.toml"
    path.write_text(
        '[scenario]\ntitle = "t"\nanswer = { metric = "scaling efficiency", better = "higher" }\n\n'
        '[machine]\nuse = "dgx-1v"\n\n[program]\nuse = "train"\nlayers = 1\nforward = "1 ms"\nbackward = "1 ms"\n'
        'batch_per_gpu = 1\nsteps = 1\ngpus = 2\nweights = "1 MB"\nalgorithm = "ring"\n'
    )
    return path


@pytest.mark.parametrize("samples", [0, 2])
def test_a_variant_without_the_metric_that_others_have_is_not_ranked(trained, samples):
    found = compare(trained, vary={"program.gpus": [1, 2, 8]}, samples=samples)
    one, two, eight = found.results
    assert "scaling efficiency" not in one.metrics
    assert one.headline[0] == "time"
    assert found.ranking.ranks[0] is None
    assert found.winner in (two, eight)
    header, rows = found.rows()
    assert [row[header.index("scaling efficiency")] == "-" for row in rows] == [True, False, False]
    table = sweep(load_scenario(trained), {"program.gpus": [1, 2, 8]}, cache=False)
    assert table.ranking.ranks[0] is None
    assert table.winner()["set"]["program.gpus"] == found.winner.scenario["program"]["gpus"]


def test_variants_that_all_lack_the_metric_fail(trained):
    (attempt,) = compare(trained, vary={"program.gpus": [1]}).attempts
    assert attempt.result is None
    assert "has no metric 'scaling efficiency'" in str(attempt.error)
    trained.write_text(trained.read_text() + '\n[[compare]]\nname = "one"\nset = { "program.gpus" = 1 }\n')
    first, *_ = run_variants(load_scenario(trained))
    assert "has no metric 'scaling efficiency'" in str(first.error)
    text = trained.read_text() + '\n[[compare]]\nname = "two"\nset = { "program.gpus" = 2 }\n'
    trained.write_text(text)
    assert [attempt.error for attempt in run_variants(load_scenario(trained))] == [None, None]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_the_command_shows_what_has_no_answer(trained, capsys, tmp_path, form):
    files = ["--plot", str(tmp_path / "plot.svg"), "--report", str(tmp_path / "report.html")]
    words = ["compare", str(trained), "--vary", "program.gpus=1,8", "--format", form]
    assert main(words + (files if form == "table" else [])) == 0
    out = capsys.readouterr().out
    if form == "table":
        assert "Highest scaling efficiency: gpus 8" in out
        assert next(line for line in out.splitlines() if line.startswith("gpus 1")).split()[2] == "-"
    elif form == "json":
        first, second = json.loads(out)["results"]
        assert first["answer"]["value"] is None
        assert first["comparison"]["rank"] is None
        assert second["comparison"]["rank"] == 1


def test_the_command_fails_where_none_has_it(trained, capsys):
    assert main(["compare", str(trained), "--vary", "program.gpus=1"]) == 2
    assert f"{trained}:3: scenario.answer.metric" in capsys.readouterr().err
