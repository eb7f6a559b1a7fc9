"""Operations of torch as simperf has them: their kind, its kernel family, and its arithmetic.

FLOP an element follow the weights of `simperf.workload.kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

__all__ = ["FREE", "KINDS", "Kind", "kind_of"]


class Kind(NamedTuple):
    """One operation.

    Parameters
    ----------
    kind, family : str
        As in `simperf.workload.Op`.
    flops : float
        Work an element [FLOP].
    per : str
        Which elements count: of the first result (``"out"``) or of the first operand (``"in"``).
    passes : int
        How often the kernel reads its large operands.
    reads : bool
        Whether it reads the array that it overwrites.
    """

    kind: str
    family: str = "elementwise"
    flops: float = 1.0
    per: str = "out"
    passes: int = 1
    reads: bool = True


def _pointwise() -> dict[str, Kind]:
    flops = {
        "abs": 1,
        "add": 1,
        "addcdiv": 6,
        "addcmul": 3,
        "bitwise_and": 1,
        "bitwise_not": 1,
        "bitwise_or": 1,
        "ceil": 1,
        "clamp": 2,
        "clamp_min": 1,
        "cos": 8,
        "div": 4,
        "elu": 9,
        "elu_backward": 9,
        "eq": 1,
        "erf": 8,
        "exp": 8,
        "floor": 1,
        "ge": 1,
        "gelu": 12,
        "gelu_backward": 25,
        "gt": 1,
        "hardsigmoid": 3,
        "hardswish": 5,
        "hardswish_backward": 5,
        "hardtanh": 2,
        "hardtanh_backward": 2,
        "isnan": 1,
        "le": 1,
        "leaky_relu": 2,
        "leaky_relu_backward": 2,
        "lerp": 3,
        "log": 8,
        "log1p": 8,
        "log2": 8,
        "logical_and": 1,
        "logical_not": 1,
        "logical_or": 1,
        "logit": 13,
        "lt": 1,
        "maximum": 1,
        "minimum": 1,
        "mul": 1,
        "native_dropout": 2,
        "native_dropout_backward": 2,
        "ne": 1,
        "neg": 1,
        "pow": 1,
        "reciprocal": 4,
        "relu": 1,
        "remainder": 5,
        "rsqrt": 8,
        "rsub": 2,
        "sgn": 1,
        "sigmoid": 14,
        "sigmoid_backward": 3,
        "sign": 1,
        "silu": 15,
        "silu_backward": 19,
        "sin": 8,
        "softplus": 17,
        "softplus_backward": 14,
        "smooth_l1_loss": 5,
        "smooth_l1_loss_backward": 5,
        "sqrt": 4,
        "square": 1,
        "sub": 1,
        "tan": 8,
        "tanh": 8,
        "tanh_backward": 3,
        "threshold": 1,
        "threshold_backward": 1,
        "where": 1,
    }
    return {name: Kind(name, flops=count) for name, count in flops.items()}


def _reductions() -> dict[str, Kind]:
    names = ("all", "amax", "amin", "any", "argmax", "argmin", "cumsum", "logsumexp", "max", "mean", "min", "prod")
    more = ("norm", "linalg_vector_norm", "std", "sum", "topk", "sort", "var", "var_mean")
    return {name: Kind(name, "reduction", per="in") for name in (*names, *more)}


def _moves() -> dict[str, Kind]:
    copies = {name: Kind("copy", "copy", 0.0, reads=False) for name in ("clone", "copy", "_to_copy", "repeat", "flip")}
    gathers = {
        name: Kind(name, "copy", 0.0, reads=False)
        for name in ("cat", "stack", "embedding", "gather", "index_select", "index", "roll", "constant_pad_nd")
    }
    scatters = {
        name: Kind(name, "copy", 0.0)
        for name in ("scatter", "scatter_add", "index_add", "index_put", "_index_put_impl", "_unsafe_index_put")
    }
    backwards = {
        name: Kind(name, "copy", 0.0, reads=False)
        for name in (
            "slice_backward",
            "select_backward",
            "unfold_backward",
            "embedding_dense_backward",
            "constant_pad_nd_backward",
        )
    }
    masks = {name: Kind(name, "elementwise", 0.0) for name in ("masked_fill", "tril", "triu")}
    return {**copies, **gathers, **scatters, **backwards, **masks}


def _fills() -> dict[str, Kind]:
    names = (
        "arange bernoulli exponential fill full full_like linspace new_full new_ones new_zeros normal ones ones_like"
    )
    more = "rand rand_like randint randn randn_like random scalar_tensor uniform zero zeros zeros_like eye"
    return {name: Kind("fill", "elementwise", 0.0, reads=False) for name in f"{names} {more}".split()}


def _rows() -> dict[str, Kind]:
    norm = "normalization"
    return {
        "_log_softmax": Kind("log_softmax", norm, 12),
        "_log_softmax_backward_data": Kind("log_softmax_backward", norm, 11),
        "_safe_softmax": Kind("softmax", norm, 15),
        "_softmax": Kind("softmax", norm, 15),
        "_softmax_backward_data": Kind("softmax_backward", norm, 4),
        "_fused_rms_norm": Kind("rmsnorm", norm, 5),
        "_fused_rms_norm_backward": Kind("rmsnorm_backward", norm, 11, passes=2),
        # statistics first, then the elements again (forward); likewise sums, then gradients (backward)
        "native_batch_norm": Kind("batchnorm", norm, 7, passes=2),
        "_native_batch_norm_legit": Kind("batchnorm", norm, 7, passes=2),
        "native_batch_norm_backward": Kind("batchnorm_backward", norm, 11, passes=2),
        "native_group_norm": Kind("groupnorm", norm, 7, passes=2),
        "native_group_norm_backward": Kind("groupnorm_backward", norm, 14, passes=2),
        "_weight_norm_interface": Kind("weight_norm", norm, 4, passes=2),
        "_weight_norm_interface_backward": Kind("weight_norm_backward", norm, 6, passes=2),
        # rows stay on chip forward; backward, one kernel for the input, another for scale and shift
        "native_layer_norm": Kind("layernorm", norm, 7),
        "native_layer_norm_backward": Kind("layernorm_backward", norm, 14, passes=2),
        "nll_loss_forward": Kind("nll_loss", "reduction", 1),
        "nll_loss_backward": Kind("nll_loss_backward", "elementwise", 1),
        "nll_loss2d_forward": Kind("nll_loss", "reduction", 1),
        "nll_loss2d_backward": Kind("nll_loss_backward", "elementwise", 1),
        "mse_loss": Kind("mse_loss", "reduction", 3, per="in"),
        "mse_loss_backward": Kind("mse_loss_backward", "elementwise", 3),
        "binary_cross_entropy_with_logits": Kind("binary_cross_entropy_with_logits", "reduction", 25, per="in"),
        "max_pool2d_with_indices": Kind("max_pool2d", "reduction", 1),  # times the window
        "max_pool2d_with_indices_backward": Kind("max_pool2d_backward", "reduction", 1, per="in"),
        "avg_pool2d": Kind("avg_pool2d", "reduction", 1),  # times the window
        "avg_pool2d_backward": Kind("avg_pool2d_backward", "reduction", 1),
        "_adaptive_avg_pool2d": Kind("avg_pool2d", "reduction", 1, per="in"),
        "_adaptive_avg_pool2d_backward": Kind("avg_pool2d_backward", "reduction", 1),
        "upsample_nearest2d": Kind("upsample", "copy", 0.0),
        "upsample_nearest2d_backward": Kind("upsample_backward", "reduction", 1, per="in"),
        "upsample_bilinear2d": Kind("upsample", "elementwise", 7),
        "upsample_bilinear2d_backward": Kind("upsample_backward", "reduction", 7, per="in"),
    }


#: name of an operation of torch, without the underscore of an in-place one -> what it is
KINDS: Mapping[str, Kind] = MappingProxyType(
    {**_pointwise(), **_reductions(), **_moves(), **_fills(), **_rows()},
)

#: operations that launch no kernel: they look at memory in another way, or only set it aside
FREE = frozenset(
    {
        "_has_compatible_shallow_copy_type",
        "_record_function_enter_new",
        "_record_function_exit",
        "_reshape_alias",
        "_unsafe_view",
        "as_strided_",
        "detach",
        "detach_",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "is_same_size",
        "lift_fresh",
        "new_empty",
        "new_empty_strided",
        "profiler",
        "resize",
        "set",
        "squeeze_",
        "sym_size",
        "t_",
        "transpose_",
        "unsqueeze_",
    }
)


def kind_of(name: str) -> Kind | None:
    """Kind of the operation `name`; in-place variants end with an underscore."""
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    for each in (plain, plain.removeprefix("_foreach_")):
        if each in KINDS:
            return KINDS[each]
    return None
