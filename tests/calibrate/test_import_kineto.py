"""Traces of torch's profiler: against a sum over the events that is written down here independently."""

import gzip
import json
import os
from collections import defaultdict
from decimal import Context, Decimal, Inexact, localcontext
from functools import wraps
from itertools import pairwise
from pathlib import Path

import pytest

from simperf.calibrate.importers import import_file, import_kineto, read_trace

FOLDER = Path(os.environ.get("SIMPERF_TRUTH", Path(__file__).parents[3] / "shared" / "truth")) / "traces"
NAMES = (
    "alexnet_a100",
    "cpu_only",
    "ddp_a100_rank3_of_8",
    "ddp_v100_rank1",
    "mi250_toy_train",
    "multi_stream_events",
    "ns_resolution",
    "simple_add",
)
BASE = 1695835543008415


def event(cat, name, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 7, "ts": BASE + ts, "dur": dur, "args": args}


EVENTS = [
    event("cpu_op", "aten::add", 0, 10),
    event("cuda_runtime", "cudaLaunchKernel", 2, 5, correlation=1),
    event("cuda_runtime", "cudaLaunchKernel", 8, 4, correlation=2),
    event("kernel", "add", 12, 20, device=0, stream=7, correlation=1),
    event("kernel", "ncclKernel_AllReduce", 22, 20, device=0, stream=13, correlation=2),
    event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 30, 4, device=0, stream=20, bytes=4000),
    {"ph": "M", "name": "process_name", "pid": 1},
]


def value(data, series, **at):
    (point,) = data.select(series, **at)
    return point


def test_operations_launches_streams_and_overlap_of_a_small_trace():
    found = import_kineto(
        json.dumps({"traceEvents": EVENTS, "deviceProperties": [{"id": 0, "name": "GPU X"}]}), "t.json"
    )
    data = found.dataset
    assert found.problems == ()
    assert value(data, "host/op", name="aten::add").median == pytest.approx(10e-6)
    assert value(data, "launch/call", name="cudaLaunchKernel").samples == pytest.approx((5e-6, 4e-6))
    assert value(data, "launch/delay", stream=7).samples == pytest.approx((10e-6,))
    assert value(data, "launch/delay", stream=13).samples == pytest.approx((14e-6,))
    assert value(data, "copy/h2d-pinned", nbytes=4000.0).samples == pytest.approx((4e-6,))
    assert value(data, "stream/busy", stream=7).median == pytest.approx(20e-6)
    assert value(data, "device/busy", device=0).median == pytest.approx(30e-6)
    assert value(data, "overlap/streams", device=0).median == pytest.approx(12e-6)
    assert value(data, "overlap/communication", device=0).median == pytest.approx(12e-6)
    assert value(data, "overlap/copy", device=0).median == pytest.approx(2e-6)
    assert value(data, "trace/length").median == pytest.approx(42e-6)
    assert data.machine["gpu"] == "GPU X"


def test_a_trace_that_breaks_off_is_read_up_to_there(tmp_path):
    text = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}, indent=1)
    path = tmp_path / "cut.json"
    path.write_text(text[: text.index("Memcpy") + 5])
    found = import_file(path)
    assert value(found.dataset, "device/busy", device=0).median == pytest.approx(30e-6)
    assert found.dataset.select("copy/h2d-pinned") == ()
    (problem,) = found.problems
    assert "5 events before it" in problem.message
    assert problem.line > 40


def test_a_gzipped_trace_that_breaks_off_is_read_too(tmp_path):
    packed = gzip.compress(json.dumps({"traceEvents": EVENTS * 400}).encode(), 1)
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: len(packed) // 2])
    found = import_file(path)
    assert found.problems
    assert len(value(found.dataset, "host/op", name="aten::add").samples) > 20


def test_events_without_a_length_are_counted_and_left_out():
    broken = {key: item for key, item in EVENTS[0].items() if key != "dur"}
    found = import_kineto(json.dumps({"traceEvents": [*EVENTS, broken]}), "t.json")
    assert [problem.message for problem in found.problems] == [
        "1 events without a time, a length or a stream were not read"
    ]
    assert import_kineto('{"traceEvents": []}', "t.json").problems[0].message.startswith("no events")


