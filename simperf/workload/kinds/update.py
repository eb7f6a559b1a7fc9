"""Optimizer steps over all parameters in one kernel."""

from __future__ import annotations

from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["adam", "sgd"]


@OP_KINDS.register("sgd")
def sgd(parameters: int, *, momentum: bool = False, weight_decay: bool = False, dtype: str = "fp32") -> Op:
    """Stochastic gradient descent: w -= lr * g is 2 FLOP; momentum and weight decay add 2 each.

    Moves w (read and written) and g (read), and the momentum buffer (read and written) if any.
    """
    sizes(parameters=parameters)
    array = float(element_size(dtype) * parameters)
    return Op(
        name="sgd",
        kind="sgd",
        flops=float((2 + 2 * momentum + 2 * weight_decay) * parameters),
        nbytes_read=(3 if momentum else 2) * array,
        nbytes_written=(2 if momentum else 1) * array,
        dtype=dtype,
        family="optimizer",
        holds=0.0,
        elements=float(parameters),
    )


@OP_KINDS.register("adam")
def adam(parameters: int, *, state_dtype: str = "fp32", dtype: str = "fp32") -> Op:
    """Adam (Kingma and Ba, 2015): 20 FLOP a parameter.

    First moment 3, second moment 4, two bias corrections 2, square root 4, epsilon 1, division 4,
    step 2. Reads w, g, m, v and writes w, m, v; the moments are kept in `state_dtype`.
    """
    sizes(parameters=parameters)
    array, state = (float(element_size(name) * parameters) for name in (dtype, state_dtype))
    return Op(
        name="adam",
        kind="adam",
        flops=20.0 * parameters,
        nbytes_read=2 * array + 2 * state,
        nbytes_written=array + 2 * state,
        dtype=dtype,
        family="optimizer",
        holds=0.0,
        elements=float(parameters),
    )
