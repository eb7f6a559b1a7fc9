"""The accuracy page, the page of its rows and the data file say the same, and have the constants that are listed."""

import csv
import math
import re
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from simperf.accuracy.fitted_constants import fitted_constants
from simperf.accuracy.large_table import large_rows
from simperf.accuracy.questions import QUESTIONS
from simperf.accuracy.summary import percentile_90
from simperf.report.accuracy_overview import constants_markdown
from simperf.scenario import load_scenario, shipped_scenarios
from tests.truth.ratchet import MARGIN, read_errors, size

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "accuracy.md").read_text("utf-8")
ROWS_PAGE = (DOCS / "accuracy-rows.md").read_text("utf-8")
QUOTED = "Figures that the scenarios quote"
LARGE = "Large models"


@pytest.fixture(scope="module")
def rows():
    """Rows of the data file, without recordings of clusters in a box."""
    with (DOCS / "_static" / "accuracy-rows.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["section"] != "A cluster in one box"]


def errors(rows):
    """Absolute errors in their order [%]; none of rows without a prediction."""
    return sorted(abs(float(row["error"])) for row in rows if row["error"])


def near(text, value):
    """Whether a page's number [%] is the value, as far as both are rounded: 0.1 and 0.01 %, or three digits."""
    return abs(float(text) - value) <= max(0.0551, 0.0051 * value)


def test_the_front_page_counts_the_rows_of_the_data_file(rows):
    told = re.findall(r"^\| ([^|*]+) \| (\d+) figures: median error ([\d.]+) %, 90th percentile ([\d.]+) %", PAGE, re.M)
    assert [title for title, *_ in told] == list(dict.fromkeys(row["section"] for row in rows))
    for title, figures, middle, most in told:
        found = errors([row for row in rows if row["section"] == title])
        assert int(figures) == len(found), title
        assert near(middle, median(found)), title
        assert near(most, percentile_90(found)), title


def test_questions_of_the_front_page_are_those_of_the_data_file(rows):
    line = r"^\| \*\*{}\*\* \| (\d+) \| ([\d.]+) % \| ([\d.]+) % \|.*\| (\d+) \| (\d+) \|$"
    for question in QUESTIONS:
        own = [row for row in rows if row["question"] == question]
        found = errors([row for row in own if row["class"] == "predicted"])
        (told,) = re.findall(line.format(re.escape(question)), PAGE, re.M)
        if question == "Kernels":  # those by shape are not in the file
            continue
        kinds = Counter(row["class"] for row in own)
        assert (int(told[0]), int(told[3]), int(told[4])) == (len(found), kinds["fitted"], kinds["nearly linear"])
        assert near(told[1], median(found)), question
        assert near(told[2], percentile_90(found)), question


def test_the_page_of_rows_counts_the_same_rows(rows):
    table = ROWS_PAGE.partition("| section | rows |")[2].partition("\n\n")[0]
    told = re.findall(r"^\| ([^|`]+) \| (\d+) \|$", table, re.M)
    assert {title: int(count) for title, count in told} == Counter(row["section"] for row in rows)


def test_the_page_has_the_constants_that_are_listed():
    assert constants_markdown(fitted_constants()) in PAGE


def test_scenarios_quote_the_figures_that_the_data_file_has(rows):
    found = Counter()
    for name in shipped_scenarios():
        if name.startswith("measured/"):
            scenario = load_scenario(name)
            for one in scenario.variants or (scenario,):
                found[scenario.case] += len(one.measurements)
    assert Counter(row["case"] for row in rows if row["section"] == QUOTED) == +found


def test_large_models_of_the_data_file_are_those_that_are_stored(rows):
    stored = [f"{100 * row.error:.2f}" for row in large_rows()[0] if not math.isnan(row.error)]
    assert Counter(row["error"] for row in rows if row["section"] == LARGE and row["error"]) == Counter(stored)


def test_quoted_figures_of_the_data_file_are_those_that_the_ratchet_holds(rows):
    held = Counter(entry.error for entry in read_errors("scenarios").values() if entry.error != "gone")
    own = [row["error"] or "none" for row in rows if row["section"] == QUOTED]
    assert len(own) == held.total()
    apart = zip(sorted(map(size, own)), sorted(map(size, held.elements())), strict=True)
    assert all(abs(a - b) <= MARGIN for a, b in apart if math.isfinite(a))
