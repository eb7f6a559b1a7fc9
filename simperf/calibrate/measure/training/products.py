"""Products of linear layers in the three layouts of training, by shape and precision; skinny ones; and fp8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.dense import linear
from simperf.calibrate.measure.task import Task
from simperf.calibrate.measure.training.order import PlannedPoint, spread
from simperf.calibrate.measure.training.points import kernel_point, sets_of
from simperf.workload.op import Gemm, Op

__all__ = ["LAYOUTS", "PASSES", "factors", "family", "fp8_missing", "layer_shapes"]

#: pass of a linear layer -> which factor lies transposed in memory: y = x W^T, dx = dy W, dW = dy^T x
LAYOUTS = {"forward": "nt", "dgrad": "nn", "wgrad": "tn"}
PASSES = tuple(LAYOUTS)
#: layers of a block of width h: columns in, columns out, over h
_LAYERS = ((1.0, 4.0), (1.0, 1.0), (4.0, 1.0), (1.0, 3.0), (1.0, 3.5))
#: width and vocabulary of the last layer of known models (GPT-2, Llama 2 and Llama 3)
_VOCABULARIES = ((768, 50304), (4096, 32000), (4096, 128256))
#: products with one short side: columns in and out
_SKINNY = ((4096, 4096), (8192, 28672), (768, 3072))
#: most arithmetic of a product [FLOP] and most memory of a set of operands [B], on a GPU and on a CPU
_MOST = {True: (1.5e13, 8e9), False: (4e9, 1.2e8)}


def factors(new: New, pass_: str, tokens: int, *, inputs: int, outputs: int) -> tuple[Any, Any]:
    """Factors of the product of a pass of a linear layer, as autograd gives them to ``mm``.

    Parameters
    ----------
    new : New
    pass_ : str
        ``"forward"``, ``"dgrad"`` or ``"wgrad"``.
    tokens, inputs, outputs : int
        Rows and columns of the layer's input, and columns of its output.
    """
    if pass_ == "forward":
        return new(tokens, inputs), new(outputs, inputs).t()
    if pass_ == "dgrad":
        return new(tokens, outputs), new(outputs, inputs)
    return new(tokens, outputs).t(), new(tokens, inputs)


def layer_shapes(bench: Bench) -> list[tuple[int, int, int]]:
    """Tokens, columns in and columns out of layers, spread from the first on."""
    if bench.cuda:
        tokens: tuple[int, ...] = (4096, 16384, 1024, 8192, 2048)
        hidden: tuple[int, ...] = (4096, 1024, 8192, 2048, 768, 5120, 12288, 3072, 1536, 6144, 2560, 16384)
    else:
        tokens, hidden = (256, 1024, 64, 512), (256, 768, 128, 512)
    # sorted, so that the sequence's first places lie far apart
    found = []
    for count, width, (inward, outward) in spread(sorted(tokens), sorted(hidden), _LAYERS):
        inputs, outputs = round(inward * width), round(outward * width)
        if _fits(bench, count, inputs, outputs=outputs):
            found.append((count, inputs, outputs))
    return found


def _fits(bench: Bench, tokens: int, inputs: int, *, outputs: int) -> bool:
    flops, nbytes = _MOST[bench.cuda]
    memory = 4.0 * (tokens * inputs + inputs * outputs + tokens * outputs)
    return 2.0 * tokens * inputs * outputs <= flops and memory <= nbytes


def _product(bench: Bench, shape: tuple[int, int, int], pass_: str) -> Maker:
    tokens, inputs, outputs = shape

    def maker(new: New) -> Any:
        a, b = factors(new, pass_, tokens, inputs=inputs, outputs=outputs)
        return lambda: bench.torch.mm(a, b)

    return maker


def _task(bench: Bench, shape: tuple[int, int, int], pass_: str, *, dtype: str, cold: bool, bias: bool = False) -> Task:
    """One product; ``tf32`` is fp32 that torch may multiply so."""
    tokens, inputs, outputs = shape
    maker = linear(bench, tokens, outputs, k=inputs) if bias else _product(bench, shape, pass_)
    kept = "fp32" if dtype == "tf32" else dtype
    op = replace(bench.describe(maker, kept), dtype=dtype)  # TF32 is as wide as fp32
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    if kept == "fp32":
        context = partial(_multiplied, bench.torch, "high" if dtype == "tf32" else "highest")
    words: dict[str, Value] = {"layout": LAYOUTS[pass_], "pass": pass_}
    return kernel_point(bench, maker, kept, cold=cold, op=op, shape=words, context=context)


@contextmanager
def _multiplied(torch: Any, precision: str) -> Iterator[None]:
    """While it lasts, torch multiplies fp32 with that precision."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


# fp8 -----------------------------------------------------------------------------------


