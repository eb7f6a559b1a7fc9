"""One whole GPT layer, forward and backward: eager, and compiled where there is time for the compiler."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import doubts
from simperf.calibrate.measure.fused import compiler_missing
from simperf.calibrate.measure.task import Task, note_text
from simperf.calibrate.measure.training.order import PlannedPoint
from simperf.calibrate.measure.training.points import expected

__all__ = ["Shape", "family", "gpt_layer"]

#: batch, length, width, heads
Shape = tuple[int, int, int, int]
PARTS = ("forward", "backward", "both", "whole")
#: what a compiler is expected to take [s]
_COMPILING = {True: 50.0, False: 45.0}


def gpt_layer(torch: Any, width: int, heads: int) -> Any:
    """A pre-norm block: attention and a GELU network of four times the width, each added to its input."""
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            q, k, v = self.qkv(self.before(x)).split(width, dim=2)
            q, k, v = (each.view(batch, length, heads, width // heads).transpose(1, 2) for each in (q, k, v))
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.between(x))))

    return Layer()


def _calls(bench: Bench, shape: Shape, mode: str, *, dtype: str) -> dict[str, Callable[[], Sequence[float]]]:
    """Part -> what reads it, of one layer set up."""
    torch = bench.torch
    batch, length, width, heads = shape
    layer = gpt_layer(torch, width, heads).to(device=bench.device, dtype=bench.dtype(dtype))
    call = layer
    if mode == "compiled":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = torch.compile(layer, dynamic=False)
    x = bench.new(dtype)(batch, length, width, grad=True)
    inputs = [x, *layer.parameters()]
    with torch.enable_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = call(x)
        grad = torch.ones_like(y)
        torch.autograd.grad(y, inputs, grad, retain_graph=mode == "eager")

    def both() -> None:
        torch.autograd.grad(call(x), inputs, grad)

    found: dict[str, Callable[[], Sequence[float]]] = {
        "forward": lambda: bench.kernel(lambda: call(x)),
        "both": lambda: bench.kernel(both),
        "whole": lambda: bench.wall(both),
    }
    if mode == "eager":  # a compiled layer gives back its memory in its backward pass, which runs once
        found["backward"] = lambda: bench.kernel(lambda: torch.autograd.grad(y, inputs, grad, retain_graph=True))
    return found


def _task(bench: Bench, shape: Shape, mode: str) -> Task | str:
    batch, length, width, heads = shape
    missing = compiler_missing(bench.cuda) if mode == "compiled" else ""
    if mode == "compiled" and not hasattr(bench.torch, "compile"):
        missing = f"torch {bench.torch.__version__} has no torch.compile"
    if missing:
        return note_text("layer/gpt (compiled)", missing)
    dtype = "bf16" if bench.cuda else "fp32"
    at: dict[str, Value] = {"device": bench.kind, "mode": mode, "dtype": dtype}
    at |= {"batch": batch, "length": length, "width": width, "heads": heads}
    if not bench.cuda:
        at["threads"] = bench.threads
    parts = PARTS if mode == "eager" else tuple(part for part in PARTS if part != "backward")
    points: list[tuple[str, dict[str, Value]]] = [("layer/gpt", {**at, "part": part}) for part in parts]

    def run(wanted: Sequence[int]) -> Iterator[Measurement]:
        with bench.torch.enable_grad():
            calls = _calls(bench, shape, mode, dtype=dtype)
            for index in wanted:
                readings = tuple(calls[parts[index]]())
                yield Measurement(*points[index], readings, warnings=doubts(readings))

    flops = 24.0 * batch * length * width**2 + 2.0 * batch * length**2 * width
    time = 3 * flops / (3e14 if bench.cuda else 2e10) + (1e-3 if bench.cuda else 1e-4)
    seconds = len(parts) * expected(bench, time) + (_COMPILING[bench.cuda] if mode == "compiled" else 0.0)
    return Task(tuple(points), run, seconds=seconds)


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Layers by width, eager, then one compiled, then the others."""
    if bench.cuda:
        shapes: tuple[Shape, ...] = ((4, 2048, 2048, 16), (8, 1024, 768, 12), (2, 4096, 4096, 32), (1, 8192, 8192, 64))
    else:
        shapes = ((2, 128, 256, 4), (1, 256, 512, 8))
    for index, shape in enumerate(shapes):
        yield PlannedPoint(1 if index < 2 else 2, "layer/gpt", partial(_task, bench, shape, "eager"))
    for index, shape in enumerate(shapes[: 3 if bench.cuda else 1]):
        yield PlannedPoint(2 if index == 0 else 3, "layer/gpt (compiled)", partial(_task, bench, shape, "compiled"))
