"""Traces in Perfetto's own trace processor, where its program is at hand.

`PERFETTO_TRACE_PROCESSOR` names the program, or it is on the path as ``trace_processor_shell``;
it comes with Perfetto's releases. The Python package ``perfetto`` talks to it.
"""

import math
import os
import re
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from simperf.report.flows import receiver
from simperf.report.lanes import rows
from simperf.report.trace import save_trace, trace_bytes
from simperf.run import run
from simperf.scenario import load_scenario
from tests.report.importer import SCENARIOS, drawable, read


@pytest.fixture(scope="module")
def processor():
    program = os.environ.get("PERFETTO_TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if not program:
        pytest.skip(
            "no trace_processor_shell: name Perfetto's program in PERFETTO_TRACE_PROCESSOR or put it on the path"
        )
    found = pytest.importorskip("perfetto.trace_processor", reason="the Python package perfetto is not installed")
    return lambda path: found.TraceProcessor(
        trace=str(path), config=found.TraceProcessorConfig(bin_path=program, load_timeout=60)
    )


@pytest.fixture(scope="module", params=[*SCENARIOS, "100,000 spans"])
def loaded(request, processor, tmp_path_factory):
    name, overrides = SCENARIOS.get(request.param, ("d2l/async", ["program.n=50000"]))
    result = run(load_scenario(name, overrides))
    path = tmp_path_factory.mktemp("trace") / "trace.json.gz"
    save_trace(result, path)
    with processor(path) as found:
        yield result, found


def query(found, sql):
    return [row.__dict__ for row in found.query(sql)]


SLICES = """
    select process.name as process, thread.name as thread, slice.*
    from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
"""
#: without the moments that a trace has beside the simulator's spans
OWN = f"select * from ({SLICES}) where thread != 'receive' and thread not like '% launches'"


def test_it_loads_without_a_complaint(loaded):
    _, found = loaded
    wrong = query(found, "select * from stats where severity in ('error', 'data_loss') and value > 0")
    assert [(row["name"], row["value"]) for row in wrong] == []
    assert query(found, "select count(*) as n from slice where dur < 0") == [{"n": 0}]


def test_every_row_has_its_name_its_spans_and_its_total(loaded):
    result, found = loaded
    sql = f"""
        select process, thread, count(*) as n, sum(dur) as total, min(ts) as first, max(ts + dur) as last
        from ({OWN}) group by process, thread
    """
    mine = {(row.owner, row.label): row.spans for row in rows(result)}
    theirs = {(row["process"], row["thread"]): row for row in query(found, sql)}
    assert set(mine) == set(theirs)
    for name, spans in mine.items():
        own, row = sum(span.end - span.start for span in spans), theirs[name]
        assert row["n"] == len(spans)
        assert row["total"] == pytest.approx(own * 1e9, rel=1e-12, abs=len(spans))
        assert row["first"] == pytest.approx(min(span.start for span in spans) * 1e9, rel=1e-12, abs=0.501)
        assert row["last"] == pytest.approx(max(span.end for span in spans) * 1e9, rel=1e-12, abs=0.501)


def test_names_and_categories_have_their_totals(loaded):
    result, found = loaded
    totals = defaultdict(float)
    for span in result.spans:
        totals[span.category, span.name] += (span.end - span.start) * 1e9
    sql = f"select category, name, sum(dur) as total from ({OWN}) group by category, name"
    theirs = {(row["category"], row["name"]): row["total"] for row in query(found, sql)}
    assert theirs == pytest.approx(totals, rel=1e-12, abs=len(result.spans))


FLOWS = f"""
    select cause.name as cause, cause.process as sender, cause.ts as begun, cause.ts + cause.dur as left,
        effect.name as effect, effect.process as target, effect.thread as place, effect.ts as reached
    from flow join ({SLICES}) as cause on flow.slice_out = cause.id
        join ({SLICES}) as effect on flow.slice_in = effect.id
"""


def test_arrows_lead_from_launches_to_kernels(loaded):
    result, found = loaded
    shown = [row for row in query(found, FLOWS) if row["place"] != "receive"]
    assert sorted((row["effect"], row["left"], row["reached"]) for row in shown) == sorted(
        (arrow.name, round(arrow.from_time * 1e9), round(arrow.to_time * 1e9)) for arrow in drawable(result)
    )
    for row in shown:
        assert row["cause"] == f"launch {row['effect']}" or row["cause"].startswith("wait: ")


def test_arrows_lead_from_sends_to_arrivals(loaded):
    result, found = loaded
    sent = sorted(
        (row.owner, receiver(span, row.name), round(span.end * 1e9))
        for row in rows(result)
        for span in row.spans
        if receiver(span, row.name) and span.end > span.start
    )
    shown = [row for row in query(found, FLOWS) if row["place"] == "receive"]
    assert sorted((row["sender"], row["target"], row["reached"]) for row in shown) == sent
    assert all(row["left"] == row["reached"] and row["effect"].endswith(f"from {row['sender']}") for row in shown)


COUNTERS = """
    select process.name as process, process_counter_track.name as name, counter.ts, counter.value,
        lead(counter.ts, 1, {end}) over (partition by track_id order by counter.ts, counter.id) - counter.ts as held
    from counter join process_counter_track on counter.track_id = process_counter_track.id join process using (upid)
"""


def test_counters_have_the_simulators_values(loaded):
    result, found = loaded
    sql = f"""
        select process, name, count(*) as n, max(value) as highest, sum(value * held) as area
        from ({COUNTERS.format(end=round(result.time * 1e9))}) group by process, name
    """
    theirs = {(row["process"], row["name"]): row for row in query(found, sql)}
    assert sum(row["n"] for (_, name), row in theirs.items() if not name.startswith("utilisation")) == len(
        result.samples
    )
    for name, use in result.resources.items():
        if use.kind == "memory":
            assert theirs[name.removesuffix(" memory"), "memory held B"]["highest"] == use.work
        elif use.kind == "link":
            moved = theirs["network", f"rate {name} B/s"]
            assert moved["area"] / 1e9 == pytest.approx(use.work, rel=1e-6, abs=use.capacity * 1e-9 * moved["n"])
    for track in {sample.track for sample in result.samples if sample.name == "queue length"}:
        highest = max(sample.value for sample in result.samples if sample[:2] == (track, "queue length"))
        process, _, stream = track.rpartition("/")
        assert theirs[process, f"{stream} queue length launches"]["highest"] == highest


def test_links_show_the_share_that_is_used(loaded):
    result, found = loaded
    sql = f"""
        select name, max(value) as highest, sum(value * held) as area
        from ({COUNTERS.format(end=round(result.time * 1e9))}) where name like 'utilisation%' group by name
    """
    theirs = {row["name"]: row for row in query(found, sql)}
    links = {name: use for name, use in result.resources.items() if use.kind == "link" and math.isfinite(use.capacity)}
    assert set(theirs) == {f"utilisation {name} %" for name in links}
    changing = {sample.track for sample in result.samples if sample.name == "capacity"}
    for name, use in links.items():
        row = theirs[f"utilisation {name} %"]
        assert row["highest"] <= 100 * (1 + 1e-9)
        if name not in changing:  # a share of a capacity that changes is no share of the whole
            assert row["area"] / (result.time * 1e9) == pytest.approx(100 * use.utilisation(result.time), rel=1e-5)


def test_the_reader_of_the_other_tests_reads_the_same(loaded):
    result, found = loaded
    trace = read(trace_bytes(result))
    mine = [(one.process, one.thread, one.name, one.category, one.start, one.length, one.depth) for one in trace.slices]
    columns = "process", "thread", "name", "category", "ts", "dur", "depth"
    theirs = [tuple(row[column] for column in columns) for row in query(found, SLICES)]
    assert sorted(theirs) == sorted(mine)
    flows = sorted((cause.name, cause.start, effect.name, effect.start) for _, cause, effect in trace.flows)
    columns = "cause", "begun", "effect", "reached"
    assert sorted(tuple(row[column] for column in columns) for row in query(found, FLOWS)) == flows


def test_the_questions_of_the_page_on_traces_are_answered(loaded):
    result, found = loaded
    page = (Path(__file__).parents[2] / "docs/reference/trace.md").read_text("utf-8")
    worked, waited = re.findall(r"^```sql\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    own = sum(span.end - span.start for span in result.spans)
    assert sum(row["seconds"] for row in query(found, worked)) == pytest.approx(
        own, rel=1e-9, abs=1e-9 * len(result.spans)
    )
    delays = [arrow.to_time - arrow.from_time for arrow in drawable(result)]
    answer = query(found, waited)[0]["microseconds"]
    if all(row["cause"].startswith("launch") for row in query(found, FLOWS) if row["place"] != "receive"):
        expected = pytest.approx(1e6 * sum(delays) / len(delays), rel=1e-6, abs=1e-3) if delays else None
        assert answer == expected


def test_it_complains_of_what_is_wrong(processor, tmp_path):
    """The check can fail: an arrow that starts where its span ends starts nowhere, after a complete event."""
    span = '"name":"a","cat":"host","pid":1,"tid":1'
    events = [
        f'{{"ph":"X",{span},"ts":0,"dur":2}}',
        f'{{"ph":"X",{span},"ts":1,"dur":2}}',
        f'{{"ph":"B",{span},"ts":4}}',
        f'{{"ph":"s","id":1,{span},"ts":5}}',
        f'{{"ph":"E",{span},"ts":5}}',
        f'{{"ph":"B",{span},"ts":6}}',
        f'{{"ph":"f","bp":"e","id":1,{span},"ts":6}}',
        f'{{"ph":"E",{span},"ts":7}}',
    ]
    path = tmp_path / "wrong.json"
    path.write_text('{"traceEvents":[' + ",".join(events) + "]}")
    with processor(path) as found:
        wrong = {row["name"] for row in query(found, "select name from stats where severity = 'error' and value > 0")}
    assert wrong == {"flow_no_enclosing_slice", "slice_spill_overlapping_complete_event"}
    assert set(read(path.read_text()).errors) == {*wrong, "flow_end_without_start", "without a name"}