def fp8_missing(bench: Bench) -> str:
    """Reason why there are no products in fp8 here; empty if there are."""
    torch = bench.torch
    lacks = [name for name in ("float8_e4m3fn", "_scaled_mm") if not hasattr(torch, name)]
    if lacks:
        return f"torch {torch.__version__} has no {' and no '.join(lacks)}"
    try:
        if bench.cuda and tuple(torch.cuda.get_device_capability(bench.device)) < (8, 9):
            return "the GPU has no fp8: it needs compute capability 8.9"
        a, b = torch.ones(32, 32, device=bench.device), torch.ones(32, 32, device=bench.device)
        _scaled(bench, a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), exact=True)()
        bench.synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:160]
    return ""


def _scaled(bench: Bench, a: Any, b: Any, *, exact: bool) -> Callable[[], Any]:
    """The product of two fp8 factors, the second one by its rows, with a scale for each."""
    torch = bench.torch
    one = torch.ones((), device=bench.device, dtype=torch.float32)
    options = {"scale_a": one, "scale_b": one, "out_dtype": torch.bfloat16, "use_fast_accum": not exact}
    return lambda: torch._scaled_mm(a, b.t(), **options)


def _fp8(bench: Bench, shape: tuple[int, int, int], pass_: str) -> Task:
    """A product in fp8: cuBLAS takes one layout alone, so that a backward pass first transposes its operands."""
    tokens, inputs, outputs = shape
    m, n, k = {
        "forward": (tokens, outputs, inputs),
        "dgrad": (tokens, inputs, outputs),
        "wgrad": (outputs, inputs, tokens),
    }[pass_]
    op = Op(
        name="matmul",
        kind="matmul",
        flops=2.0 * m * n * k,
        nbytes_read=float(m * k + k * n),
        nbytes_written=2.0 * m * n,
        dtype="fp8",
        family="gemm",
        elements=float(m * n),
        gemm=Gemm(1, m, n, k),
    )

    def maker(new: New) -> Any:
        a, b = (new(*size).to(bench.torch.float8_e4m3fn) for size in ((m, k), (n, k)))
        return _scaled(bench, a, b, exact=pass_ != "forward")

    words: dict[str, Value] = {"layout": "nt", "pass": pass_, "accumulation": "fast" if pass_ == "forward" else "exact"}
    return kernel_point(bench, maker, "bf16", op=op, shape=words)


# ---------------------------------------------------------------------------------------


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Products, those of the first shapes in the first round."""
    shapes = layer_shapes(bench)
    main = "bf16" if bench.cuda else "fp32"
    first, second, last = (12, 40, 90) if bench.cuda else (4, 10, 20)
    others = {"tf32": (2, 10), "fp32": (3, 6), "fp16": (3, 8)} if bench.cuda else {"bf16": (2, 4)}

    def candidate(number: int, shape: tuple[int, int, int], pass_: str, **more: Any) -> PlannedPoint:
        title = f"op/gemm in {more['dtype']}"
        return PlannedPoint(number, title, lambda: _task(bench, shape, pass_, **more))

    for index, shape in enumerate(shapes[:last]):
        number = 1 if index < first else 2 if index < second else 3
        for pass_ in PASSES:
            yield candidate(number, shape, pass_, dtype=main, cold=True)
            tokens, inputs, outputs = shape
            nbytes = 2.0 * (tokens * inputs + inputs * outputs + tokens * outputs)
            if sets_of(nbytes, bench.uncached) > 1:  # else no cache holds them anyhow
                yield candidate(min(number + 1, 3), shape, pass_, dtype=main, cold=False)
        if index % 4 == 1:
            yield candidate(2, shape, "forward", dtype=main, cold=True, bias=True)
    for inputs, outputs in _VOCABULARIES if bench.cuda else ((256, 4096),):
        for pass_ in PASSES:
            yield candidate(2, (4096 if bench.cuda else 256, inputs, outputs), pass_, dtype=main, cold=True)
    for tokens, (inputs, outputs) in spread((1, 8, 32, 128, 512), _SKINNY if bench.cuda else ((256, 1024),)):
        for pass_ in PASSES:
            yield candidate(2, (tokens, inputs, outputs), pass_, dtype=main, cold=True)
    tokens, inputs = (8192, 4096) if bench.cuda else (512, 256)
    for outputs in (16, 64, 256) if bench.cuda else (16,):  # routers and low-rank factors
        for pass_ in PASSES:
            yield candidate(2, (tokens, inputs, outputs), pass_, dtype=main, cold=True)
    for dtype, (number, count) in others.items():
        for shape in shapes[:count]:
            for pass_ in PASSES:
                yield candidate(number, shape, pass_, dtype=dtype, cold=True)
    yield from _fp8_products(bench, shapes[:16])


def _fp8_products(bench: Bench, shapes: list[tuple[int, int, int]]) -> Iterator[PlannedPoint]:
    missing = fp8_missing(bench) if bench.cuda else "fp8 is measured on a GPU alone"
    if missing:
        text = f"op/gemm in fp8: not measured: {missing}"
        yield PlannedPoint(1, "op/gemm in fp8", lambda: text)
        return
    for index, shape in enumerate(shapes):
        for pass_ in PASSES:
            yield PlannedPoint(1 if index < 4 else 2, "op/gemm in fp8", partial(_fp8, bench, shape, pass_))
