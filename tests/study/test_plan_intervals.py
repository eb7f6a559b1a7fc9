"""Intervals of a plan: what they are made of, which candidates they put together, and when there are none."""

import re
from dataclasses import replace

import pytest

from simperf.analysis.intervals import DRAWS
from simperf.report.plans import GROUPS, format_candidate, format_plan
from simperf.study.planning import TrainingPlan, make_request, plan
from simperf.study.planning.lifetime import Lifetime
from simperf.study.planning.ranked import ranked
from simperf.study.planning.spread import FAILURES, candidate_spread

STEPS = {"samples per second": 100.0, "scaling efficiency": 0.9}
STEADY = Lifetime(1000.0, 1000.0, 1000.0)
FAILING = Lifetime(1000.0, 900.0, 1200.0)


def asked(**more):
    candidates = {"instances": ["p3-8xlarge", "p3-16xlarge"], "nodes": 1, "batch_per_gpu": 32}
    head = {"model": "resnet18", "samples": 1_281_167, "epochs": 1, "deadline": "10 h"}
    return make_request({"plan": head, "candidates": candidates, **more})


def spread(life, steps=STEPS, **more):
    return candidate_spread(steps, life, model="resnet18", **more)


def test_failures_alone_give_no_interval():
    found = spread(FAILING, gpus=8, calibrated=True, histories=40)
    assert (found.time, found.apart, found.sources) == (None, None, {})
    assert "a profile's constants" in found.why_not


def test_failures_widen_the_interval_of_figures_and_are_named():
    steady = spread(STEADY, gpus=8)
    failing = spread(FAILING, gpus=8, histories=40)
    assert failing.time == pytest.approx((0.9 * steady.time[0], 1.2 * steady.time[1]))
    assert set(failing.sources) - set(steady.sources) == {FAILURES}


def test_draws_of_a_profile_are_an_interval_by_themselves_and_widen_that_of_figures():
    own = spread(STEADY, gpus=8, calibrated=True, drawn=(80.0, 125.0))
    assert own.time == own.apart == pytest.approx((800.0, 1250.0))
    figures = spread(STEADY, gpus=8)
    both = spread(STEADY, gpus=8, drawn=(99.0, 101.0))
    assert both.time == pytest.approx(figures.time)
    assert spread(STEADY, gpus=8, drawn=(1.0, 1000.0)).time == pytest.approx((100.0, 100_000.0))


def test_what_candidates_of_one_gpu_share_is_not_in_the_interval_that_tells_them_apart():
    found = spread(STEADY, gpus=8)
    assert found.time[0] < found.apart[0] < 1000.0 < found.apart[1] <= found.time[1]
    easy = spread(STEADY, {**STEPS, "scaling efficiency": 1.0}, gpus=8)
    assert found.apart[0] < easy.apart[0] < easy.apart[1] < found.apart[1]
    assert spread(STEADY, gpus=1).time is not None


def test_one_gpu_loses_nothing_to_others_and_its_histories_alone_set_it_apart():
    found = spread(FAILING, gpus=1, histories=40)
    assert found.apart == (900.0, 1200.0)
    low, high = found.time
    assert low < 900.0
    assert high > 1200.0


def test_a_plan_groups_what_cannot_be_told_apart_and_says_what_intervals_are_made_of():
    found = plan(asked())
    half, whole = found.ranked
    assert {half.choice.instance, whole.choice.instance} == {"p3-8xlarge", "p3-16xlarge"}
    assert half.group == 1
    assert whole.group == 2  # twice the GPUs of one kind: what both are missed by is no reason to doubt
    text = format_plan(found)
    assert "90 % intervals from published figures: errors of" in text
    assert "failures" not in text.partition("90 % intervals")[2].partition("Prices")[0]
    assert "(90 %)" in format_candidate(found, 1, "")
    alike = replace(whole, choice=half.choice, time=half.time, cost=half.cost, spread=half.spread)
    made = ranked(found.request, [half, replace(alike, time=1.01 * half.time)])
    assert [one.group for one in made] == [1, 1]
    assert "not distinguishable from #1" in made[1].reason


def test_a_plan_is_saved_and_read_with_its_intervals(tmp_path):
    found = plan(asked(failures={"node_mtbf": "2000 h", "checkpoint": "500 MB/s", "restart": "5 min"}))
    assert all(FAILURES in one.spread.sources for one in found.ranked)
    found.save(tmp_path / "plan.json")
    again = TrainingPlan.load(tmp_path / "plan.json")
    assert again.ranked == found.ranked


def test_batches_of_one_gpu_are_told_apart_only_beyond_what_their_ratio_is_missed_by():
    candidates = {"instances": ["p3-2xlarge", "p3-16xlarge"], "nodes": 1, "batch_per_gpu": [32, 64]}
    head = {"model": "resnet18", "samples": 1_281_167, "deadline": "10 h"}
    found = plan(make_request({"plan": head, "candidates": candidates}))
    groups = {(one.choice.gpus, one.choice.batch): one.group for one in found.ranked}
    assert groups[1, 32] == groups[1, 64] != groups[8, 32] == groups[8, 64]
    one = next(each for each in found.ranked if (each.choice.gpus, each.choice.batch) == (1, 64))
    far = replace(one, choice=replace(one.choice, batch=32), time=2 * one.time, cost=2 * one.cost)
    far = replace(far, spread=replace(one.spread, apart=(2 * one.time, 2 * one.time)))
    assert [each.group for each in ranked(found.request, [one, far])] == [1, 2], "by more than two batches are missed"
    further = replace(far, choice=replace(one.choice, batch=8))
    assert [each.group for each in ranked(found.request, [one, further])] == [1, 1], "no such batches were measured"


