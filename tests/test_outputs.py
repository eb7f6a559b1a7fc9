"""Figures, pages, traces and data frames of what runs and studies return (simperf.outputs and the methods on it)."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import simperf
from simperf.errors import InputError, UnknownNameError
from simperf.report.html import machine_of
from simperf.report.plots import plot
from simperf.report.trace import trace_bytes
from simperf.study.explain import Explained, ExplainedPart
from simperf.study.sensitivity import Influence, Sensitivity

MODEL = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocabulary": 8000, "sequence": 1024}
LAYOUTS = {"model": MODEL, "layouts": {"on": "dgx-a100", "gpus": 8, "batch": 8, "tp": [1, 2], "cp": 1, "microbatch": 1}}


@pytest.fixture(scope="module")
def result():
    return simperf.run("d2l/copy-overlap", set={"program.n": 4})


@pytest.fixture(scope="module")
def outcomes(result):
    request = {
        "plan": {"title": "one", "model": "resnet18", "samples": 1e6, "deadline": "10 h"},
        "candidates": {"instances": ["p3-2xlarge"], "nodes": 1, "batch_per_gpu": [32, 64]},
    }
    return {
        "result": result,
        "comparison": simperf.compare("d2l/sync-160mb"),
        "sweep": simperf.sweep("d2l/async", {"program.n": [10, 20]}, cache=False),
        "limits": simperf.limits("d2l/async", cache=False),
        "plan": simperf.plan(request, cache=False),
        "collective": simperf.collective("all-reduce", on="dgx-a100", sizes=["8K", "64M"]),
        "layouts": simperf.plan_layouts(LAYOUTS, cache=False),
        "what if": simperf.what_if("d2l/async", ["program.t2=10 us", "program.t1=5 us"]),
        "difference": Explained(
            (ExplainedPart("products", 2.0, 1.0, 3, 3), ExplainedPart("wait", 0.1, 0.3, 1, 1)), 2.1, 1.3, "gpu0"
        ),
        "influences": Sensitivity(
            "morris", "time", "s", 6, (Influence("program.t1", 2e-3, 0.0, 1e-4), Influence("program.n", 1e-3, 0.0, 0.0))
        ),
    }


NAMES = (
    "result",
    "comparison",
    "sweep",
    "limits",
    "plan",
    "collective",
    "layouts",
    "what if",
    "difference",
    "influences",
)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_drawn_and_written_with_its_title(outcomes, name, tmp_path):
    figure = outcomes[name].plot()
    assert figure.axes
    assert figure.get_suptitle() or figure.axes[0].get_title("left")
    for end in ("png", "svg"):
        outcomes[name].plot(tmp_path / f"p.{end}")
        assert (tmp_path / f"p.{end}").stat().st_size > 1000
    with pytest.raises(InputError, match=r"p\.txt: no picture format is known"):
        outcomes[name].plot(tmp_path / "p.txt")
    with pytest.raises(InputError, match=r"the name of a file is expected \(read: 3\)"):
        outcomes[name].plot(3)


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_page(outcomes, name, tmp_path):
    outcomes[name].report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert text.startswith("<!doctype html")
    assert "<h1" in text
    with pytest.raises(InputError, match=r"must end in \.html"):
        outcomes[name].report(tmp_path / "r.txt")


@pytest.mark.parametrize(
    ("name", "rows"), [("comparison", 3), ("sweep", 2), ("plan", 2), ("collective", 2), ("what if", 4)]
)
def test_each_is_a_data_frame(outcomes, name, rows):
    pytest.importorskip("pandas")
    frame = outcomes[name].to_pandas()
    assert len(frame) == rows
    assert (frame["time"] > 0).all()
    assert next(iter(outcomes["limits"].to_pandas()["resource"])) == "program.t2"


@pytest.mark.parametrize(
    ("name", "column"), [("layouts", "step"), ("difference", "difference"), ("influences", "total")]
)
def test_others_are_data_frames_too(outcomes, name, column):
    pytest.importorskip("pandas")
    assert column in outcomes[name].to_pandas().columns


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_table_in_a_notebook(outcomes, name):
    text = outcomes[name]._repr_html_()
    assert text.startswith("<table><caption>")
    assert text.count("<tr>") > 2


def test_the_picture_is_that_of_the_command(result, tmp_path):
    result.plot(tmp_path / "a.svg", kind="gantt")
    plot(result, tmp_path / "b.svg", "gantt")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(UnknownNameError, match="did you mean 'gantt'"):
        result.plot(kind="gant")


def test_the_trace_is_that_of_the_command(result, tmp_path):
    result.trace(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_bytes() == trace_bytes(result)
    assert json.loads((tmp_path / "t.json").read_text("utf-8"))["traceEvents"]
    with pytest.raises(InputError, match=r"must end in \.json"):
        result.trace(tmp_path / "t.txt")
    with pytest.raises(InputError, match="there is no timeline to write"):
        simperf.run("d2l/copy-overlap", record=False).trace(tmp_path / "t.json")


def test_every_table_of_a_result_is_a_data_frame(result):
    pytest.importorskip("pandas")
    numbers = result.to_pandas().set_index("name")
    assert numbers.value["time"] == result.time
    assert numbers.unit["time"] == "s"
    assert len(result.to_pandas("timeline")) == len(result.spans)
    assert len(result.to_pandas("samples")) == len(result.samples)
    assert set(result.to_pandas("resources").name) == set(result.resources)
    assert len(result.to_pandas("operations")) == len(result.operations)
    with pytest.raises(UnknownNameError, match="unknown table of a result 'timline'; did you mean 'timeline'"):
        result.to_pandas("timline")


def test_a_notebook_shows_the_answer_and_where_the_time_went(result):
    text = result._repr_html_()
    assert "time outside kernels" in text
    assert "of it compute" in text
    assert "compute-bound" in text
    odd = simperf.Result("<b>", 1.0)
    assert "&lt;b&gt;" in odd._repr_html_()
    assert "<b>" not in odd._repr_html_()


def test_a_page_shows_the_machine_unless_its_parts_are_elsewhere(result):
    assert machine_of(result).name == "p3-2xlarge"
    own = {"machine": {"use": "mine", "folder": "nowhere"}}
    assert machine_of(simperf.Result("one", 1.0, scenario=own)) is None
    assert machine_of(simperf.Result("one", 1.0)) is None


def test_a_missing_library_is_told_with_what_brings_it(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"pandas is not installed(.|\n)*pip install pandas"):
        result.to_pandas()


def test_a_run_loads_no_report():
    code = (
        "import simperf, sys; simperf.run('d2l/async', set={'program.n': 10});"
        "print([name for name in sys.modules if name in ('matplotlib', 'pandas') or name.startswith('simperf.report')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_libraries_that_messages_name_can_be_installed():
    package = Path(simperf.__file__).parent
    extras = tomllib.loads((package.parent / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    known = {re.match(r"[\w-]+", one)[0].lower() for each in extras.values() for one in each}
    found = set()
    for path in package.rglob("*.py"):
        for names in re.findall(r"pip install ((?:[A-Za-z][\w-]* ?)+)", path.read_text("utf-8")):
            found |= {name.lower() for name in names.split()}
    assert {"torch", "scipy", "pandas", "marimo"} <= found <= known
