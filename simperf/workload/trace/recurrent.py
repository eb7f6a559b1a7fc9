"""LSTM layers kept whole: a GPU's library runs one in a few kernels, torch without a GPU in thousands.

J. Appleyard and others, "Optimizing Performance of Recurrent Neural Networks on GPUs" (2016), is how: the products
with the inputs of all steps are one, those with the state follow each other step by step, and the gradients of the
weights are one product each over all steps. The products of the steps stand here as one batched product, which a GPU
can overlap and the steps of a recurrence cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from simperf.workload.trace.kernels import Touch, TracedKernel

__all__ = ["CELL", "KERNELS", "NOTE", "lstm"]

NOTE = "the steps of an LSTM are one batched product, whose cost is that of as many products one after the other"

#: work of one cell beside the products [FLOP]: three sigmoids, two hyperbolic tangents, four products and sums
CELL = 3 * 14 + 2 * 8 + 4

_FORWARD = "(Tensor x, Tensor h, Tensor c, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh)"
_BACKWARD = "(Tensor grad, Tensor x, Tensor out, Tensor reserve, Tensor w_ih, Tensor w_hh, bool bias, bool data)"


@cache
def _layer() -> Callable[..., Any]:
    """One direction of one layer: a differentiable function over two operations that only know shapes."""
    import torch

    library = torch.library.Library("simperf", "FRAGMENT")
    library.define(f"lstm{_FORWARD} -> (Tensor, Tensor, Tensor)")
    library.define(f"lstm_backward{_BACKWARD} -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)")

    def forward(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
        steps, batch, width = x.shape[0], x.shape[1], w_hh.shape[1]
        return (
            x.new_empty(steps, batch, width),
            c.new_empty(batch, width),
            x.new_empty(steps, batch, 5 * width),  # gates and cells of all steps, for the backward pass
        )

    def backward(grad: Any, x: Any, out: Any, reserve: Any, w_ih: Any, w_hh: Any, bias: bool, data: bool) -> Any:
        gates = x.new_empty(x.shape[0], x.shape[1], w_ih.shape[0])
        biases = [w_ih.new_empty(w_ih.shape[0] if bias else 0) for _ in range(2)]
        return (
            gates,
            torch.empty_like(x) if data else x.new_empty(0),
            torch.empty_like(w_ih),
            torch.empty_like(w_hh),
            *biases,
        )

    library.impl("lstm", forward, "Meta")
    library.impl("lstm_backward", backward, "Meta")

    class Layer(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Any:
            ctx.set_materialize_grads(False)
            out, cell, reserve = torch.ops.simperf.lstm(x, h, c, w_ih, w_hh, b_ih, b_hh)
            ctx.save_for_backward(x, out, reserve, w_ih, w_hh)
            ctx.bias = b_ih is not None
            ctx.mark_non_differentiable(cell)
            return out, cell

        @staticmethod
        def backward(ctx: Any, grad: Any, *_: Any) -> Any:
            x, out, reserve, w_ih, w_hh = ctx.saved_tensors
            wanted = bool(ctx.needs_input_grad[0])
            found = torch.ops.simperf.lstm_backward(grad, x, out, reserve, w_ih, w_hh, ctx.bias, wanted)
            _, data, ih, hh, b_ih, b_hh = found
            return (data if wanted else None, None, None, ih, hh, *((b_ih, b_hh) if ctx.bias else (None, None)))

    Layer.library = library  # what is defined lasts as long as the library
    return Layer.apply  # type: ignore[no-any-return]


def lstm(notes: dict[str, None], fallback: Callable[..., Any]) -> Callable[..., Any]:
    """Replacement for ``torch.lstm``; what it cannot keep whole is left to `fallback`.

    Parameters
    ----------
    notes : dict
        Takes what had to be left out, as keys.
    fallback : callable
        Torch's own.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        import torch

        if len(args) != 9 or not isinstance(args[1], list | tuple) or not _simple(*args[:3]):
            return fallback(*args, **kwargs)
        x, (h, c), weights, bias, layers, p, training, both, first = args
        notes[NOTE] = None
        ways, each = 2 if both else 1, 4 if bias else 2
        x = x.transpose(0, 1) if first else x
        ends = []
        for layer in range(layers):
            outs = []
            for way in range(ways):
                at = layer * ways + way
                w_ih, w_hh, *rest = weights[at * each : (at + 1) * each]
                out, cell = _layer()(x, h[at], c[at], w_ih, w_hh, *(rest or (None, None)))
                outs.append(out)
                ends.append((out[0] if way else out[-1], cell))
            x = torch.cat(outs, -1) if both else outs[0]
            if p and training and layer < layers - 1:
                x = torch.ops.aten.native_dropout.default(x, p, True)[0]
        states = [torch.stack([end[i] for end in ends]) if len(ends) > 1 else ends[0][i][None] for i in range(2)]
        return (x.transpose(0, 1) if first else x, *states)

    return run


