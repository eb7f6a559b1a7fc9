"""Tables and pictures of sweeps, limits and plans."""

import pytest

from simperf import limits, make_scenario
from simperf.errors import InputError, UnknownNameError
from simperf.report.limits import draw_limits, format_limits
from simperf.report.phrases import numbers
from simperf.report.plans import draw_plan, format_plan
from simperf.report.studies import format_table
from simperf.report.sweeps import draw_table
from simperf.study.pareto import pareto_front
from simperf.study.planning import make_request, plan
from simperf.study.table import Table, check_output


def row(point, gpus, batch, time, **more):
    metrics = {"samples per second": [batch * gpus / time, "1/s"], "cost per step": [gpus * time / 3600, "USD"]}
    metrics["cost per million samples"] = [1e6 * metrics["cost per step"][0] / (batch * gpus), "USD"]
    found = {
        "point": point,
        "set": {"program.gpus": gpus, "program.batch": f"{batch} MB"},
        "seed": point,
        "error": None,
    }
    return found | {"time": time, "regime": "", "limited_by": "gpu0", "floor": 0.0, "metrics": metrics} | more


ROWS = tuple(
    row(i, g, b, 1.0 + 0.01 * g + b / 10) for i, (g, b) in enumerate((g, b) for g in (1, 2, 4) for b in (8, 16))
)
TABLE = Table(ROWS, ("program.gpus", "program.batch"), "Sweep")


def labels(figure):
    return [axes.get_ylabel() for axes in figure.axes]


def test_scaling_has_an_ideal_line_and_an_efficiency():
    figure = draw_table(TABLE, "scaling")
    left, right = figure.axes[:2]
    ideal = [line for line in left.get_lines() if line.get_linestyle() == "--"]
    assert len(ideal) == 2
    assert list(ideal[0].get_ydata()) == pytest.approx([x * ideal[0].get_ydata()[0] for x in (1, 2, 4)])
    shares = right.get_lines()[0].get_ydata()
    assert shares[0] == 100
    assert all(share < 100 for share in shares[1:])


def test_lines_show_intervals_as_bands():
    rows = tuple(r | {"intervals": {"time": [r["time"] * 0.9, r["time"] * 1.1]}} for r in ROWS)
    figure = draw_table(Table(rows, TABLE.keys, "Sweep"), "lines")
    assert len(figure.axes[0].collections) == 2
    assert labels(figure) == ["time [s]"]


def test_a_heat_map_has_a_cell_a_point_and_marks_failures():
    broken = (*ROWS[:-1], {key: ROWS[-1][key] for key in ("point", "set", "seed")} | {"error": "no"})
    texts = [text.get_text() for text in draw_table(Table(broken, TABLE.keys), "heatmap").axes[0].texts]
    assert len(texts) == 6
    assert texts.count("failed") == 1


def test_the_front_of_time_and_cost():
    points = [(1.0, 9.0), (2.0, 5.0), (3.0, 6.0), (4.0, 1.0)]
    assert pareto_front(points) == [0, 1, 3]
    assert "Pareto-optimal" in draw_table(TABLE, "pareto").axes[0].get_legend().texts[0].get_text()


def test_pictures_that_make_no_sense():
    with pytest.raises(UnknownNameError):
        draw_table(TABLE, "pie")
    with pytest.raises(InputError, match="two keys"):
        draw_table(Table(ROWS, ("program.gpus",)), "heatmap")
    text = Table(tuple(r | {"set": {"program.s": "ring"}} for r in ROWS), ("program.s",))
    with pytest.raises(InputError, match="numbers above 0"):
        draw_table(text, "scaling")


def test_a_table_shows_intervals_units_and_errors():
    rows = (*ROWS[:2], {"point": 2, "set": ROWS[2]["set"], "seed": 2, "error": "no memory\nmore"})
    rows[0]["intervals"] = {"time": [1.0, 1.2]}
    text = format_table(Table(rows, TABLE.keys, "Sweep"))
    del rows[0]["intervals"]
    assert "1.810 s [1.000 s .. 1.200 s]" in text
    assert "no memory" in text
    assert "more" not in text


