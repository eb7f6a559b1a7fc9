"""The parts that reports are made of: counters in the timeline, scaling, staleness, what limits, the machine."""

import re
from dataclasses import replace

import pytest

from simperf.analysis.scaling import Scaled, ScalingCurve
from simperf.engine.recorder import Sample, Span
from simperf.errors import InputError
from simperf.hardware import Catalog, build_machine
from simperf.report.html import comparison, comparison_report, plan_report, result_report
from simperf.report.html.limiting import limiting_part
from simperf.report.html.machine import machine_part
from simperf.report.html.page import numeric, table
from simperf.report.html.picture import on_page
from simperf.report.html.scaling import scaling_part
from simperf.report.html.steps import counter_rows
from simperf.report.html.timeline import timeline, timeline_data
from simperf.report.scaling import draw_scaling
from simperf.report.staleness import ages, draw_staleness
from simperf.results import Metric, ResourceUse, Result
from simperf.run import run
from simperf.scenario import load_scenario
from simperf.study.planning import make_request, plan
from tests.report.test_html_pages import checked

SPANS = (Span("gpu0/stream0", "a", 0.0, 4.0, "compute"), Span("gpu1/stream0", "b", 0.0, 4.0, "compute"))


def counted(*values, track="gpu0/stream0", name="queue length"):
    return tuple(Sample(track, name, float(time), float(value)) for time, value in enumerate(values))


def test_queues_are_lanes_of_the_timeline_below_their_device():
    samples = (*counted(1, 3, 0, 2), *counted(5e6, 1e6, track="gpu1", name="memory held"))
    data, remark = timeline_data(Result("r", 4.0, spans=SPANS, samples=samples))
    labels = [row["label"] for row in data["rows"]]
    assert labels == ["gpu0 stream0", "gpu0 stream0 queue", "gpu1 stream0", "gpu1 memory"]
    queue, memory = data["rows"][1], data["rows"][3]
    assert queue["steps"] == [0, 1, 1, 1, 3, 3, 2, 0, 0, 3, 2, 2, 4, 2, 2]
    assert (queue["top"], queue["unit"]) == (3, "1")
    assert (memory["top"], memory["unit"]) == (5e6, "B")
    assert remark == ""


def test_long_counters_keep_the_lowest_and_the_highest_of_each_part_and_say_so():
    samples = tuple(Sample("gpu0/stream0", "queue length", i * 1e-3, float(i % 7)) for i in range(50_000))
    rows, told = counter_rows(Result("r", 50.0, spans=SPANS, samples=samples))
    (row,) = rows["gpu0"]
    assert len(row["steps"]) == 3 * 2001
    assert set(row["steps"][1::3]) == {0.0}
    assert set(row["steps"][2::3]) == {6.0}
    assert "2,000th" in told


def test_of_many_counters_the_highest_are_shown_and_the_others_told():
    samples = tuple(Sample(f"gpu{i}/stream0", "queue length", 0.0, float(i + 1)) for i in range(11))
    rows, told = counter_rows(Result("r", 1.0, samples=samples))
    assert set(rows) == {f"gpu{i}" for i in range(3, 11)}
    assert "the 8 highest of 11" in told


def test_counters_of_a_cluster_are_named_as_the_rows_of_spans_are():
    spans = (Span("n3/gpu0/stream1", "a", 0.0, 1.0, "compute"),)
    samples = counted(1, 2, track="n3/gpu0/stream1")
    data, _ = timeline_data(Result("r", 2.0, spans=spans, samples=samples))
    assert [row["label"] for row in data["rows"]] == ["n3/gpu0 stream1", "n3/gpu0 stream1 queue"]


def test_an_interval_stands_below_the_answer_and_beside_every_metric_that_has_one():
    metrics = {"samples per second": Metric(100.0, "1/s"), "GPUs": Metric(8.0, "1")}
    intervals = {"time": (3.9, 4.2), "samples per second": (95.0, 104.0)}
    text = checked(result_report(Result("r", 4.0, spans=SPANS, metrics=metrics, intervals=intervals)))
    assert "90 % interval: 3.90 s to 4.20 s." in text
    assert "95.00 /s to 104.0 /s" in text
    assert "No 90 % interval" not in text


def test_why_there_is_no_interval_is_said_as_it_is():
    told = Result("r", 4.0, spans=SPANS, no_interval="nobody published such runs")
    assert "No 90 % interval: nobody published such runs." in result_report(told)
    rate = replace(told, no_interval="", intervals={"rate": (1.0, 2.0)}, interval_sources={"figures": "of rates"})
    assert "No 90 % interval: published figures are of rate, not of time." in result_report(rate)


def test_what_an_interval_is_made_of_stands_behind_it():
    made = {"published figures": "errors of 9 figures", "draws": "20"}
    text = result_report(Result("r", 4.0, spans=SPANS, intervals={"time": (3.0, 5.0)}, interval_sources=made))
    assert "90 % interval: 3.00 s to 5.00 s, from published figures: errors of 9 figures; draws: 20." in text


