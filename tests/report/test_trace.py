"""The trace against the rules of the Trace Event Format, by a reader written here."""

import gzip
import json
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
from simperf.results import Result


def read(data):
    """Spans as (process, thread, name, begin, end) [us], after checking the stack of every thread."""
    document = json.loads(data)
    names, spans, stacks, flows, counters = {}, [], {}, {}, []
    last = -1.0
    for event in document["traceEvents"]:
        place = event["pid"], event.get("tid")
        if event["ph"] == "M":
            names[event["name"], *place] = event["args"].get("name")
            continue
        assert event["ts"] >= last, "events are in order of time"
        last = event["ts"]
        stack = stacks.setdefault(place, [])
        if event["ph"] == "B":
            stack.append(event)
        elif event["ph"] == "E":
            begin = stack.pop()
            thread = names["thread_name", *place]
            spans.append((names["process_name", place[0], 0], thread, begin["name"], begin["ts"], event["ts"]))
        elif event["ph"] == "s":
            assert stack, "a flow starts inside a span"
            flows[event["id"]] = [stack[-1]["name"]]
        elif event["ph"] == "f":
            assert event["bp"] == "e"
            assert stack, "a flow ends inside a span"
            assert stack[-1]["ts"] == event["ts"]
            flows[event["id"]].append(stack[-1]["name"])
        elif event["ph"] == "C":
            counters.append((names["process_name", place[0], 0], event["name"], event["ts"], event["args"]))
        else:
            assert event["ph"] == "i"
    assert not any(stacks.values()), "every span that begins ends"
    return document, spans, flows, counters


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
    _, spans, _, _ = read(trace_bytes(chain))
    assert len(spans) == len(chain.spans)
    found = sorted((f"{process}/{thread}", name, begin, end) for process, thread, name, begin, end in spans)
    wanted = sorted((span.track, span.name, span.start, span.end) for span in chain.spans)
    for mine, span in zip(found, wanted, strict=True):
        assert mine[:2] == span[:2]
        assert mine[2] / 1e6 == pytest.approx(span[2], rel=1e-9, abs=0)
        assert mine[3] / 1e6 == pytest.approx(span[3], rel=1e-9, abs=0)


def test_arrows_go_from_the_launch_to_its_kernel(chain):
    document, _, flows, _ = read(trace_bytes(chain))
    assert len(flows) == 50 - document["otherData"]["arrows not drawn"] == 50
    for source, target in flows.values():
        assert target.startswith("k")
        assert source in (f"launch {target}", "wait: launch queue full")


def test_counters_have_names_and_units(chain):
    _, _, _, counters = read(trace_bytes(chain))
    assert {(process, name, *args) for process, name, _, args in counters} == {
        ("gpu0", "stream0 queue length", "launches"),
        ("gpu0", "stream1 queue length", "launches"),
        ("gpu0", "memory held", "B"),
    }
    assert len(counters) == len(chain.samples)


def test_processes_and_threads_are_named_in_order(chain):
    document, *_ = read(trace_bytes(chain))
    named = [event for event in document["traceEvents"] if event.get("name") in ("process_name", "thread_name")]
    assert [event["args"]["name"] for event in named] == ["cpu0", "gpu0", "python", "stream0", "stream1"]


def test_the_same_result_gives_the_same_bytes(chain, tmp_path):
    save_trace(chain, tmp_path / "a.json.gz")
    save_trace(chain, tmp_path / "b.json.gz")
    save_trace(chain, tmp_path / "a.json")
    raw = (tmp_path / "a.json.gz").read_bytes()
    assert raw == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress(raw) == (tmp_path / "a.json").read_bytes()
    with pytest.raises(InputError, match="nowhere"):
        save_trace(chain, tmp_path / "nowhere" / "a.json")


def test_an_arrow_without_a_span_is_counted_not_invented():
    result = Result(
        "bare",
        2.0,
        spans=(Span("gpu0/stream0", "k", 1.0, 2.0, "compute"), Span("cpu0/python", "mark", 0.5, 0.5, "host")),
        arrows=(Arrow("k", "cpu0/python", 0.5, "gpu0/stream0", 1.0),),
        samples=(Sample("network", "rate sw0", 1.0, 16e9), Sample("network", "rate sw0", 1.5, float("inf"))),
    )
    document, spans, flows, counters = read(trace_bytes(result))
    assert len(spans) == 1
    assert not flows
    assert document["otherData"]["arrows not drawn"] == 1
    assert counters == [("network", "rate sw0", 1e6, {"B/s": 16e9})]


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
    document, found, _, _ = read(trace_bytes(result))
    instants = sum(event["ph"] == "i" for event in document["traceEvents"])
    assert len(found) + instants == len(spans)


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