def test_columns_and_best():
    assert TABLE.best()["point"] == 0
    assert TABLE.best("samples per second", highest=True)["point"] == 5
    assert TABLE.unit("metrics.cost per step") == "USD"
    with pytest.raises(UnknownNameError):
        TABLE.column("beauty")
    assert "<table>" in TABLE._repr_html_()
    assert "6 points" in repr(TABLE)
    with pytest.raises(InputError, match="no known format"):
        check_output("table.xls")


def test_a_data_frame():
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = TABLE.to_pandas()
    assert list(frame.columns) == list(TABLE.columns)
    assert TABLE.to_bytes(".parquet") == TABLE.to_bytes(".parquet")


def test_limits_in_words_and_as_a_tornado():
    found = limits(
        make_scenario({"program": {"use": "async-chain", "n": 20, "t1": "5 us", "t2": "20 us"}}), cache=False
    )
    text = format_limits(found)
    assert "program.t2" in text
    names = [label.get_text() for label in draw_limits(found).axes[1].get_yticklabels()]
    assert names[0] == "program.t2"


def test_a_plan_in_words_and_as_a_picture():
    request = make_request(
        {
            "plan": {"title": "Job", "model": "resnet18", "samples": 1e6, "deadline": "5 h", "budget": "90 USD"},
            "candidates": {"instances": ["p3-2xlarge", "g4dn-xlarge"], "nodes": 1, "batch_per_gpu": [64, 4096]},
        }
    )
    found = plan(request, cache=False)
    text = format_plan(found)
    for words in ("Job", "5.00 h", "90.00 USD", "Not simulated (2)", "needs", "as of 2026-01-21"):
        assert words in text
    assert draw_plan(found).axes[0].get_xlabel() == "time [h]"


def test_scaling_heat_map_and_pareto_show_intervals_too():
    def around(value):
        return [value * 0.9, value * 1.1]

    rows = tuple(
        r | {"intervals": {"time": around(r["time"])} | {name: around(v) for name, (v, _) in r["metrics"].items()}}
        for r in ROWS
    )
    table = Table(rows, TABLE.keys)
    assert any(".." in text.get_text() for text in draw_table(table, "heatmap").axes[0].texts)
    assert draw_table(table, "scaling").axes[0].collections
    drawn, bare = (len(draw_table(one, "pareto").axes[0].lines) for one in (table, TABLE))
    assert drawn == bare + 2 * len(rows)


def test_axes_have_units_in_which_numbers_are_short():
    rows = [row(i, 1, 1, t) | {"set": {"program.t1": f"{10 * i} us"}} for i, t in enumerate((0.2, 0.3, 0.5))]
    (axes,) = draw_table(Table(rows, ("program.t1",), "Sweep"), "lines").axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("program.t1 [µs]", "time [ms]")
    assert list(axes.lines[0].get_xdata()) == pytest.approx([0, 10, 20])
    assert list(axes.lines[0].get_ydata()) == pytest.approx([200, 300, 500])
    rows = [{**one, "set": {"program.nbytes": f"{i + 1} MB"}} for i, one in enumerate(rows)]
    rows = [
        {**one, "metrics": {"busbw": [1e10 * (i + 1), "B/s"], "bytes a joule": [1e7, "1"]}}
        for i, one in enumerate(rows)
    ]
    table = Table(rows, ("program.nbytes",), "Sweep")
    (axes,) = draw_table(table, "lines", metric="busbw").axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("program.nbytes [MB]", "busbw [GB/s]")
    assert list(axes.lines[0].get_ydata()) == pytest.approx([10, 20, 30])
    figure = draw_table(table, "lines", metric="bytes a joule")
    figure.draw_without_rendering()
    assert "10M" in [text.get_text() for text in figure.axes[0].get_yticklabels()]


def test_an_efficiency_of_one_is_not_cut_off():
    right = draw_table(TABLE, "scaling").axes[1]
    assert right.get_ylim()[1] >= 104


def test_candidates_are_words_that_begin_with_a_number():
    assert numbers(["2.17 h", "33.8 min", "1.5x", "-3 %", "+1", "12", ""])
    assert not numbers(["1 x p4d-24xlarge, ddp", "12 x dgx-1v"])
    assert not numbers(["ring", "2"])