def test_of_too_many_rows_sends_are_put_together_before_streams_are():
    nodes = [f"gpu{i}" for i in range(10)]
    streams = tuple(Span(f"{node}/stream{k}", "a", 0.0, 1.0, "compute") for node in nodes for k in range(2))
    sends = tuple(Span(f"{a}/to {b}", "send", 1.0, 2.0, "communication") for a in nodes for b in nodes if a != b)
    data, remark = timeline_data(Result("r", 2.0, spans=streams + sends))
    labels = [row["label"] for row in data["rows"]]
    assert labels[:3] == ["gpu0 stream0", "gpu0 stream1", "gpu0 all 9 sends"]
    assert len(labels) == 30
    assert "110 rows are put together: all sends" in remark
    many = tuple(Span(f"gpu{i}/stream{k}", "a", 0.0, 1.0, "compute") for i in range(70) for k in range(2))
    data, remark = timeline_data(Result("r", 2.0, spans=many))
    assert len(data["rows"]) == 64
    assert "140 rows are put together into one a device" in remark
    assert "The first 64 of 70 are shown" in remark


def test_a_link_is_whole_until_its_capacity_changes():
    use = ResourceUse(kind="link", capacity=10e9, work=1.0)
    samples = (Sample("a>b", "capacity", 1.0, 0.0), Sample("a>b", "capacity", 2.0, 10e9))
    rows, _ = counter_rows(Result("flap", 4.0, samples=samples, resources={"a>b": use}))
    assert rows["a>b"][0]["steps"][:6] == [0, 10e9, 10e9, 1, 0, 0]


def test_the_timeline_is_told_in_numbers_for_who_does_not_see_it():
    text = checked(timeline(Result("r", 8.0, spans=SPANS, samples=counted(1, 3))))
    assert "<details><summary>The timeline in numbers</summary>" in text
    assert "<td>gpu0 stream0</td>" in text
    assert ">50.0 %</td>" in text


def test_scaling_in_a_picture_and_in_numbers():
    points = (Scaled(1, 1.0, 1.0), Scaled(8, 0.2, 0.125, (0.18, 0.22)))
    line = ScalingCurve("gpus", "", "time per step", "in proportion", points)
    text = checked(scaling_part([line], remarks=["also run with gpus = 1"]))
    assert "62.5 %" in text
    assert "180.0 ms to 220.0 ms" in text
    assert "also run with gpus = 1" in text
    left, right = draw_scaling([line]).axes
    drawn = {entry.get_label(): list(entry.get_ydata()) for entry in left.get_lines()}
    assert drawn["ideal"] == pytest.approx([1.0, 0.125])
    assert list(right.get_lines()[0].get_ydata()) == pytest.approx([100, 62.5])
    assert scaling_part([]) == ""
    with pytest.raises(InputError):
        draw_scaling([])


def test_staleness_over_time_and_how_often():
    samples = counted(0, 3, 3, 1, track="servers", name="staleness")
    result = Result("async", 4.0, spans=SPANS, samples=samples)
    assert ages(result) == [(0.0, 0.0), (1.0, 3.0), (2.0, 3.0), (3.0, 1.0)]
    bars = draw_staleness(result).axes[1].patches
    assert {round(bar.get_x() + 0.4): bar.get_height() for bar in bars} == {0: 25, 1: 25, 3: 50}
    assert ">Staleness</h2>" in checked(result_report(result))
    with pytest.raises(InputError, match="no gradient has an age"):
        draw_staleness(Result("sync", 1.0, spans=SPANS))


def test_real_ages_are_those_of_the_metrics():
    result = run(load_scenario("training/async-staleness", ["program.mode=asynchronous"]))
    found = [age for _, age in ages(result)]
    assert sum(found) / len(found) == pytest.approx(result.metrics["staleness mean"].value)
    assert max(found) == result.metrics["staleness highest"].value
    assert ages(run(load_scenario("training/async-staleness", ["program.mode=synchronous"]))) == []


def test_what_limits_has_the_critical_path_and_its_parts_add_up():
    text = checked(limiting_part(Result("r", 8.0, spans=SPANS)))
    assert "critical path" in text
    assert ">50.0 %</td>" in text
    assert "critical path" not in limiting_part(Result("r", 8.0))


def test_the_machine_is_told_with_its_sources():
    catalog = Catalog.load()
    text = checked(machine_part(catalog.machine("dgx-1v")))
    for part in ("v100-sxm2-16gb", "nvlink2", "pcie3-x16"):
        assert part in text
    assert catalog.link("pcie3-x16").source("rate") in text
    cluster = checked(machine_part(catalog.machine("dgx-1v-x4")))
    assert "4 servers, 32 GPUs" in cluster
    own = {"node": [{"id": "gpu0", "gpu": "l4"}, {"id": "cpu0", "cpu": "epyc-7742"}]}
    own["link"] = [{"a": "gpu0", "b": "cpu0", "bandwidth": "1 GB/s", "latency": "1 us"}]
    assert "own file" in machine_part(build_machine(own, catalog))
    assert machine_part(None) == ""


