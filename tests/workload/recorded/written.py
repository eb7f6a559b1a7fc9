"""A played training step, written as torch's profiler would have: the trace of ``scenarios/large/recorded-step.toml``.

``python -m tests.workload.recorded.written [FILE]`` writes it. It is no measurement: its times are simperf's own.
"""

from __future__ import annotations

import bisect
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import simperf
from simperf.training.data.buckets import assign_buckets
from simperf.workload import zoo

__all__ = ["JOB", "SHIPPED", "job_time", "written_trace"]

SHIPPED = Path(__file__).parents[3] / "scenarios" / "large" / "recorded-step.json.gz"
#: data-parallel BERT base of 128 tokens on eight GPUs, eight samples each
JOB = {"use": "train", "model": "bert-base-128", "batch_per_gpu": 8, "precision": "fp16", "steps": 1}
_SAYS = "no measurement: a step that simperf played, data-parallel BERT base on eight A100 (80 GB) of a DGX, rank 0"
_PRODUCTS = {"gemm": "gemm", "attention": "attention"}


def job(machine: str, *, record: bool = False) -> simperf.Result:
    """The job on a server of the catalogue, played without a trace."""
    host = {"use": "pytorch", "in_step": 1.0}  # a launch every 8 us, as recorded
    data = {"machine": {"use": machine}, "frontend": host, "program": JOB}
    return simperf.run(simperf.make_scenario(data), record=record)


def job_time(machine: str) -> float:
    """Time of the job's step on a server [s]."""
    return float(job(machine).metrics["time per step"].value)


def written_trace() -> dict[str, Any]:
    """The trace of rank 0 on the server of the recording, in Kineto's format."""
    result = job("dgx-a100-80gb", record=True)
    step = zoo.load(JOB["model"]).at(JOB["batch_per_gpu"], JOB["precision"])
    ops = {op.name: op for part in (step.forward, step.backward, step.update) for op in part}
    gradients = sorted(step.gradients, key=lambda one: one.after)
    sent = iter(assign_buckets([_Ready(one.name, one.nbytes, one.after) for one in gradients]))
    streams: dict[str, list[Any]] = {}
    for span in result.spans:
        if span.track.startswith("gpu0/"):
            streams.setdefault(span.track, []).append(span)
    calls = [one for one in result.spans if one.name.startswith("launch ")]
    held = _held(streams["gpu0/stream0"])
    left = {track: iter([one for one in spans if one.category != "wait"]) for track, spans in streams.items()}
    rows = [_row("user_annotation", "ProfilerStep#0", 0.0, result.time)]
    for number, call in enumerate(calls, start=1):
        reduces = call.name == "launch all-reduce"
        span = next(left["gpu0/stream1" if reduces else "gpu0/stream0"])
        assert call.name == f"launch {span.name}"
        begin, length = call.start, call.end - call.start
        op, own = ops.get(span.name), {"device": 0, "stream": 20 if reduces else 7, "correlation": number}
        if reduces or (span.name, span.start) in held:
            rows.append(_row("cuda_runtime", "cudaStreamWaitEvent", begin, length / 8, correlation=1_000_000 + number))
        name, shape = _operator(op)
        rows.append(_row("cpu_op", name or span.name, begin, length, **shape))
        copies = span.category == "copy"
        runtime = "cudaMemcpyAsync" if copies else "cudaLaunchKernel"
        rows.append(_row("cuda_runtime", runtime, begin + length / 4, length / 2, correlation=number))
        if reduces:
            size = {"Collective name": "allreduce", "In msg nelems": int(next(sent).nbytes // 4), "dtype": "Float"}
            own |= {**size, "Group size": 8}
        category = "gpu_memcpy" if copies else "kernel"
        rows.append(
            _row(category, _kernel(span, op), span.start, span.end - span.start, lane=(0, own["stream"]), **own)
        )
    updates = {op.name for op in step.update}
    own = [one for one in calls if one.name.removeprefix("launch ") in updates]
    rows.append(_row("user_annotation", "Optimizer.step#Adam.step", own[0].start, own[-1].end - own[0].start))
    end = calls[-1].end
    rows.append(_row("cuda_runtime", "cudaDeviceSynchronize", end, result.time - end, correlation=2_000_000))
    return {
        "schemaVersion": 1,
        "written by": _SAYS,
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
        "traceEvents": rows,
    }


class _Ready:
    """A gradient as buckets take it."""

    def __init__(self, name: str, nbytes: float, ready: int) -> None:
        self.name, self.nbytes, self.ready = name, nbytes, ready


def _held(spans: list[Any]) -> set[tuple[str, float]]:
    """Kernels of a stream that come next after a wait for another stream, by name and begin."""
    waits = sorted(one.end for one in spans if one.category == "wait")
    kernels = sorted((one.start, one.name) for one in spans if one.category != "wait")
    found = [bisect.bisect_left(kernels, (end, "")) for end in waits]
    return {(kernels[place][1], kernels[place][0]) for place in found if place < len(kernels)}


def _operator(op: Any) -> tuple[str, dict[str, Any]]:
    """An operator's name and shapes, where it is a product of known shapes."""
    shape = getattr(op, "gemm", None)
    if shape is None or op.family != "gemm":
        return "", {}
    left, right = [shape.m, shape.k], [shape.k, shape.n]
    if shape.batch == 1:
        return "aten::mm", {"Input Dims": [left, right]}
    return "aten::bmm", {"Input Dims": [[shape.batch, *left], [shape.batch, *right]]}


def _kernel(span: Any, op: Any) -> str:
    if span.category == "communication":
        return "simperf nccl all-reduce"
    if span.category == "copy":
        return "Memcpy HtoD (Pinned -> Device)"
    named = _PRODUCTS.get(getattr(op, "family", ""), "")
    return f"simperf {named} {op.dtype}" if named else "simperf elementwise"


def _row(category: str, name: str, start: float, length: float, *, lane: Any = (1, 1), **args: Any) -> dict[str, Any]:
    times = {"ts": round(start * 1e6, 3), "dur": round(length * 1e6, 3)}
    return {"ph": "X", "cat": category, "name": name, "pid": lane[0], "tid": lane[1], **times, "args": args}


def main(arguments: list[str]) -> None:
    """Write the trace to a file; to the one beside the scenario without."""
    text = json.dumps(written_trace(), separators=(",", ":"))
    path = Path(arguments[0]) if arguments else SHIPPED
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(sys.argv[1:])
