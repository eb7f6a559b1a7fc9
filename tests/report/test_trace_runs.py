"""Traces of runs of every kind: nothing to complain of, and the simulator's own totals."""

import math
from collections import defaultdict

import pytest

from simperf.report.flows import arrivals
from simperf.report.lanes import rows
from simperf.report.trace import trace_bytes
from simperf.run import run
from simperf.scenario import load_scenario
from tests.report.importer import SCENARIOS, drawable, read


@pytest.fixture(scope="module", params=SCENARIOS)
def traced(request):
    name, overrides = SCENARIOS[request.param]
    result = run(load_scenario(name, overrides))
    return result, read(trace_bytes(result))


def test_there_is_nothing_to_complain_of(traced):
    _, trace = traced
    assert not trace.errors
    assert trace.other["moments not drawn"] == 0


def test_every_row_has_its_name_and_its_total(traced):
    result, trace = traced
    totals = defaultdict(list)
    for one in trace.slices:
        if one.thread != "receive" and not one.thread.endswith("launches"):
            totals[one.process, one.thread].append(one.length)
    mine = {(row.owner, row.label): row.spans for row in rows(result)}
    assert set(totals) == set(mine)
    for name, spans in mine.items():
        own = sum(span.end - span.start for span in spans) * 1e9
        assert len(totals[name]) == len(spans)
        assert sum(totals[name]) == pytest.approx(own, rel=1e-12, abs=len(spans))


def test_every_launch_and_every_send_has_its_arrow(traced):
    result, trace = traced
    received, sends = arrivals(rows(result))
    launched = [flow for flow in trace.flows if flow[0] == "launch"]
    sent = [flow for flow in trace.flows if flow[0] == "send"]
    assert sorted((effect.name, effect.start) for _, _, effect in launched) == sorted(
        (arrow.name, round(arrow.to_time * 1e9)) for arrow in drawable(result)
    )
    assert len(sent) == len(sends) == sum(len(row.spans) for row in received)
    assert all(cause.start + cause.length == effect.start for _, cause, effect in sent)
    assert trace.other["arrows not drawn"] == len(result.arrows) - len(launched)


def test_rates_add_up_to_what_each_link_has_carried(traced):
    result, trace = traced
    links = {name: use for name, use in result.resources.items() if use.kind == "link"}
    for name, use in links.items():
        samples = trace.counters["network", f"rate {name} B/s"]
        ends = [time for time, _ in samples[1:]] + [round(result.time * 1e9)]
        carried = sum(value * (end - time) for (time, value), end in zip(samples, ends, strict=True))
        assert carried / 1e9 == pytest.approx(use.work, rel=1e-6, abs=1e-9 * len(samples) * max(v for _, v in samples))
        assert ("network", f"utilisation {name} %") in trace.counters or math.isinf(use.capacity)
    used = [value for (_, name), values in trace.counters.items() if "utilisation" in name for _, value in values]
    assert all(value <= 100 * (1 + 1e-9) for value in used)
