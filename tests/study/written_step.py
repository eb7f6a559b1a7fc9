"""A played step, written as torch's profiler would have: calls of the runtime and activities of one GPU."""

from __future__ import annotations

import gzip
import json
from typing import Any

import simperf
from simperf.engine.tracks import split_track

__all__ = ["write_step"]

#: family of a kernel -> a name of such a kernel
_KERNELS = {"gemm": "cutlass_gemm_bf16", "attention": "flash_fwd_kernel", "conv": "xmma_conv_fprop"}
_KERNELS |= {
    "copy": "direct_copy",
    "optimizer": "multi_tensor_apply_adam",
    "normalization": "layer_norm_kernel",
    "reduction": "reduce_kernel",
}


def write_step(path: Any, scenario: simperf.Scenario, device: str, *, rank: int = 0, gpu: str = "") -> simperf.Result:
    """Write the timeline of a device of a scenario's run; returns its result."""
    seen: list[Any] = []
    result = simperf.run(scenario, watch=seen.append)
    families = seen[0].recorder.families
    launched = {(one.to_track, one.to_time): one.from_time for one in result.arrows}
    streams: dict[str, int] = {}
    rows = []
    for number, span in enumerate(result.spans, start=1):
        if split_track(span.track)[0] != device or span.category == "wait" or span.end <= span.start:
            continue
        at = min(launched.get((span.track, span.start), 0.0), span.start)
        stream = streams.setdefault(span.track, len(streams) + 7)
        own = {"device": 0, "stream": stream, "correlation": number}
        category, name = "kernel", _KERNELS.get(families.get(span.name, ""), "vectorized_elementwise_kernel")
        if span.category == "communication":
            plain = "SendRecv" if span.name.startswith(("send", "receive")) else span.name.replace("-", "")
            name = f"ncclDevKernel_{plain}"
        elif span.category == "copy":
            category, name = "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"
        call = {"correlation": number}
        rows.append(_row("cuda_runtime", "cudaLaunchKernel", max(0.0, at - 1e-6), at, 1, call))
        rows.append(_row(category, name, span.start, span.end, stream, own))
    rows.append(_row("user_annotation", "ProfilerStep#3", 0.0, result.time, 1, {}))
    trace = {
        "deviceProperties": [{"id": 0, "name": gpu or "NVIDIA A100-SXM4-80GB"}],
        "distributedInfo": {"rank": rank, "world_size": 8},
        "traceEvents": rows,
    }
    path.write_bytes(gzip.compress(json.dumps(trace).encode(), 1, mtime=0))
    return result


def _row(category: str, name: str, start: float, end: float, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": start * 1e6, "dur": (end - start) * 1e6}
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, **times, "args": args}
