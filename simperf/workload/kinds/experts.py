"""The experts of a mixture: what one rank does with the tokens of its group between gate and sum."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.workload.expert_loads import BALANCED, EXPERT_PRECISIONS, rank_rows
from simperf.workload.op import ExpertShape, Op
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["moe"]

#: bytes of one element of what goes into the layer, of what it gives, and of the gate's score of an expert
_SIZE = 2.0


@OP_KINDS.register("moe")
def moe(
    tokens: int,
    hidden: int,
    *,
    intermediate: int,
    experts: int,
    top_k: int,
    tensor_parallel: int = 1,
    expert_parallel: int = 1,
    load: str = BALANCED,
    gated: bool = True,
    dtype: str = "bf16",
) -> Op:
    """Experts of a layer on one rank: rows gathered by expert, two grouped products, activation, weighted sum.

    Each token goes to `top_k` experts. A rank has ``experts / expert_parallel`` of them, and of each
    ``1 / tensor_parallel`` of its width; the rank whose time this is has the most rows. Only experts with rows are
    read. What ranks send one another is not in it.

    Parameters
    ----------
    tokens : int
        Of all ranks that share the experts: each rank sees the scores of all of them.
    hidden, intermediate : int
        Width of a token, and of a whole expert.
    experts, top_k : int
        Of the layer, and that a token goes to.
    tensor_parallel, expert_parallel : int
        Ranks that share the width of each expert, and the experts.
    load : str
        ``"balanced"``, ``"power-law-EXPONENT"`` or ``"power-law-EXPONENT/DRAW"``
        (`simperf.workload.expert_loads.expert_loads`).
    gated : bool
        Whether the first product has a gate beside it.
    dtype : str
        Number formats of its products, one of `simperf.workload.expert_loads.EXPERT_PRECISIONS`.

    Examples
    --------
    >>> one = moe(4096, 1024, intermediate=4096, experts=1, top_k=1, gated=False)
    >>> one.flops == 2 * (2 * 4096 * 1024 * 4096)
    True
    >>> moe(4, 2048, intermediate=768, experts=128, top_k=8).experts.active
    32
    """
    sizes(
        tokens=tokens,
        hidden=hidden,
        intermediate=intermediate,
        experts=experts,
        top_k=top_k,
        tensor_parallel=tensor_parallel,
        expert_parallel=expert_parallel,
    )
    problems = []
    if dtype not in EXPERT_PRECISIONS:
        expected = ", ".join(EXPERT_PRECISIONS)
        problems.append(Problem("no precision of experts", key="dtype", value=repr(dtype), expected=expected))
    if intermediate % tensor_parallel:
        message = f"must divide the experts' width, {intermediate}"
        problems.append(
            Problem(message, key="tensor_parallel", value=repr(tensor_parallel), expected="a divisor of it")
        )
    if problems:
        raise InputError(problems)
    rows = rank_rows(tokens, experts, top_k, ranks=expert_parallel, load=load)
    shape = ExpertShape(tokens, experts, hidden, intermediate // tensor_parallel, gated, dtype, rows)
    formats, result = EXPERT_PRECISIONS[dtype], float(tokens) * hidden
    return Op(
        name="moe",
        kind="moe",
        flops=2.0 * shape.total * hidden * shape.intermediate * (3 if gated else 2),
        nbytes_read=formats.weight * shape.weights + _SIZE * (result + float(tokens) * experts),
        nbytes_written=_SIZE * result,
        dtype=formats.dtype,
        family="gemm",
        elements=result,
        experts=shape,
    )
