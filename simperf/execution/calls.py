"""Times of calls of different types on the host, where a profile has measured it (t1 by type of operation).

A profile gives each type's time in shares of the launch of one elementwise operation: what makes the launch slower,
such as another host, makes all of them slower.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from simperf.hardware import FrontendPart

if TYPE_CHECKING:
    from simperf.workload import Op

__all__ = ["PASSES", "call_time", "riding", "update_time"]

#: parts of a training step in which autograd adds to a call, or replays it without Python
PASSES = ("forward", "backward")
#: kinds of operation -> calls that were measured for them; others have a call of their own name, or a plain launch's
_CALLS: Mapping[str, str] = {
    "matmul": "mm",
    "bmm": "mm",
    "log_softmax": "cross_entropy",
    "native_dropout": "dropout",
    "threshold": "relu",
    "avg_pool2d": "max_pool2d",
    "fill": "zeros",
    "copy": "clone",
    "mean": "sum",
    "embedding_dense": "embedding",
}
#: kernels that are always launched in the call of another: a convolution's bias, the loss behind its softmax
_RIDERS = frozenset({"bias", "nll_loss"})
_ENDS = ("_backward", "_dgrad", "_wgrad")


def call_time(profile: FrontendPart, kind: str, within: str = "") -> float | None:
    """Time of the host for the call that launches a kernel [s]; None if only a launch's time is known.

    Parameters
    ----------
    profile : FrontendPart
    kind : str
        Of operation, as `simperf.workload.Op` has it.
    within : str
        One of `PASSES`, if autograd records or replays it; else empty.

    Examples
    --------
    >>> part = FrontendPart(name="mine", title="", sources={}, launch=4e-6, calls={"conv2d": 3.0, "pass:forward": 0.5})
    >>> call_time(part, "conv2d", "forward"), call_time(part, "bias", "forward"), call_time(part, "sigmoid")
    (1.4e-05, 0.0, 4e-06)
    """
    if not profile.calls:
        return None
    if kind in _RIDERS:
        return 0.0
    base = next((kind.removesuffix(end) for end in _ENDS if kind.endswith(end)), kind)
    plain = profile.calls.get(_CALLS.get(base, base), 1.0)
    return profile.launch * max(0.0, plain + profile.calls.get(f"pass:{within}", 0.0))


def riding(ops: Sequence[Op]) -> Iterator[bool]:
    """Whether each operation of a pass is launched in the call of the one before it.

    A convolution's backward pass is one call, of up to three kernels: gradients of its input, weight and bias.

    Parameters
    ----------
    ops : sequence of Op
        In the order in which they are launched.
    """
    before: Op | None = None
    for op in ops:
        after = before.kind if before is not None else ""
        second = op.kind == "conv2d_wgrad" and after == "conv2d_dgrad"
        bias = op.kind == "sum" and before is not None and after == "conv2d_wgrad"
        yield second or (bias and before is not None and not set(op.inputs).isdisjoint(before.inputs))
        before = op


def update_time(profile: FrontendPart, optimizer: str, *, tensors: int, kernels: int) -> float | None:
    """Time of the host a kernel of an optimizer's update [s]; None if it was not measured.

    Parameters
    ----------
    profile : FrontendPart
    optimizer : str
    tensors : int
        Parameters of the model: the optimizer's Python handles each.
    kernels : int
        That the update launches.
    """
    once, each = (profile.calls.get(f"update:{optimizer}{end}") for end in ("", ":tensor"))
    if once is None or each is None or kernels < 1:
        return None
    return profile.launch * (once + each * tensors) / kernels
