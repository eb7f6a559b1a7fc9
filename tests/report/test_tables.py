import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from simperf.analysis.check import check
from simperf.engine.recorder import Span
from simperf.report.comparisons import format_comparison
from simperf.report.data import FailedRun, comparison_document, result_document, to_json
from simperf.report.tables import format_result
from simperf.report.terminal import bar
from simperf.results import Metric, OperationUse, ResourceUse, Result

DOC = Path(__file__).parents[2] / "docs" / "reference" / "json.md"


def result(name="sync", time=0.06, **changes):
    spans = (
        Span("gpu0/stream0", "matmul", 0.0, time / 2, "compute"),
        Span("gpu0/to gpu1", "send", time / 4, time * 0.75, "communication"),
    )
    values = {
        "question": "Where should gradients be added up?",
        "floors": {"bandwidth": time / 2},
        "metrics": {"throughput": Metric(1234.5678, "1/s"), "loss": Metric(0.5, "1", "fitted", 0.4, 0.6)},
        "resources": {
            "gpu0": ResourceUse("device", 1.0, time / 2),
            "sw0": ResourceUse("link", float("inf"), 160e6),
            "cpu0": ResourceUse("host", 8.0, 0.0),
        },
        "spans": spans,
        "modelled": ("links",),
        "not_modelled": ("packets",),
        "notes": ("warm-up left out",),
        "sources": {"bandwidth": "PCIe 3.0 base specification"},
        "operations": (OperationUse("matmul", "gpu0", "fp32", 3, 1e9, 1e6, 1e-3, "compute"),),
        "scenario": {"run": {"seed": 0}},
        "work": {"samples": Metric(64.0, "1")},
    }
    return Result(name, time, **{**values, **changes})


def test_one_result_says_all_that_was_asked():
    found = result()
    checks = [check(found, "time", value=0.06), check(found, "time", value=0.07)]
    text = format_result(found, checks=checks, verbose=True)
    for part in (
        "60.00 ms",
        "Where should gradients be added up?",
        "communication",
        "25.0 %",
        "compute-bound",
        "gpu0 (device), at work for 50 % of the time",
        "30.00 ms (bandwidth); the run takes 2.00x as long",
        "50 % of 30.00 ms hidden",
        "1.235 k",
        "[0.4 .. 0.6]",
        "links",
        "packets",
        "warm-up left out",
        "PCIe 3.0 base specification",
        "ok ",
        "FAILED",
        "expected 70.00 ms",
    ):
        assert part in text, part
    assert "cycle" not in text.lower()
    brief = format_result(found, checks=checks)
    assert "PCIe 3.0 base specification" not in brief
    assert "--verbose adds: 2 resources, what is modelled and what is not, sources" in brief


def test_one_result_is_one_screen_and_says_what_else_there_is():
    metrics = {f"metric {count}": Metric(float(count), "s") for count in range(60)}
    notes = tuple(f"note {count}: {'words ' * 20}" for count in range(9))
    assumed = {f"stack: key {count}": "an upstream file" for count in range(50)}
    text = format_result(result(metrics=metrics, notes=notes, assumed=assumed), width=80)
    assert 24 <= len(text.splitlines()) <= 40
    shown = sum(f"metric {count}  " in text for count in range(60))
    noted = sum(f"note {count}:" in text for count in range(9))
    listed = len(re.findall(r"key \d", " ".join(text.split())))
    said = " ".join(text.split())
    assert f"{9 - noted} notes, {60 - shown} metrics" in said
    assert f"and {50 - listed} more" in said


@pytest.mark.parametrize("width", [80, 60, 120])
def test_tables_keep_their_width_and_need_no_colour(width):
    long = "n12/gpu7>n12/nvswitch3/port-with-a-long-name"
    found = result("a-scenario-with-quite-a-long-name-" * 2, resources={long: ResourceUse("link", 1e9, 1e7)})
    for text in (
        format_result(found, width=width, color=False),
        format_comparison([found, result()], width=width, color=False, checks={0: [check(found, "time", value=1.0)]}),
    ):
        assert max(map(len, text.splitlines())) <= width
        assert "\x1b" not in text
    assert "\x1b[" in format_result(found, color=True)


def test_without_a_timeline_nothing_is_claimed():
    text = format_result(Result("bare", 1.0))
    assert "nothing was recorded on a timeline" in text
    assert "bound" not in text


def test_comparison_is_sorted_as_given_and_explains():
    slow, fast = result("slow", 0.08), result("fast", 0.06)
    text = format_comparison(
        [slow, fast], checks={0: [check(slow, "time", value=0.06)], 1: [check(fast, "time", value=0.06)]}
    )
    assert text.splitlines()[0] == "Fastest: fast, 60.00 ms"
    assert text.index("\nslow ") < text.index("\nfast ")
    assert "1.33x" in text
    assert "best" in text
    assert "FAILED (1 of 1)" in text
    assert "+20.00 ms:  compute +10.00 ms, idle" in text


