"""Matrix products: plain, with a bias, and in batches; in the layouts of forward and backward passes."""

from __future__ import annotations

from typing import Any

from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.ops import operation
from simperf.calibrate.measure.shapes import gemm_shapes
from simperf.calibrate.measure.task import Family

__all__ = ["family"]

#: which factor is transposed in memory: forward of a layer is "nt", its input's gradient "nn", its weight's "tn"
LAYOUTS = ("nn", "nt", "tn")


def _mm(bench: Bench, m: int, n: int, *, k: int, layout: str) -> Maker:
    def maker(new: New) -> Any:
        a = new(k, m).t() if layout[0] == "t" else new(m, k)
        b = new(n, k).t() if layout[1] == "t" else new(k, n)
        return lambda: bench.torch.mm(a, b)

    return maker


def _linear(bench: Bench, m: int, n: int, *, k: int) -> Maker:
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
        count, largest = (10, 8192) if bench.quick else (40, 16384)
    else:
        precisions = {"fp32": (2e5, 3e9), "bf16": (1e6, 3e9)}
        count, largest = (12, 2048) if bench.quick else (54, 4096)
    for seed, (dtype, flops) in enumerate(precisions.items()):
        some = count if bench.cuda or not seed else count // 6
        for i, (m, n, k) in enumerate(gemm_shapes(some, flops=flops, largest=largest, seed=seed)):
            layout = LAYOUTS[i % 3]
            yield operation(bench, _mm(bench, m, n, k=k, layout=layout), dtype, shape={"layout": layout})
        for m, n, k in gemm_shapes(some // 3, flops=flops, largest=largest, seed=10 + seed):
            yield operation(bench, _linear(bench, m, n, k=k), dtype, shape={"layout": "nt"})
        for i, (m, n, k) in enumerate(gemm_shapes(some // 4, flops=flops, largest=1024, seed=20 + seed)):
            batch = (4, 12, 32, 96)[i % 4]
            if 2.0 * batch * m * n * k <= flops[1]:
                yield operation(bench, _bmm(bench, batch, m, n=n, k=k), dtype, shape={"layout": "nn"})
