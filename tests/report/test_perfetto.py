"""Traces in Perfetto's own trace processor, where its program is at hand (PERFETTO_TRACE_PROCESSOR, or on the path)."""

import os
import shutil

import pytest

from simperf.report.trace import save_trace
from simperf.run import run
from simperf.scenario import load_scenario


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    program = os.environ.get("PERFETTO_TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
    if not program:
        pytest.skip("no trace_processor_shell: the perfetto package would download it")
    trace_processor = pytest.importorskip("perfetto.trace_processor", reason="the perfetto package is not installed")
    result = run(load_scenario("d2l/copy-overlap"))
    path = tmp_path_factory.mktemp("trace") / "overlap.json"
    save_trace(result, path)
    config = trace_processor.TraceProcessorConfig(bin_path=program)
    with trace_processor.TraceProcessor(trace=str(path), config=config) as found:
        yield result, found


def rows(found, sql):
    return [row.__dict__ for row in found.query(sql)]


def test_it_loads_without_an_error_in_its_statistics(loaded):
    _, found = loaded
    assert rows(found, "select name, value from stats where severity = 'error' and value > 0") == []


def test_sql_gives_the_simulators_own_totals(loaded):
    result, found = loaded
    totals = {
        row["name"]: row["total"] for row in rows(found, "select name, sum(dur) as total from slice group by name")
    }
    for name in {span.name for span in result.spans}:
        own = sum(span.end - span.start for span in result.spans if span.name == name)
        assert totals[name] == pytest.approx(own * 1e9, rel=1e-6, abs=len(result.spans))


def test_arrows_lead_from_launch_to_kernel(loaded):
    result, found = loaded
    assert rows(found, "select count(*) as n from flow")[0]["n"] == len(result.arrows)