def test_a_comparison_shows_its_runs_whole_and_says_what_all_share_once():
    scenario = load_scenario("d2l/copy-overlap")
    results = [run(variant) for variant in scenario.variants]
    machines = [variant.machine for variant in scenario.variants]
    text = checked(comparison_report(results, machines=machines, command="simperf compare d2l/copy-overlap"))
    assert text.count(">Roofline</h3>") == min(4, sum(bool(result.operations) for result in results))
    assert text.count(">Topology</h3>") == min(4, len(results))
    assert text.count(">What was modelled</h2>") == 1
    assert "Where the numbers come from" in text


def test_numbers_stand_to_the_right_and_empty_columns_go():
    rows = [["a", "5 ms", "-", ""], ["b", "-1 us", "3", ""]]
    assert numeric(rows) == [1, 2]
    text = table(("name", "time", "n", "interval"), rows, caption="c", numbers=numeric(rows), optional=(3,))
    assert "interval" not in text
    assert '<td class="n">5 ms</td><td class="n">-</td>' in text


def test_pictures_keep_their_colours_in_the_file_and_turn_with_the_page():
    line = ScalingCurve("gpus", "", "time", "ideal", (Scaled(1, 1.0, 1.0),))
    text = checked(on_page(lambda: draw_scaling([line]), name="p", text="t"))
    assert "currentColor" not in text
    assert 'class="picture turned"' in text


def test_pictures_are_as_wide_as_the_page_and_drawn_for_a_phone_too():
    line = ScalingCurve("gpus", "", "time", "ideal", (Scaled(1, 1.0, 1.0), Scaled(2, 0.6, 0.5)))
    text = on_page(lambda: draw_scaling([line]), name="p", text="t")
    found = re.findall(r"<svg ([^>]*)>", text)
    assert [float(re.search('viewBox="0 0 ([\\d.]+) ', each)[1]) for each in found] == pytest.approx(
        [8.0 * 72, 4.2 * 72]
    )
    assert [re.search('class="(.*?)"', each)[1] for each in found] == ["desk", "phone"]
    assert not any(re.search(r"\b(width|height)=", each) for each in found)


def test_a_plan_shows_its_winner_in_detail():
    request = make_request(
        {
            "plan": {"model": "resnet18", "samples": 1_281_167, "epochs": 1, "deadline": "10 h"},
            "candidates": {"instances": ["p3-8xlarge"], "nodes": [1, 2], "batch_per_gpu": 64},
        }
    )
    found = plan(request, cache=False)
    first = found.scenario(1)
    text = checked(plan_report(found, winner=run(first), machine=first.machine, command="simperf plan"))
    for heading in (
        "Ranking",
        "Scaling",
        "Prices",
        "Winner",
        "What is not counted",
    ):
        assert f">{heading}</h2>" in text
    for heading in ("Timeline", "What limits it"):
        assert f">{heading}</h3>" in text
    assert re.search("<nav.*</nav>", text)[0].count("Winner") == 1
    assert "Which machines train resnet18" in text
    assert "90 % intervals from published figures" in text


def test_the_answer_of_a_comparison_leads_to_its_winner_which_is_shown_whole():
    spans = (Span("gpu0/stream0", "a", 0.0, 1.0, "compute"),)
    results = [Result(f"run {i}", 9.0 - i, spans=spans) for i in range(8)]
    text = checked(comparison_report(results))
    assert '<h1 class="answer"><a href="#run-7">Fastest: run 7, 2.000 s</a></h1>' in text
    assert text.count('href="#run-7"') == 2  # the contents have it, too
    assert 'id="r7-timeline"' in text
    assert sum(f'id="r{i}-timeline"' in text for i in range(8)) == 4
    assert text.count("Timelines and pictures are shown for the best run") == 4


def test_a_run_without_its_timeline_says_why_and_what_shows_it(monkeypatch):
    monkeypatch.setattr(comparison, "_ROOM", 0)
    spans = (Span("gpu0/stream0", "a", 0.0, 1.0, "compute"),)
    results = [Result(f"run {i}", 9.0 - i, spans=spans) for i in range(2)]
    text = checked(comparison_report(results, command="simperf compare d2l/async --report a.html"))
    assert text.count("The timeline and the pictures of this run are left out to keep the page small.") == 2
    assert "simperf run d2l/async --variant &#39;run 1&#39; --report run.html" in text
    changed = comparison_report(results, command="simperf compare d2l/async --set program.n=3 --report a.html")
    assert "--variant" not in changed


def test_a_divided_model_has_its_passes_its_stages_and_its_memory():
    result = run(load_scenario("large/pipeline-of-four").variants[1])
    text = checked(result_report(result))
    for heading in ("Pipeline", "Stages", "Memory over time"):
        assert f">{heading}</h2>" in text
    assert ">stage 0: kernels</td>" not in text  # the stages have a table of their own
    assert not any("pass" in row["label"] for row in timeline_data(result)[0]["rows"])
    assert result_report(result) == text


def test_operations_that_are_alike_on_several_devices_are_one_row():
    result = run(load_scenario("large/pipeline-of-four").variants[1])
    text = result_report(result)
    assert text.count("<td>adam</td>") == 1
    assert "<td>4 devices</td>" in text
