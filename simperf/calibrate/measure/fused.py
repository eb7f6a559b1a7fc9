"""The same chain of operations eager, scripted and compiled: what fusion and leaving Python save."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Family, note_text, point

__all__ = ["compiler_missing", "family"]


def compiler_missing(cuda: bool) -> str:
    """Reason why torch.compile cannot work here; empty if it can."""
    if cuda:
        return ""
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
        return "torch.compile needs a C++ compiler for the CPU, and none is on the PATH"
    return ""


def _function(bench: Bench) -> Callable[[Any], Any]:
    torch = bench.torch

    def chain(x: Any) -> Any:
        y = torch.tanh(x * 1.5 + 0.5)
        return torch.relu(y * y - 0.25) + 0.1

    return chain


def _scripted(bench: Bench, x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bench.torch.jit.trace(_function(bench), (x,))


def _take(bench: Bench, mode: str, count: int) -> Sequence[float]:
    torch = bench.torch
    with torch.no_grad():
        x = bench.new("fp32")(count)
        call = _function(bench)
        if mode == "scripted":
            call = _scripted(bench, x)
        elif mode == "compiled":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call = torch.compile(call, dynamic=False)
                call(x)
        for _ in range(3):
            call(x)
        return bench.wall(lambda: call(x))


def family(bench: Bench) -> Family:
    """Six elementwise operations over sizes, in three modes."""
    missing = compiler_missing(bench.cuda)
    modes = ["eager"]
    if missing:
        yield note_text("fused/chain (compiled)", missing)
    else:
        modes.append("compiled")
    if sys.version_info < (3, 14):
        modes.append("scripted")
    else:
        yield note_text("fused/chain (scripted)", "torch.jit does not support this Python")
    for mode in modes:
        if bench.quick and mode == "compiled":
            yield note_text("fused/chain (compiled)", "compiling takes too long for --quick")
            continue
        for count in (100, 100_000, 4_000_000):
            at: dict[str, Value] = {"device": bench.kind, "mode": mode, "elements": count, "operations": 7}
            at["threads"] = bench.threads
            yield point("fused/chain", at, lambda m=mode, n=count: _take(bench, m, n))  # type: ignore[misc]