def test_long_names_are_letters_that_a_list_explains():
    names = [f"each expert on {count} GPUs of a matrix, experts over four servers" for count in range(28)]
    rows = [replace(result(name), intervals={"time": (0.05, 0.07)}) for name in names]
    lines = format_comparison(rows, width=80).splitlines()
    listed = {line.split()[0]: line.partition("  ")[2].strip() for line in lines if "each expert" in line}
    assert [listed[letter] for letter in ("A", "B", "Z", "AA", "AB")] == [names[0], names[1], *names[25:]]
    assert [line for line in lines if line.startswith("  AB")] == ["  AB  50.0 ms to 70.0 ms"]
    assert max(map(len, lines)) <= 80


def test_a_run_that_failed_has_a_row_of_its_own():
    rows = [FailedRun("unbounded", "gpu0 is out of memory at 8 ms"), result("bounded")]
    text = format_comparison(rows)
    assert text.splitlines()[1].split()[:2] == ["unbounded", "failed"]
    assert "unbounded: gpu0 is out of memory at 8 ms" in text
    data = json.loads(format_comparison(rows, "json"))["results"]
    assert data[0] == {"schema": 1, "name": "unbounded", "error": "gpu0 is out of memory at 8 ms", "checks": []}
    assert data[1]["comparison"]["ratio"] == 1.0
    table = list(csv.DictReader(io.StringIO(format_comparison(rows, "csv"))))
    assert [row["error"] for row in table] == ["gpu0 is out of memory at 8 ms", ""]
    assert table[0]["time [s]"] == table[0]["metrics.throughput [1/s]"] == ""
    assert json.loads(format_comparison(rows[:1], "json"))["results"][0]["name"] == "unbounded"
    assert "failed" in format_comparison(rows[:1])


def test_the_bar_shows_something_for_something():
    assert bar(1e-9, 10, unicode=True) == "▏" + " " * 9
    assert bar(1.0, 10, unicode=True) == "█" * 10


def keys(value, path=""):
    """Every key of a document, with ``*`` for names and ``[]`` for lists."""
    free = {
        "metrics",
        "work",
        "resources",
        "breakdown_by_owner",
        "overlap",
        "floors",
        "breakdown",
        "sources",
        "scenario",
        "comparison.changes",
    }
    found = set()
    if isinstance(value, dict):
        for key, item in value.items():
            here = f"{path}.*" if path in free else f"{path}.{key}".lstrip(".")
            if path in free and path not in ("metrics", "work", "resources", "overlap"):
                continue
            found |= {here} | keys(item, here)
    elif isinstance(value, list):
        for item in value:
            found |= keys(item, f"{path}[]")
    return found


def test_every_json_key_is_documented_and_every_documented_key_is_there():
    found = result()
    checks = {0: [check(found, "time", value=0.06)]}
    row = comparison_document([found], checks)["results"][0]
    assert set(row) - {"comparison"} == set(result_document(found))
    written = {key for key in keys(row) if not key.endswith("*") and not key.endswith("[]")}
    rows = [
        line.split("|")[1] for line in DOC.read_text().partition("## CSV")[0].splitlines() if line.startswith("| `")
    ]
    documented = {key for cell in rows for key in re.findall(r"`([^`]+)`", cell)}
    assert written == {key for key in documented if key not in ("overlap.communication", "overlap.copy")}


def test_json_is_strict_and_has_si_numbers():
    found = result()
    text = format_result(found, "json", checks=[check(found, "time", low=0.01)])
    data = json.loads(text, parse_constant=pytest.fail)
    assert data["time"] == 0.06
    assert data["resources"]["sw0"]["capacity"] is None
    assert data["checks"][0]["high"] is None
    assert sum(data["breakdown"].values()) == pytest.approx(0.06, rel=1e-12)
    loaded = Result.from_dict(json.loads(found.to_bytes()))
    assert json.loads(to_json(result_document(loaded))) == json.loads(to_json(result_document(found)))


def test_csv_has_one_row_a_result_at_full_precision():
    results = [result("slow", 0.1 + 0.2), result("fast", 0.06, metrics={})]
    rows = list(csv.DictReader(io.StringIO(format_comparison(results, "csv"))))
    assert [row["name"] for row in rows] == ["slow", "fast"]
    assert float(rows[0]["time [s]"]) == 0.1 + 0.2
    assert rows[0]["metrics.throughput [1/s]"] == "1234.5678"
    assert rows[1]["metrics.throughput [1/s]"] == ""
    assert sum(float(rows[1][key]) for key in rows[1] if key.startswith("breakdown.")) == pytest.approx(0.06)


def test_names_with_commas_are_listed_as_letters():
    results = [replace(result(), name=name) for name in ("a", "b, slower")]
    text = format_comparison(results, differences={f"program.k{i}": ["10 us", "20 us"] for i in range(4)}, width=80)
    assert "program.k0  10 us (A); 20 us (B)" in text
    assert "B  b, slower" in text


def test_tables_import_no_pictures():
    code = (
        "import sys; import simperf.report.tables; "
        "bad = {'matplotlib', 'rich', 'scipy', 'pandas', 'torch'} & set(sys.modules); sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_time_just_above_its_lower_bound_is_not_said_to_be_once_that():
    from dataclasses import replace

    from simperf import load_scenario, run

    result = run(load_scenario("d2l/async"))
    floor = result.floor[1]
    for ratio, words in ((1.0, "takes no longer"), (1.0004, "takes 0.04 % longer"), (1.2, "takes 1.20x as long")):
        assert words in format_result(replace(result, time=floor * ratio), "table")
