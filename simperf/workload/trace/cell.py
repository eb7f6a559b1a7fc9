"""LSTM cells as a GPU runs one step: two products and one kernel over the gates.

Torch on CUDA multiplies the input and the state with their weights, adds, squashes and combines the gates in one
fused kernel, and has one for the way back (``_thnn_fused_lstm_cell``); on the meta device each of these operations
would stand alone. The products here are torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from simperf.workload.trace.kernels import Touch, TracedKernel
from simperf.workload.trace.recurrent import CELL

__all__ = ["KERNELS", "lstm_cell"]

_FORWARD = "(Tensor ahead, Tensor back, Tensor c, Tensor? b_ih, Tensor? b_hh) -> (Tensor, Tensor, Tensor)"
_BACKWARD = "(Tensor? grad_h, Tensor? grad_c, Tensor c, Tensor cell, Tensor gates) -> (Tensor, Tensor)"


@cache
def _fused() -> Callable[..., Any]:
    """The kernel over the gates: a differentiable function over two operations that only know shapes."""
    import torch

    library = torch.library.Library("simperf", "FRAGMENT")
    library.define(f"lstm_cell{_FORWARD}")
    library.define(f"lstm_cell_backward{_BACKWARD}")

    def forward(ahead: Any, back: Any, c: Any, b_ih: Any, b_hh: Any) -> Any:
        return torch.empty_like(c), torch.empty_like(c), torch.empty_like(ahead)

    def backward(grad_h: Any, grad_c: Any, c: Any, cell: Any, gates: Any) -> Any:
        return torch.empty_like(gates), torch.empty_like(c)

    library.impl("lstm_cell", forward, "Meta")
    library.impl("lstm_cell_backward", backward, "Meta")

    class Gates(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, ahead: Any, back: Any, c: Any, b_ih: Any, b_hh: Any) -> Any:
            ctx.set_materialize_grads(False)
            out, cell, gates = torch.ops.simperf.lstm_cell(ahead, back, c, b_ih, b_hh)
            ctx.save_for_backward(c, cell, gates)
            ctx.bias = b_ih is not None
            return out, cell

        @staticmethod
        def backward(ctx: Any, grad_h: Any, grad_c: Any) -> Any:
            gates, before = torch.ops.simperf.lstm_cell_backward(grad_h, grad_c, *ctx.saved_tensors)
            bias = gates.sum(0) if ctx.bias else None
            return gates, gates, before, bias, bias

    Gates.library = library  # what is defined lasts as long as the library
    return Gates.apply  # type: ignore[no-any-return]


def lstm_cell(fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Replacement for ``torch.lstm_cell``; tensors with data are left to `fallback`, torch's own."""

    def run(x: Any, state: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        if x.device.type != "meta":
            return fallback(x, state, w_ih, w_hh, b_ih, b_hh)
        h, c = state
        return _fused()(x.matmul(w_ih.t()), h.matmul(w_hh.t()), c, b_ih, b_hh)

    return run


def _touches(*tensors: Any) -> tuple[Touch, ...]:
    return tuple(Touch(tensor) for tensor in tensors if tensor is not None)


def _forward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    """Reads both products and the cell's state; keeps the squashed gates for the way back."""
    work = CELL * args[2].numel() + 3 * args[0].numel()
    return [TracedKernel("lstm_cell", "elementwise", work, _touches(*args), _touches(*out))]


def _backward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    return [
        TracedKernel("lstm_cell_backward", "elementwise", 2 * CELL * args[2].numel(), _touches(*args), _touches(*out))
    ]


#: name of an operation -> its kernels
KERNELS: dict[str, Callable[[Sequence[Any], Any], list[TracedKernel]]] = {
    "lstm_cell": _forward,
    "lstm_cell_backward": _backward,
}
