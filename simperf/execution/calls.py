"""What calls of different types take on the host, where a profile has measured it (t1 by type of operation).

A profile gives each type's time in shares of the launch of one elementwise operation: what makes the launch slower,
such as another host, makes all of them slower.
"""

from __future__ import annotations

from collections.abc import Mapping

from simperf.hardware import FrontendPart

__all__ = ["PASSES", "call_time", "update_time"]

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
#: kernels that are launched in the call of another: a convolution's bias and its second gradient, the loss behind its
#: softmax
_RIDERS = frozenset({"bias", "conv2d_dgrad", "nll_loss"})
_ENDS = ("_backward", "_wgrad")


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
