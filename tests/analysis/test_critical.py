"""The critical path: its parts add up to the run's time, and it goes where the time goes."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf import load_scenario, run
from simperf.analysis.critical import critical_path
from simperf.engine.recorder import Arrow, Span
from simperf.results import Result

TRACKS = ("cpu0/python", "gpu0/stream0", "gpu1/stream0", "gpu0/to gpu1")
CATEGORIES = ("overhead", "compute", "communication", "wait", "host")


@pytest.mark.parametrize(
    "name",
    ["d2l/async", "d2l/sync-160mb", "d2l/copy-overlap", "training/ddp-or-dataparallel", "training/ps-seven-steps",
     "training/straggler", "training/fail-spares", "training/kv-priority"],
)  # fmt: skip
def test_parts_add_up_on_real_runs(name):
    scenario = load_scenario(name)
    result = run((scenario.variants or (scenario,))[-1])
    path = critical_path(result)
    assert math.fsum(part.time for part in path.parts) == pytest.approx(result.time, rel=1e-9)
    assert math.fsum(path.by_category().values()) == pytest.approx(result.time, rel=1e-9)
    assert path.segments[0].start == 0
    assert path.segments[-1].end == result.time
    assert all(a.end == b.start for a, b in zip(path.segments, path.segments[1:], strict=False))
    assert path.by_category().get("idle", 0.0) < 0.05 * result.time


spans = st.lists(
    st.tuples(
        st.sampled_from(TRACKS), st.integers(0, 40), st.integers(0, 12), st.sampled_from(CATEGORIES)
    ).map(lambda row: Span(row[0], "work", row[1] / 7, (row[1] + row[2]) / 7, row[3])),
    min_size=1,
    max_size=30,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(spans)
def test_parts_add_up_whatever_the_timeline(found):
    result = Result("any", max(8.0, *(span.end for span in found)), spans=tuple(found))
    path = critical_path(result)
    assert math.fsum(part.time for part in path.parts) == pytest.approx(result.time, rel=1e-9)
    assert all(segment.end > segment.start for segment in path.segments)


def test_launches_lead_the_path_where_the_frontend_is_slow():
    fast, slow = (run(load_scenario("d2l/async", [f"program.t1={t}", "program.n=100"])) for t in ("1 us", "90 us"))
    assert next(iter(critical_path(fast).by_category())) == "compute"
    assert next(iter(critical_path(slow).by_category())) == "overhead"


def test_an_arrow_is_followed_from_a_kernel_to_its_launch():
    found = (
        Span("cpu0/a", "launch", 0.0, 3.0, "overhead"),
        Span("cpu0/b", "other", 0.0, 3.0, "overhead"),
        Span("gpu0/stream0", "kernel", 3.0, 5.0, "compute"),
    )
    for track in ("cpu0/a", "cpu0/b"):
        result = Result("arrow", 5.0, spans=found, arrows=(Arrow("kernel", track, 3.0, "gpu0/stream0", 3.0),))
        assert critical_path(result).segments[0].track == track


def test_a_gap_is_named_by_the_wait_that_covers_it():
    found = (Span("cpu0/a", "work", 0.0, 1.0, "host"), Span("cpu0/a", "wait: answer", 1.0, 4.0, "wait"))
    (first, second) = critical_path(Result("gap", 4.0, spans=found)).segments
    assert (first.category, second.category, second.name) == ("host", "idle", "wait: answer")


def test_without_a_timeline_there_is_no_path():
    assert critical_path(Result("none", 1.0)).parts == ()
