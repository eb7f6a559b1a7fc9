"""Flash attention, forward and backward, by length, heads, width, causality and shared heads of keys and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.task import Task, note_text
from simperf.calibrate.measure.training.order import PlannedPoint, spread
from simperf.calibrate.measure.training.points import kernel_point

__all__ = ["Shape", "attention_maker", "family", "flash_only"]

#: batch, heads, heads of keys and values, length, width
Shape = tuple[int, int, int, int, int]
#: heads, heads of keys and values, width: of GPT-2, Llama 2 7B, Llama 3 8B and 70B, and two between
_HEADS = ((12, 12, 64), (32, 32, 128), (32, 8, 128), (64, 8, 128), (16, 16, 96), (16, 16, 256))
_SMALL = ((4, 4, 64), (8, 2, 32))
#: most arithmetic of a forward pass [FLOP]
_MOST = {True: 2e13, False: 4e9}


def flash_only(torch: Any) -> Callable[[], AbstractContextManager[Any]] | None:
    """A context in which attention runs as the flash kernel or fails; None if this torch cannot choose."""
    module = getattr(torch.nn, "attention", None)
    if module is None:
        try:
            from importlib import import_module

            module = import_module("torch.nn.attention")
        except ImportError:
            module = None
    if module is not None and hasattr(module, "sdpa_kernel"):
        return partial(module.sdpa_kernel, module.SDPBackend.FLASH_ATTENTION)
    older = getattr(torch.backends.cuda, "sdp_kernel", None)
    if older is None:
        return None
    return partial(older, enable_flash=True, enable_math=False, enable_mem_efficient=False)


def attention_maker(bench: Bench, shape: Shape, *, causal: bool, back: bool) -> Maker:
    """A maker of the forward pass, or of the backward pass alone."""
    batch, heads, kv_heads, length, width = shape
    torch = bench.torch
    shared = {"enable_gqa": True} if kv_heads < heads else {}

    def forward(q: Any, k: Any, v: Any) -> Any:
        if q.device.type == "meta":  # where torch would choose another backend
            return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, **shared)

    def maker(new: New) -> Any:
        q = new(batch, heads, length, width, grad=back)
        k, v = (new(batch, kv_heads, length, width, grad=back) for _ in range(2))
        if not back:
            return lambda: forward(q, k, v)
        with torch.enable_grad():
            y = forward(q, k, v)
        grad = torch.ones_like(y)
        return lambda: torch.autograd.grad(y, (q, k, v), grad, retain_graph=True)

    return maker


def _task(bench: Bench, shape: Shape, *, dtype: str, causal: bool, back: bool) -> Task | str:
    context = flash_only(bench.torch)
    if context is None:
        return note_text("op/attention", f"torch {bench.torch.__version__} cannot be told to use the flash kernel")
    maker = attention_maker(bench, shape, causal=causal, back=back)
    words: dict[str, Value] = {
        "causal": causal,
        "dropout": 0.0,
        "batch": shape[0],
        "heads": shape[1],
        "kv_heads": shape[2],
        "length": shape[3],
        "width": shape[4],
        "backend": "flash",
        "pass": "backward" if back else "forward",
    }
    return kernel_point(bench, maker, dtype, shape=words, context=context)


def _shapes(bench: Bench) -> Iterator[tuple[Shape, bool]]:
    lengths = (512, 1024, 2048, 4096, 8192, 16384, 32768) if bench.cuda else (128, 256, 512)
    tokens = 16384 if bench.cuda else 512
    for length, (heads, kv_heads, width), causal in spread(
        lengths, _HEADS if bench.cuda else _SMALL, (True, True, False)
    ):
        batch = max(1, tokens // length)
        if 4.0 * batch * heads * length**2 * width <= _MOST[bench.cuda]:
            yield (batch, heads, kv_heads, length, width), causal


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Attention, forward and backward, shape by shape."""
    main, other = ("bf16", "fp16") if bench.cuda else ("fp32", "bf16")
    title = "op/attention"
    for index, (shape, causal) in enumerate(dict.fromkeys(_shapes(bench))):
        for back in (False, True):
            number = 1 if index < 8 else 2 if index < 24 else 3
            words = {"causal": causal, "back": back}
            yield PlannedPoint(number, title, partial(_task, bench, shape, dtype=main, **words))
            if index < 4:
                yield PlannedPoint(3, title, partial(_task, bench, shape, dtype=other, **words))
