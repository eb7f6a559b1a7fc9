"""The trace against what Perfetto's importer does with it, by the reader beside this file."""

import gzip
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Arrow, Recorder, Sample, Span
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution import launch, synchronize
from simperf.execution.session import Session
from simperf.report.lanes import allocate, natural, rows
from simperf.report.trace import save_trace, trace_bytes
from simperf.results import ResourceUse, Result
from tests.report.importer import read


@pytest.fixture(scope="module")
def chain():
    """50 kernels on two streams behind a short queue, played by the real engine."""
    recorder = Recorder()
    simulation = Simulation(recorder=recorder, depth=4)
    session = Session(simulation)

    def program(m):
        for i in range(50):
            kernel = Kernel(f"k{i % 3}", 7e-6 / 3, launch=1e-6 / 3, holds=1e6)
            yield launch(kernel, m.gpu().stream(i % 2))
        yield synchronize()

    time = session.play(program(session))
    return Result(
        "chain", time, spans=tuple(recorder.spans), samples=tuple(recorder.samples), arrows=tuple(recorder.arrows)
    )


def test_round_trip_keeps_every_span_and_its_times(chain):
    trace = read(trace_bytes(chain))
    assert not trace.errors
    found = sorted((f"{one.process}/{one.thread}", one.name, one.start, one.start + one.length) for one in trace.slices)
    wanted = sorted((span.track, span.name, span.start, span.end) for span in chain.spans)
    assert len(found) == len(wanted)
    for mine, span in zip(found, wanted, strict=True):
        assert mine[:2] == span[:2]
        assert mine[2:] == pytest.approx([span[2] * 1e9, span[3] * 1e9], rel=0, abs=0.5001)


def test_arrows_go_from_the_launch_to_its_kernel(chain):
    trace = read(trace_bytes(chain))
    assert not trace.errors
    assert len(trace.flows) == 50 - trace.other["arrows not drawn"] == 50
    for name, source, target in trace.flows:
        assert name == "launch"
        assert target.name.startswith("k")
        assert source.name in (f"launch {target.name}", "wait: launch queue full")
        assert source.start + source.length <= target.start


def test_counters_have_names_and_units(chain):
    trace = read(trace_bytes(chain))
    assert set(trace.counters) == {
        ("gpu0", "stream0 queue length launches"),
        ("gpu0", "stream1 queue length launches"),
        ("gpu0", "memory held B"),
    }
    assert sum(len(values) for values in trace.counters.values()) == len(chain.samples)


def test_processes_and_threads_are_named_in_order(chain):
    assert read(trace_bytes(chain)).order == ["cpu0", "gpu0", "python", "stream0", "stream1"]


def test_launches_that_take_no_time_have_their_arrows():
    launches = [Span("cpu0/python", "launch k", 0.0, 0.0, "overhead")] * 3
    kernels = [Span("gpu0/stream0", "k", float(i), i + 1.0, "compute") for i in range(3)]
    arrows = tuple(Arrow("k", "cpu0/python", 0.0, "gpu0/stream0", float(i)) for i in range(3))
    trace = read(trace_bytes(Result("free", 3.0, spans=(*launches, *kernels), arrows=arrows)))
    assert not trace.errors
    assert [target.start for _, _, target in trace.flows] == [0, 1e9, 2e9]
    assert len({id(source) for _, source, _ in trace.flows}) == 3
    assert all(source.length == 0 for _, source, _ in trace.flows)


def test_more_moments_than_a_viewer_nests_are_counted():
    launches = [Span("cpu0/python", "launch k", 0.0, 0.0, "overhead")] * 700
    kernels = [Span("gpu0/stream0", "k", float(i), i + 1.0, "compute") for i in range(700)]
    arrows = tuple(Arrow("k", "cpu0/python", 0.0, "gpu0/stream0", float(i)) for i in range(700))
    trace = read(trace_bytes(Result("free", 700.0, spans=(*launches, *kernels), arrows=arrows)))
    assert not trace.errors
    assert len(trace.of("python")) == 700 - trace.other["moments not drawn"] == 256
    assert len(trace.flows) == 700 - trace.other["arrows not drawn"] == 256