def _simple(x: Any, states: Any, weights: Any) -> bool:
    """Whether it is nothing but shapes: no projections, and no gradient for the first state."""
    learned = any(state.requires_grad for state in states)
    return x.device.type == "meta" and not learned and 4 * weights[1].shape[1] == weights[1].shape[0]


def _forward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    x, h, c, w_ih, w_hh, b_ih, b_hh = args
    steps, batch, width = x.shape[0], x.shape[1], w_hh.shape[1]
    gates, inputs = w_ih.shape[0], w_ih.shape[1]
    result, cell, reserve = out
    rows = steps * batch
    biases = [Touch(b) for b in (b_ih, b_hh) if b is not None]
    ahead = TracedKernel(
        "lstm_inputs",
        "gemm",
        2 * rows * gates * inputs + len(biases) * rows * gates,
        (Touch(x), Touch(w_ih), *biases),
        (Touch(reserve, rows * gates),),
        (1, rows, gates, inputs),
    )
    steps_in_turn = TracedKernel(
        "lstm_steps",
        "gemm",
        2 * rows * gates * width + CELL * rows * width,
        (Touch(reserve, rows * gates), Touch(w_hh), Touch(h), Touch(c)),
        (Touch(result), Touch(reserve), Touch(cell)),
        (steps, batch, gates, width),
    )
    return [ahead, steps_in_turn]


def _backward(args: Sequence[Any], out: Any) -> list[TracedKernel]:
    grad, x, result, reserve, w_ih, w_hh, bias, wants_data = args
    gates, data, ih, hh, b_ih, b_hh = out
    steps, batch, width = x.shape[0], x.shape[1], w_hh.shape[1]
    rows, four, inputs = steps * batch, w_ih.shape[0], w_ih.shape[1]
    product = 2 * rows * four
    found = [
        TracedKernel(
            "lstm_steps_backward",
            "gemm",
            product * width + 2 * CELL * rows * width,
            (Touch(grad), Touch(reserve), Touch(w_hh)),
            (Touch(gates),),
            (steps, batch, width, four),
        )
    ]
    wanted = (
        ("lstm_inputs_dgrad", (gates, w_ih), data, (1, rows, inputs, four)),
        ("lstm_inputs_wgrad", (gates, x), ih, (1, four, inputs, rows)),
        ("lstm_steps_wgrad", (gates, result), hh, (1, four, width, rows)),
    )
    for kind, reads, made, size in wanted if wants_data else wanted[1:]:
        last = inputs if kind.startswith("lstm_inputs") else width
        found.append(TracedKernel(kind, "gemm", product * last, tuple(map(Touch, reads)), (Touch(made),), size))
    if bias:
        found.append(TracedKernel("sum", "reduction", rows * four, (Touch(gates),), (Touch(b_ih), Touch(b_hh))))
    return found


#: name of an operation -> its kernels
KERNELS: dict[str, Callable[[Sequence[Any], Any], list[TracedKernel]]] = {"lstm": _forward, "lstm_backward": _backward}
