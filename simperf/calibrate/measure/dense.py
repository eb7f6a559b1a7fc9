"""Matrix products: plain, with a bias, and in batches; in the layouts of forward and backward passes."""

from __future__ import annotations

from typing import Any

from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.ops import UNCACHED, operation
from simperf.calibrate.measure.shapes import gemm_shapes
from simperf.calibrate.measure.task import Family

__all__ = ["family", "linear"]

#: which factor of a product without bias is transposed in memory: of a layer's backward pass, that for the gradient of
#: its input none ("nn"), that for its weight the first ("tn"); the forward pass ("nt") has a bias
LAYOUTS = ("nn", "tn")


def _mm(bench: Bench, m: int, n: int, *, k: int, layout: str) -> Maker:
    def maker(new: New) -> Any:
        a = new(k, m).t() if layout[0] == "t" else new(m, k)
        b = new(k, n)
        return lambda: bench.torch.mm(a, b)

    return maker


def linear(bench: Bench, m: int, n: int, *, k: int) -> Maker:
    """Return what makes a product of m x k and k x n with its bias."""

    def maker(new: New) -> Any:
        x, weight, bias = new(m, k), new(n, k), new(n)
        return lambda: bench.torch.nn.functional.linear(x, weight, bias)

    return maker


def _bmm(bench: Bench, batch: int, m: int, *, n: int, k: int) -> Maker:
    def maker(new: New) -> Any:
        a, b = new(batch, m, k), new(batch, k, n)
        return lambda: bench.torch.bmm(a, b)

    return maker


def family(bench: Bench) -> Family:
    """Products over shapes and precisions."""
    if bench.cuda:
        precisions = {"fp32": (1e6, 1e12), "fp16": (1e6, 8e12), "bf16": (1e6, 8e12)}
        count, largest = (8, 8192) if bench.quick else (30, 16384)
    else:
        precisions = {"fp32": (2e5, 3e9), "bf16": (1e6, 3e9)}
        count, largest = (8, 2048) if bench.quick else (44, 4096)
    for seed, (dtype, flops) in enumerate(precisions.items()):
        some = count if bench.cuda or not seed else count // 6
        for i, (m, n, k) in enumerate(gemm_shapes(some, flops=flops, largest=largest, seed=seed)):
            plain, layout = _mm(bench, m, n, k=k, layout=LAYOUTS[i % 2]), LAYOUTS[i % 2]
            yield operation(bench, plain, dtype, shape={"layout": layout})
            if i % 4 < 2 and not bench.cuda and not seed:
                yield operation(bench, plain, dtype, shape={"layout": layout}, cold=UNCACHED)
        for i, (m, n, k) in enumerate(gemm_shapes(some, flops=flops, largest=largest, seed=10 + seed)):
            biased = linear(bench, m, n, k=k)
            yield operation(bench, biased, dtype, shape={"layout": "nt"})
            if i % 2 and not bench.cuda and not seed:
                yield operation(bench, biased, dtype, shape={"layout": "nt"}, cold=UNCACHED)
        for i, (m, n, k) in enumerate(gemm_shapes(some // 3, flops=flops, largest=1024, seed=20 + seed)):
            batch = (4, 12, 32, 96)[i % 4]
            if 2.0 * batch * m * n * k <= flops[1]:
                yield operation(bench, _bmm(bench, batch, m, n=n, k=k), dtype, shape={"layout": "nn"})
