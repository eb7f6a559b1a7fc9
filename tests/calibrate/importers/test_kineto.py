"""Traces of torch's profiler that are partial or odd; whole ones are in `test_import_kineto`."""

import json

import pytest

from simperf.calibrate.importers.kineto import Event, import_kineto, is_communication, read_trace


def row(cat, ts, dur, name="x", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur, "args": args}


def test_times_count_from_the_first_event_whatever_the_order():
    trace = read_trace(json.dumps([row("cpu_op", 1009, 2), row("cpu_op", 1004, 1)]))
    assert [(event.start, event.end) for event in trace.events] == [
        (0.0, pytest.approx(1e-6)),
        (pytest.approx(5e-6), pytest.approx(7e-6)),
    ]


def test_a_kernel_without_a_device_is_that_of_its_lane():
    (event,) = read_trace(json.dumps([row("kernel", 0, 4)])).events
    assert (event.kind, event.device, event.stream, event.correlation) == ("kernel", 0, 7, -1)


@pytest.mark.parametrize(
    "spoiled",
    [
        {"dur": -1},
        {"dur": "long"},
        {"ts": None},
        {"args": {"stream": "main"}},
        {"args": {"correlation": [1]}},
    ],
)
def test_an_event_that_cannot_be_read_is_counted_and_the_others_are_read(spoiled):
    trace = read_trace(json.dumps([row("kernel", 0, 4), {**row("kernel", 9, 4), **spoiled}]), "t.json")
    assert len(trace.events) == 1
    (problem,) = trace.problems
    assert problem.message.startswith("1 events")
    assert problem.file == "t.json"


def test_what_is_no_event_of_the_profiler_is_passed_over():
    rows = [row("python_function", 0, 1), {"ph": "i", "cat": "kernel", "ts": 0}, "text", row("cpu_op", 3, 1)]
    trace = read_trace(json.dumps({"traceEvents": rows, "deviceProperties": ["odd", {"name": "GPU X"}]}))
    assert [event.kind for event in trace.events] == ["op"]
    assert trace.problems == []
    assert trace.gpus == {0: "GPU X"}


def test_a_trace_that_breaks_off_in_its_first_event_has_nothing():
    found = import_kineto('{"traceEvents": [\n {"ph": "X", "cat": "ker', "t.json")
    assert len(found.dataset) == 0
    assert [problem.message for problem in found.problems] == ["no JSON from here on: 0 events before it were read"]


def test_a_launch_without_its_kernel_gives_its_call_and_no_delay():
    rows = [
        row("cuda_runtime", 0, 5, "cudaLaunchKernel", correlation=1),
        row("cuda_runtime", 9, 5, "cudaLaunchKernel", correlation=2),
        row("kernel", 8, 1, correlation=1, device=0, stream=3),
        row("kernel", 30, 1, correlation=3, device=0, stream=3),
    ]
    data = import_kineto(json.dumps(rows), "t.json").dataset
    (call,) = data.select("launch/call")
    assert call.samples == pytest.approx((5e-6, 5e-6))
    (delay,) = data.select("launch/delay")
    assert delay.samples == pytest.approx((8e-6,))


def test_copies_by_their_kind_and_whether_the_host_pinned_them():
    names = {
        "Memcpy HtoD (Pageable -> Device)": "copy/h2d-pageable",
        "Memcpy DtoH (Device -> Pinned)": "copy/d2h-pinned",
        "Memcpy DtoD (Device -> Device)": "copy/d2d",
        "Memcpy PtoP (Device -> Device)": "copy/peer",
        "CopyHostToDevice": "copy/other",
    }
    rows = [row("gpu_memcpy", 10 * i, 1, name, device=0, stream=1) for i, name in enumerate(names)]
    data = import_kineto(json.dumps(rows), "t.json").dataset
    assert {point.series for point in data if point.series.startswith("copy/")} == set(names.values())


def test_only_kernels_of_collectives_communicate():
    assert is_communication(Event("kernel", "rcclKernel", 0.0, 1.0))
    assert not is_communication(Event("kernel", "volta_sgemm_128x64_nn", 0.0, 1.0))
    assert not is_communication(Event("op", "nccl:all_reduce", 0.0, 1.0))


def test_the_name_of_the_gpu_is_kept_of_a_trace_that_breaks_off():
    head = '{"deviceProperties": [{"id": 0, "name": "NVIDIA A100"}, {"id": "x", "name": "y"}], "traceEvents": [\n'
    row = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 1.5, "dur": 2, "tid": 7, "args": {"device": 0, "stream": 7}}'
    found = import_kineto(head + row + ',\n{"ph": "X"', "t.json")
    assert found.dataset.machine["gpu"] == "NVIDIA A100"
    assert found.problems[0].message == "no JSON from here on: 1 events before it were read"
    assert found.problems[0].line == 3