def test_sends_lead_to_where_their_bytes_arrive():
    spans = (
        Span("gpu0/send", "to gpu1", 0.0, 2e-6, "communication"),
        Span("gpu2/to gpu1", "push", 1e-6, 2e-6, "communication"),
        Span("cpu0/to gpu1", "batch", 1e-6, 3e-6, "copy"),
        Span("gpu1/to gpu1", "nowhere", 1e-6, 3e-6, "communication"),
        Span("gpu0/stream0", "to gpu1", 1e-6, 3e-6, "compute"),
        Span("gpu1/to gpu3", "in no time", 3e-6, 3e-6, "communication"),
    )
    trace = read(trace_bytes(Result("sends", 3e-6, spans=spans)))
    assert not trace.errors
    arrived = [(one.process, one.name, one.start, one.length) for one in trace.of("receive")]
    assert arrived == [
        ("gpu1", "from gpu0", 2000, 0),
        ("gpu1", "push from gpu2", 2000, 0),
        ("gpu1", "batch from cpu0", 3000, 0),
        ("gpu3", "in no time from gpu1", 3000, 0),
    ]
    pairs = [(name, source.process, target.process, target.name) for name, source, target in trace.flows]
    assert pairs == [
        ("send", "gpu0", "gpu1", "from gpu0"),
        ("send", "gpu2", "gpu1", "push from gpu2"),
        ("send", "cpu0", "gpu1", "batch from cpu0"),
    ]
    assert trace.other["arrows not drawn"] == 1  # an arrow within one moment cannot be bound


@pytest.mark.parametrize("launcher", ["cpu0/python", "gpu1/python"])
def test_an_effect_may_begin_with_its_cause(launcher):
    spans = (Span(launcher, "launch k", 0.0, 1e-10, "overhead"), Span("gpu0/stream0", "k", 1e-10, 1.0, "compute"))
    arrow = Arrow("k", launcher, 1e-10, "gpu0/stream0", 1e-10)
    trace = read(trace_bytes(Result("at once", 1.0, spans=spans, arrows=(arrow,))))
    assert not trace.errors
    assert [(source.name, target.name) for _, source, target in trace.flows] == [("launch k", "k")]


def test_links_show_the_share_that_is_used():
    samples = [
        Sample("network", "rate sw0", 0.0, 4e9),
        Sample("network", "rate other", 0.0, 4e9),
        Sample("sw0", "capacity", 1.0, 4e9),
        Sample("sw0", "capacity", 2.0, 0.0),
        Sample("network", "rate sw0", 2.0, 0.0),
    ]
    links = {"sw0": ResourceUse("link", 8e9, 8e9), "other": ResourceUse("link", math.inf, 1.0)}
    trace = read(trace_bytes(Result("links", 3.0, samples=tuple(samples), resources=links)))
    assert not trace.errors
    assert trace.counters == {
        ("network", "rate sw0 B/s"): [(0, 4e9), (2e9, 0.0)],
        ("network", "rate other B/s"): [(0, 4e9)],
        ("network", "capacity sw0 B/s"): [(1e9, 4e9), (2e9, 0.0)],
        ("network", "utilisation sw0 %"): [(0, 50.0), (1e9, 100.0), (2e9, 0.0)],
    }


def test_the_same_result_gives_the_same_bytes(chain, tmp_path):
    save_trace(chain, tmp_path / "a.json.gz")
    save_trace(chain, tmp_path / "b.json.gz")
    save_trace(chain, tmp_path / "a.json")
    raw = (tmp_path / "a.json.gz").read_bytes()
    assert raw == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress(raw) == (tmp_path / "a.json").read_bytes()
    with pytest.raises(InputError, match="nowhere"):
        save_trace(chain, tmp_path / "nowhere" / "a.json")


