"""The validation table: signed errors, ranges, failures that stay visible, and its forms."""

import csv
import io
import json
import math

import pytest

from simperf.accuracy.tables import QUOTED
from simperf.accuracy.validation import ValidationRow, validation_table
from simperf.errors import InputError
from simperf.report.accuracy_rows import rows_csv
from simperf.report.validation import validation_csv, validation_json, validation_text
from simperf.scenario import load_scenario, shipped_scenarios

FILE = """
[scenario]
title = "Additions"
source = "a paper"
case = "case-1"
fitted = "nothing"
[program]
use = "async-chain"
n = 10
t1 = "1 us"
t2 = "2 us"
t3 = "1 us"
[[compare]]
name = "right"
measured = { time = "22 us", "metrics.operations per second" = { min = "100 k/s", max = "200 k/s" } }
[[compare]]
name = "twice as slow in truth"
measured = { time = "44 us" }
[[compare]]
name = "does not fit"
set = { "program.use" = "run-ahead", "program.nbytes" = "10 GB" }
measured = { time = "1 s" }
"""


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "additions.toml"
    keep = FILE.partition('[[compare]]\nname = "does')[0]
    path.write_text(keep)
    return validation_table([str(path)])


def test_errors_are_signed_and_a_range_is_met_or_missed(rows):
    by = {(row.variant, row.quantity): row for row in rows}
    assert by["right", "time"].error == pytest.approx(0.0, abs=1e-9)
    assert by["right", "metrics.operations per second"].error == pytest.approx(10 / 22e-6 / 200e3 - 1)
    assert by["twice as slow in truth", "time"].error == pytest.approx(-0.5)


def test_a_run_that_fails_is_a_row_with_its_reason(tmp_path):
    path = tmp_path / "memory.toml"
    path.write_text(
        '[machine]\nuse = "desktop-1gpu"\n[program]\nuse = "run-ahead"\nnbytes = "1 GB"\n[measured]\ntime = "1 s"\n'
    )
    (row,) = validation_table([str(path)])
    assert math.isnan(row.error)
    assert "out of memory" in row.failure
    assert "out of memory" in validation_text([row])
    assert "none predicted" in validation_text([row, row])
    assert "out of memory" in rows_csv({"One": [row]})


def test_every_form_holds_every_row(rows):
    text = validation_text(rows)
    assert all(f"{100 * row.error:+.1f} %" in text for row in rows)
    assert text.count("measured") == len({row.title for row in rows})
    assert len(list(csv.DictReader(io.StringIO(validation_csv(rows))))) == len(rows)
    table = json.loads(validation_json(rows))
    assert [one["error"] for one in table] == [row.error for row in rows]
    lines = list(csv.DictReader(io.StringIO(rows_csv({QUOTED: rows, "Elsewhere": rows}))))
    assert [line["error"] for line in lines] == 2 * [f"{100 * row.error:.2f}" for row in rows]
    assert [bool(line["measured"]) for line in lines] == [True] * len(rows) + [False] * len(rows)
    nothing = ValidationRow("t", "v", "time", "s", math.nan, math.nan, math.nan, failure="no link")
    assert json.loads(validation_json([nothing]))[0]["predicted"] is None


def test_a_scenario_counts_once(tmp_path):
    path = tmp_path / "f.toml"
    path.write_text('[program]\nuse = "async-chain"\n')
    with pytest.raises(InputError, match="the scenario is named twice") as told:
        validation_table([str(path), str(tmp_path / "." / ".." / tmp_path.name / "f.toml")])
    assert "each scenario once" in str(told.value)


def test_one_figure_is_told_as_one(rows):
    assert validation_text(rows[:1]).splitlines()[-1].startswith("1 figure: ")
    assert "2 figures: " in validation_text(rows[:2])


def test_the_shipped_cases_are_all_there():
    cases = {load_scenario(path).case for name, path in shipped_scenarios().items() if name.startswith("measured/")}
    wanted = {
        "d2l-torch-autopar-2gpu",
        "d2l-torch-overlap-d2h",
        "async-launch-queue-1024",
        "async-torch-compile-b200-1b",
    }
    wanted |= {"d2l-mxnet-sync-vs-async-10000", "d2l-mxnet-hybridize", "xfer-v100pcie-h2d-shmoo", "roof-elementwise-l4"}
    assert wanted <= cases
