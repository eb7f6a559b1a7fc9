"""`simperf run --what-if`: tables, JSON and CSV of a question, and what is refused beside it."""

import json

import pytest

QUESTION = ("run", "d2l/sync-160mb", "--what-if", "program.nbytes=320 MB,speed.book-pcie3-x16=2x")


def test_a_table(simperf):
    code, out, err = simperf(*QUESTION)
    assert (code, err) == (0, "")
    for word in ("as it is", "interaction", "together", "Critical path", "whole run", "Why"):
        assert word in out


def test_json_and_csv_say_the_same(simperf):
    found = json.loads(simperf(*QUESTION, "--format", "json")[1])
    rows = simperf(*QUESTION, "--format", "csv")[1].splitlines()
    assert [one["name"] for one in found["runs"]] == [row.split(",")[0].strip('"') for row in rows[1:]]
    changes = [one["change"] for one in found["runs"]]
    assert sum(changes[1:-1]) + found["interaction"] == pytest.approx(changes[-1], abs=1e-15)
    assert all(sum(one["critical_path"].values()) == pytest.approx(one["time"]) for one in found["runs"])


@pytest.mark.parametrize("option", [("--samples", "3"), ("--live",), ("--save", "x.json"), ("--plot", "x.svg")])
def test_options_without_effect_are_refused(simperf, option):
    code, out, err = simperf(*QUESTION, *option)
    assert (code, out) == (2, "")
    assert f"{option[0]}: has no effect with --what-if" in err
