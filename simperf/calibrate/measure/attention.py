"""Scaled dot-product attention, forward and backward, as training runs it: with and without dropout."""

from __future__ import annotations

from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.ops import operation
from simperf.calibrate.measure.task import Family

__all__ = ["family"]


def _attention(bench: Bench, shape: tuple[int, int, int, int], *, causal: bool, dropout: float, back: bool) -> Maker:
    batch, heads, length, width = shape
    torch = bench.torch
    call = torch.nn.functional.scaled_dot_product_attention

    def maker(new: New) -> Any:
        q, k, v = (new(batch, heads, length, width, grad=back) for _ in range(3))
        if not back:
            return lambda: call(q, k, v, dropout_p=dropout, is_causal=causal)
        with torch.enable_grad():
            if q.device.type == "meta":
                y = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, dropout, causal)[0]
            else:
                y = call(q, k, v, dropout_p=dropout, is_causal=causal)
        grad = torch.ones_like(y)
        return lambda: torch.autograd.grad(y, (q, k, v), grad, retain_graph=True)

    return maker


def family(bench: Bench) -> Family:
    """Attention over batch, heads, length and width."""
    lengths = (256, 1024) if bench.quick else (128, 256, 512, 1024, 2048)
    dtypes = ("fp16", "bf16", "fp32") if bench.cuda else ("fp32",)
    budget = 4e9 if not bench.cuda else 1e13
    for dtype in dtypes:
        for i, length in enumerate(lengths):
            for batch, heads, width in ((1, 12, 64), (4, 12, 64), (2, 16, 64), (8, 8, 128), (2, 4, 32)):
                if 4.0 * batch * heads * length**2 * width > budget or (bench.quick and batch > 1):
                    continue
                for dropout in (0.0, 0.1):
                    for back in (False, True):
                        causal = i % 2 == 1
                        shape = (batch, heads, length, width)
                        maker = _attention(bench, shape, causal=causal, dropout=dropout, back=back)
                        words: dict[str, Value] = {"causal": causal, "dropout": dropout, "length": length}
                        # on a CPU, attention with dropout keeps the scores in memory
                        suffix = ":dropout" if dropout and not bench.cuda else ""
                        yield operation(bench, maker, dtype, shape=words, suffix=suffix)
