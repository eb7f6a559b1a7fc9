import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.analysis.breakdown import IDLE, PRIORITY, breakdown, breakdown_by_owner
from simperf.analysis.timeline import sweep
from simperf.engine.recorder import CATEGORIES, Span
from simperf.engine.tracks import split_track
from simperf.results import Result

TRACKS = ("gpu0/stream0", "gpu0/stream1", "gpu1/stream0", "cpu0/python", "n0/gpu1/to n2/gpu0")


@st.composite
def spans(draw):
    """Spans that may touch, coincide, nest, be empty, and run past the end of the run."""
    times = st.one_of(st.integers(0, 12).map(float), st.floats(0, 12, allow_nan=False))
    rows = draw(st.lists(st.tuples(st.sampled_from(TRACKS), times, times, st.sampled_from(CATEGORIES)), max_size=25))
    return tuple(Span(track, "op", min(a, b), max(a, b), category) for track, a, b, category in rows)


def at_instant(rows, instant):
    """The rule, word for word, for one instant."""
    active = {span.category for span in rows if span.start <= instant < span.end}
    return next((category for category in PRIORITY if category in active), IDLE)


@given(rows=spans(), end=st.floats(0.1, 15))
@settings(max_examples=150, deadline=None)
def test_breakdown_is_an_exact_partition_that_follows_the_priority(rows, end):
    result = Result("random", end, spans=rows)
    found = breakdown(result)
    if not rows:
        assert found == {}
        return
    assert list(found) == [*PRIORITY, IDLE]
    assert math.fsum(found.values()) == pytest.approx(end, rel=1e-12)
    assert min(found.values()) >= 0
    cuts = sorted({0.0, end, *(min(t, end) for span in rows for t in (span.start, span.end))})
    oracle = dict.fromkeys(found, 0.0)
    for low, high in itertools.pairwise(cuts):
        oracle[at_instant(rows, low + (high - low) / 2 if high - low > 1e-12 else low)] += high - low
    assert found == pytest.approx(oracle, abs=1e-9)


@given(rows=spans(), end=st.floats(0.1, 15))
@settings(max_examples=50, deadline=None)
def test_every_owner_has_a_partition_of_its_own(rows, end):
    parts = breakdown_by_owner(Result("random", end, spans=rows))
    assert list(parts) == sorted(parts)
    for part in parts.values():
        assert math.fsum(part.values()) == pytest.approx(end, rel=1e-12)


def test_owners_are_told_apart():
    rows = (
        Span("gpu0/stream0", "f", 0, 2, "compute"),
        Span("gpu1/stream0", "g", 2, 4, "compute"),
        Span("n0/ssd0", "read", 0, 1, "storage"),
        Span("cpu0/python", "launch", 0, 0.5, "overhead"),
    )
    result = Result("two", 4.0, spans=rows)
    assert breakdown(result)["compute"] == 4.0
    parts = breakdown_by_owner(result)
    assert list(parts) == ["cpu0", "gpu0", "gpu1", "n0/ssd0"]
    assert parts["gpu0"]["compute"] == parts["gpu0"][IDLE] == 2.0
    assert parts["n0/ssd0"]["storage"] == 1.0


def test_waiting_is_idle_unless_somebody_works():
    rows = (Span("cpu0/python", "wait: item", 0, 4, "wait"), Span("gpu0/stream0", "f", 1, 3, "memory"))
    found = breakdown(Result("wait", 4.0, spans=rows))
    assert (found["memory"], found[IDLE]) == (2.0, 2.0)


def test_a_hundred_thousand_spans_add_up():
    rows = tuple(
        Span(TRACKS[i % 4], "op", i * 1e-5, i * 1e-5 + 2.5e-5, CATEGORIES[i % len(CATEGORIES)]) for i in range(100_000)
    )
    found = breakdown(Result("many", 1.0, spans=rows))
    assert math.fsum(found.values()) == pytest.approx(1.0, rel=1e-12)


def test_the_sweep_adds_up_to_the_run():
    swept = sweep(Result("one", 3.0, spans=(Span("gpu0/stream0", "f", 1, 9, "compute"),)))
    assert swept.lengths.sum() == 3.0
    assert swept.time(swept.any("compute")) == 2.0
    assert swept.time(swept.any("memory", "copy")) == 0.0


@pytest.mark.parametrize(
    ("track", "parts"),
    [
        ("gpu0", ("gpu0", "")),
        ("gpu0/stream0", ("gpu0", "stream0")),
        ("n3/gpu0/stream12", ("n3/gpu0", "stream12")),
        ("n3/gpu0/to n4/gpu1", ("n3/gpu0", "to n4/gpu1")),
    ],
)
def test_tracks_are_split(track, parts):
    assert split_track(track) == parts


@pytest.mark.parametrize(
    ("active", "winner"),
    [
        (("idle", "host", "overhead", "storage", "copy", "communication", "memory", "compute"), "compute"),
        (("wait", "host", "overhead", "storage", "copy", "communication", "memory"), "memory"),
        (("wait", "host", "overhead", "storage", "copy", "communication"), "communication"),
        (("wait", "host", "overhead", "storage", "copy"), "copy"),
        (("wait", "host", "overhead", "storage"), "storage"),
        (("wait", "host", "overhead"), "overhead"),
        (("wait", "host"), "host"),
        (("wait",), "idle"),
    ],
)
def test_the_order_of_claims(active, winner):
    rows = tuple(Span(f"t{i}", "s", 0.0, 1.0, name) for i, name in enumerate(active) if name != "idle")
    found = breakdown(Result("order", 1.0, spans=rows))
    assert {name: time for name, time in found.items() if time} == {winner: 1.0}
