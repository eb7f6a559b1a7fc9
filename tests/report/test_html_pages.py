"""What stands in a report (simperf.report.html): page, result, comparison, timeline, picture."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from simperf.cli import main
from simperf.engine.recorder import Sample, Span
from simperf.errors import InputError
from simperf.report.data import FailedRun
from simperf.report.html import PageSection, comparison_report, page, result_report, save_page
from simperf.report.html.timeline import MOST, timeline, timeline_data
from simperf.results import Metric, ResourceUse, Result
from simperf.run import run
from simperf.scenario import load_scenario


class _Checker(HTMLParser):
    """Collects identifiers and references, and whether what is opened is closed."""

    VOID = frozenset(("meta", "link", "br", "img", "input", "path", "use", "rect", "circle"))

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.outside = [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        for key in ("src", "href", "xlink:href"):
            value = given.get(key) or ""
            if value.startswith("#"):
                self.links.append(value[1:])
            elif value and not value.startswith("data:"):
                self.outside.append(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


#: our own markup that was escaped as a plain text is
ESCAPED = re.compile(r"&lt;/?(?:div|table|ul|dl|h3|figure|svg|details|section|pre|span)\b")


def checked(text):
    assert ESCAPED.findall(text) == []
    found = _Checker()
    found.feed(text)
    assert found.open == []
    assert found.outside == []
    assert len(set(found.ids)) == len(found.ids)
    assert set(found.links) <= set(found.ids)
    return text


@pytest.fixture(scope="module")
def overlap():
    scenario = load_scenario("d2l/copy-overlap")
    return run(scenario), scenario.machine


def test_a_run_whole_in_one_file(overlap):
    result, machine = overlap
    text = checked(result_report(result, machine=machine, command="simperf run d2l/copy-overlap"))
    for heading in (
        "Where the time went",
        "Timeline",
        "What limits it",
        "Topology",
        "Roofline",
        "What was not modelled",
    ):
        assert f">{heading}</h2>" in text
    assert "412.8 ms" in text
    assert result.question in text
    assert "seed 0" in text
    assert "simperf run d2l/copy-overlap" in text
    assert text == result_report(result, machine=machine, command="simperf run d2l/copy-overlap")


def test_what_comes_from_outside_is_escaped():
    evil = "</script><b onload=x>&"
    spans = (Span("gpu0/stream0", evil, 0.0, 1.0, "compute"),)
    result = Result(evil, 1.0, spans=spans, question=evil, metrics={evil: Metric(1.0, "s")}, notes=(evil,))
    text = checked(result_report(result, command=evil))
    assert evil not in text
    payload = re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert evil in json.loads(payload[1])["names"]


def test_sections_that_have_nothing_to_show_are_left_out():
    text = checked(result_report(Result("bare", 1e-3)))
    assert "Timeline" not in text
    assert "Nothing was recorded" in text
    assert "No 90 % interval" in text


def test_spans_are_handed_over_one_by_one_or_in_blocks_of_the_same_sum():
    few = tuple(Span("gpu0/stream0", "a", float(i), i + 0.5, "compute") for i in range(100))
    data, remark = timeline_data(Result("few", 100.0, spans=few))
    assert remark == ""
    assert len(data["rows"][0]["spans"]) == 5 * 100
    many = tuple(Span("gpu0/stream0", "a", float(i), i + 0.5, "compute") for i in range(MOST + 8000))
    long = (*many, Span("gpu0/stream0", "big", MOST + 8000.0, MOST + 12000.0, "memory"))
    data, remark = timeline_data(Result("many", MOST + 12000.0, spans=long))
    assert f"Of {len(long):,} spans, the {len(many):,}" in remark
    flat = data["rows"][0]["spans"]
    busy = sum(flat[i + 1] * flat[i + 4] for i in range(0, len(flat), 5))
    assert busy == pytest.approx(0.5 * len(many) + 4000, rel=1e-3)
    assert len(flat) // 5 < 2100


def test_a_long_run_of_many_rows_is_handed_over_in_larger_parts_and_whole_numbers(monkeypatch):
    monkeypatch.setattr("simperf.report.html.timeline.MOST_BLOCKS", 3000)
    monkeypatch.setattr("simperf.report.html.timeline.MOST", 1000)
    spans = tuple(
        Span(f"gpu{k}/s", "a", i + 0.1 * k, i + 0.1 * k + 0.4, "compute") for i in range(3000) for k in range(4)
    )
    result = Result("many", 3001.0, spans=spans)
    data, remark = timeline_data(result, most=1000)
    assert f"Of {len(spans):,} spans, the {len(spans):,}" in remark
    assert sum(len(row["spans"]) for row in data["rows"]) <= 5 * 3000
    handed = json.loads(re.search(r'<script type="application/json">(.*?)</script>', timeline(result, most=1000))[1])
    for row, packed in zip(data["rows"], handed["rows"], strict=True):
        flat, whole = row["spans"], packed["packed"]
        assert all(isinstance(one, int) for one in whole)
        starts, at = [], 0
        for i in range(0, len(whole), 5):
            at += whole[i]
            starts.append(at * handed["unit"])
        assert starts == pytest.approx(flat[::5], abs=1e-6 * result.time)
        assert [one / handed["shares"] for one in whole[4::5]] == pytest.approx(flat[4::5], abs=1e-3)


def test_links_are_rows_of_their_own():
    samples = (Sample("network", "rate a>b", 0.0, 5.0), Sample("network", "rate a>b", 1.0, 0.0))
    use = ResourceUse(kind="link", capacity=10.0, work=5.0)
    result = Result("links", 2.0, samples=samples, resources={"a>b": use})
    data, _ = timeline_data(result)
    assert data["rows"] == [{"label": "link a>b", "spans": [0.0, 1.0, 8, 0, 0.5]}]
    assert timeline(Result("none", 1.0)) == ""


def test_several_side_by_side(overlap):
    result = replace(overlap[0], answer=None)
    other = Result("slower", 1.0, not_modelled=("rain",))
    text = checked(comparison_report([result, other, FailedRun("broken", "out of memory")], command="simperf compare"))
    assert f"Fastest: {result.name}" in text
    assert "out of memory" in text
    assert "rain" in text


def test_the_name_of_a_page(tmp_path):
    text = checked(page("t", [PageSection("One", "<p>1</p>")]))
    save_page(text, tmp_path / "p.html")
    assert (tmp_path / "p.html").read_text("utf-8") == text
    with pytest.raises(InputError, match=r"\.html"):
        save_page(text, tmp_path / "p.txt")


def test_a_sweep_a_plan_and_a_collective(tmp_path, capsys):
    out = {name: tmp_path / f"{name}.html" for name in ("sweep", "collective", "wiring")}
    vary = ["--vary", "program.t1=5 us,20 us", "--vary", "program.n=10,20,40"]
    assert main(["sweep", "d2l/async", *vary, "--no-cache", "--report", str(out["sweep"])]) == 0
    some = ["-b", "1M", "-e", "4M", "-f", "2", "--report"]
    assert main(["collective", "all-reduce", "--server", "dgx-1v", "--algo", "all", *some, str(out["collective"])]) == 0
    plain = ["--ranks", "4", "--topology", "ring", "--bandwidth", "1 GB/s", "--latency", "1 us"]
    assert main(["collective", "all-reduce", *plain, *some, str(out["wiring"])]) == 0
    pages = {name: checked(path.read_text("utf-8")) for name, path in out.items()}
    assert "No winner" in pages["sweep"]
    assert "the amounts of work differ (operations: 10 to 40)" in pages["sweep"]
    assert "heatmap" in pages["sweep"]
    assert "cannot add up" in pages["collective"] or "needs one NVSwitch" in pages["collective"]
    assert "busbw" in pages["wiring"]