def test_what_batches_are_missed_by_is_counted_once():
    head = {"model": "resnet18", "samples": 1_281_167}
    candidates = {"instances": ["p3-2xlarge"], "nodes": 1, "batch_per_gpu": [32, 64]}
    found = plan(make_request({"plan": head, "candidates": candidates}))

    def groups(factor, apart, whole, **more):
        """Groups of two batches that differ by a factor, of which both have intervals of such widths."""
        one = found.winner
        ends = {name: (one.time / width, one.time * width) for name, width in (("apart", apart), ("time", whole))}
        near = replace(one, time_interval=ends["time"], spread=replace(one.spread, **ends, **more))
        ends = {name: (factor * low, factor * high) for name, (low, high) in ends.items()}
        far = replace(near, time=factor * one.time, cost=factor * one.cost, time_interval=ends["time"])
        choice = replace(one.choice, batch=32 if one.choice.batch == 64 else 64)
        far = replace(far, choice=choice, spread=replace(one.spread, **ends, **more))
        return [each.group for each in ranked(found.request, [near, far])]

    assert groups(1.15, apart=1.0, whole=1.5) == [1, 1], "the errors of scaling do not have it in them"
    assert groups(1.25, apart=1.0, whole=1.5) == [1, 2]
    assert groups(1.15, apart=1.0, whole=1.1) == [1, 2], "the whole interval has it"
    assert groups(1.15, apart=1.05, whole=1.05, sources={DRAWS: "of the profile's constants"}) == [1, 2], (
        "so have draws of a profile"
    )
    assert groups(1.09, apart=1.05, whole=1.05, sources={DRAWS: "of the profile's constants"}) == [1, 1]


def test_without_an_interval_there_are_no_groups_and_the_reason_is_said():
    head = {"model": "gpt2", "samples": 1_281_167, "precision": "bf16"}
    candidates = {"instances": ["p5-48xlarge"], "nodes": [1, 2], "batch_per_gpu": 4}
    profile = {"use": "kernels-h100-sxm5-80gb"}
    found = plan(make_request({"plan": head, "candidates": candidates, "calibration": profile}))
    for one in found.ranked:
        assert (one.time_interval, one.cost_interval, one.group) == (None, None, 0)
    text = format_plan(found, width=240)
    assert "No 90 % interval: published figures were predicted by the catalogue, not with a profile's constants" in text
    assert "90 % intervals from" not in text
    assert GROUPS not in text
    assert ".." not in text.partition("Prices")[0]
    assert "interval  none: " in format_candidate(found, 1, "")


def test_ends_of_intervals_have_three_digits():
    found = plan(asked())
    times, costs = ([row[column] for row in found.rows()[1]] for column in (5, 6))
    for text in (*times, *costs):
        ends = re.findall(r"[\d.]+(?=[^\d.]|$)", text.partition("[")[2].replace(" .. ", " "))
        assert len(ends) == 2
        assert all(len(end.replace(".", "").lstrip("0")) in (2, 3) or float(end) >= 1000 for end in ends), text


@pytest.fixture(scope="module")
def failing():
    """Candidates that win, lose, and are ruled out, with failures."""
    candidates = {"instances": ["p3-8xlarge", "p3-16xlarge"], "nodes": [1, 2], "batch_per_gpu": [32, 8192]}
    head = {"model": "resnet18", "samples": 1_281_167, "epochs": 1, "deadline": "10 h"}
    failures = {"node_mtbf": "2000 h", "checkpoint": "500 MB/s", "restart": "5 min"}
    return plan(make_request({"plan": head, "candidates": candidates, "failures": failures}))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 150, 180, 240])
def test_no_line_is_longer_than_the_terminal_and_no_number_or_word_is_lost(failing, width):
    text = format_plan(failing, width=width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    assert all(" ".join(cell.split()) in words for cells in failing.rows()[1] for cell in cells[2:])
    assert all(f"{one.reason}: " in words for one in failing.pruned)
    assert all(source in words for source in failing.request.prices.sources.values())
    assert "90 % intervals from published figures" in words
    assert "90 % intervals from failures: 40 histories" in words
    detail = format_candidate(failing, 1, "", width=width)
    assert max(map(len, detail.splitlines())) <= width
    assert failing.winner.choice.name in " ".join(detail.split())


def test_a_candidate_is_a_row_where_rows_fit_and_else_has_lines_that_say_as_much(failing):
    header, rows = failing.rows()
    wide, narrow = (format_plan(failing, width=width) for width in (240, 80))
    assert re.search(r"samples/s +memory/GPU +busiest", wide)
    assert not re.search(r"samples/s +memory/GPU +busiest", narrow)
    for cells in rows:
        row = dict(zip(header, cells, strict=True))
        assert re.search(" +".join(map(re.escape, cells[:-1])), wide), "all but the verdict are on one line"
        assert f"{row['samples/s']} samples/s, {row['memory/GPU']} per GPU, busiest: {row['busiest']}" in narrow


def test_what_is_not_a_terminal_has_80_columns_unless_columns_says_others(failing, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    for text in (format_plan(failing), format_candidate(failing, 1, "")):
        assert 70 < max(map(len, text.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "200")
    assert max(map(len, format_plan(failing).splitlines())) > 80