def test_nanoseconds_survive_times_since_the_epoch():
    rows = [event("kernel", "k", 0, 0, device=0, stream=7) for _ in range(2)]
    text = json.dumps({"traceEvents": rows}).replace(
        f'"ts": {BASE}, "dur": 0', '"ts": 1712195495505543.217, "dur": 0.001', 1
    )
    text = text.replace(f'"ts": {BASE}, "dur": 0', '"ts": 1712195495505543.219, "dur": 0.001')
    first, second = read_trace(text).events
    assert second.start - first.start == pytest.approx(2e-9, rel=1e-6)


#: arithmetic in which no sum is rounded without an error
EXACT = Context(prec=40, traps=[Inexact])


def exactly(function):
    @wraps(function)
    def play(*arguments):
        with localcontext(EXACT):
            return function(*arguments)

    return play


@exactly
def direct(path):
    """Sums over a trace by exact decimals of us, with a sweep over all moments instead of merged spans."""
    with gzip.open(path, "rt") as stream:
        rows = json.load(stream, parse_float=Decimal, parse_int=Decimal)["traceEvents"]
    lanes, calls, launches, delays = defaultdict(list), defaultdict(Decimal), {}, defaultdict(Decimal)
    for row in rows:
        if row.get("ph") != "X":
            continue
        if row.get("cat") == "cuda_runtime":
            calls[row["name"]] += row["dur"]
            if "LaunchKernel" in row["name"] or "GraphLaunch" in row["name"] or "LaunchCooperative" in row["name"]:
                launches[row["args"]["correlation"]] = row["ts"]
    for row in rows:
        if row.get("ph") == "X" and row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            where = int(row["args"]["device"]), int(row["args"]["stream"])
            lanes[where].append((row["ts"], row["ts"] + row["dur"]))
            launched = launches.get(row["args"].get("correlation"))
            if row["cat"] == "kernel" and launched is not None:
                delays[where] += max(Decimal(0), row["ts"] - launched)
    return lanes, calls, delays


@exactly
def busy(spans):
    """Total time and time with two at once, counting how many are open between any two moments."""
    changes = defaultdict(int)
    for start, end in spans:
        changes[start] += 1
        changes[end] -= 1
    moments, once, twice, depth = sorted(changes), Decimal(0), Decimal(0), 0
    for here, there in pairwise(moments):
        depth += changes[here]
        once += (there - here) * (depth >= 1)
        twice += (there - here) * (depth >= 2)
    return once, twice


@pytest.mark.truth
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the measured traces are not at hand (SIMPERF_TRUTH)")
@pytest.mark.parametrize("name", NAMES)
def test_real_traces_give_what_a_direct_sum_gives(name):
    path = FOLDER / f"{name}.json.gz"
    found = import_file(path)
    assert found.problems == ()
    data = found.dataset
    lanes, calls, delays = direct(path)
    assert len(data.select("stream/busy")) == len(lanes)
    for (device, stream), spans in lanes.items():
        point = value(data, "stream/busy", device=device, stream=stream)
        assert point.median == pytest.approx(float(busy(spans)[0]) * 1e-6, rel=1e-9)
        assert point.at["activities"] == len(spans)
    for call, total in calls.items():
        assert sum(value(data, "launch/call", name=call).samples) == pytest.approx(float(total) * 1e-6, rel=1e-9)
    assert {(p.at["device"], p.at["stream"]) for p in data.select("launch/delay")} == set(delays)
    for (device, stream), total in delays.items():
        point = value(data, "launch/delay", device=device, stream=stream)
        assert sum(point.samples) == pytest.approx(float(total) * 1e-6, rel=1e-6, abs=1e-9)
    for device in {device for device, _ in lanes}:
        mine = [spans for (owner, _), spans in lanes.items() if owner == device]
        whole = busy([span for spans in mine for span in spans])[0]
        assert value(data, "device/busy", device=device).median == pytest.approx(float(whole) * 1e-6, rel=1e-9)
        apart = sum(busy(spans)[0] for spans in mine)
        shared = value(data, "overlap/streams", device=device).median
        # with two streams at most, what is shared is what the streams have more than the device
        if len(mine) <= 2:
            assert shared == pytest.approx(float(apart - whole) * 1e-6, rel=1e-6, abs=1e-12)
        assert 0 <= shared <= float(apart - whole) * 1e-6 + 1e-12


def test_what_is_no_json_at_all_is_not_said_to_hold_events():
    """A log has brackets too: what stands in the first of them is no event."""
    (problem,) = read_trace("# Rank 0 device 0 [0x07] NVIDIA A100", "a.log").problems
    assert problem.message == "no JSON"