def test_an_arrow_to_no_span_is_counted_not_invented():
    result = Result(
        "bare",
        2.0,
        spans=(Span("gpu0/stream0", "k", 1.0, 2.0, "compute"), Span("cpu0/python", "mark", 0.5, 0.5, "host")),
        arrows=(
            Arrow("k", "cpu0/python", 0.5, "gpu0/stream0", 1.0),
            Arrow("x", "cpu0/python", 0.5, "gpu0/stream0", 1.5),
        ),
        samples=(Sample("network", "rate sw0", 1.0, 16e9), Sample("network", "rate sw0", 1.5, float("inf"))),
    )
    trace = read(trace_bytes(result))
    assert not trace.errors
    assert [(one.thread, one.name) for one in trace.slices] == [
        ("python", "mark"),
        ("python launches", "launch k"),
        ("stream0", "k"),
    ]
    assert [(cause.name, effect.name) for _, cause, effect in trace.flows] == [("launch k", "k")]
    assert trace.other["arrows not drawn"] == 1  # nobody knows where the other leads
    assert trace.counters == {("network", "rate sw0 B/s"): [(1e9, 16e9)]}


intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=30)


@given(pairs=intervals, category=st.sampled_from(["host", "communication"]))
@settings(max_examples=150, deadline=None)
def test_lanes_never_overlap(pairs, category):
    spans = [Span("t", f"s{i}", float(min(p)), float(max(p)), category) for i, p in enumerate(pairs)]
    random.Random(len(spans)).shuffle(spans)
    lanes = allocate(spans)
    assert sorted(span.name for lane in lanes for span in lane) == sorted(span.name for span in spans)
    for lane in lanes:
        for i, one in enumerate(lane):
            for other in lane[i + 1 :]:
                apart = other.start >= one.end or one.start >= other.end
                nested = one.start <= other.start and other.end <= one.end
                assert apart or (nested and category == "host")
    result = Result("lanes", 30.0, spans=tuple(spans))
    trace = read(trace_bytes(result))
    assert not trace.errors
    assert sorted((one.name, one.length) for one in trace.slices) == sorted(
        (span.name, (span.end - span.start) * 1e9) for span in spans
    )


short = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=40)


@given(pairs=short, category=st.sampled_from(["host", "communication"]))
@settings(max_examples=150, deadline=None)
def test_times_below_a_nanosecond_break_nothing(pairs, category):
    spans = [Span("t", f"s{i}", min(p) * 1.3e-10, max(p) * 1.3e-10, category) for i, p in enumerate(pairs)]
    trace = read(trace_bytes(Result("short", 6e-9, spans=tuple(spans))))
    assert not trace.errors
    assert len(trace.slices) == len(spans)
    times = {span.name: (span.start, span.end) for span in spans}
    for one in trace.slices:
        assert (one.start, one.start + one.length) == tuple(round(time * 1e9) for time in times[one.name])


def test_transfers_at_the_same_time_are_beside_each_other_not_inside():
    spans = [Span("gpu0/to gpu1", "big", 0, 10, "communication"), Span("gpu0/to gpu1", "small", 0, 5, "communication")]
    assert len(allocate(spans)) == 2
    host = [span._replace(category="host") for span in spans]
    assert len(allocate(host)) == 1
    assert len(allocate([host[0], host[0]])) == 2


def test_rows_come_in_the_order_that_people_expect():
    tracks = ["gpu10/stream0", "gpu2/stream1", "gpu2/stream0", "cpu0/python", "n1/gpu0/stream0", "n0/cpu0/python"]
    spans = [Span(track, "s", 0, 1, "compute") for track in tracks] + [Span("ebs0", "read", 0, 1, "storage")] * 2
    order = [(row.owner, row.label) for row in rows(Result("r", 1.0, spans=tuple(spans)))]
    assert order == [
        ("cpu0", "python"),
        ("ebs0", "ebs0"),
        ("ebs0", "ebs0 (2)"),
        ("gpu2", "stream0"),
        ("gpu2", "stream1"),
        ("gpu10", "stream0"),
        ("n0/cpu0", "python"),
        ("n1/gpu0", "stream0"),
    ]
    assert natural("gpu2") < natural("gpu10")
