"""Matrix products and convolutions."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.workload.op import Gemm, Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["bmm", "conv2d", "linear", "matmul"]


def _product(kind: str, gemm: Gemm, *, dtype: str, bias: bool = False) -> Op:
    b, m, n, k = gemm.batch, gemm.m, gemm.n, gemm.k
    size = element_size(dtype)
    results = float(b * m * n)
    return Op(
        name=kind,
        kind=kind,
        flops=2.0 * results * k + (results if bias else 0.0),
        nbytes_read=float(size * (b * (m * k + k * n) + (n if bias else 0))),
        nbytes_written=size * results,
        dtype=dtype,
        family="gemm",
        elements=results,
        gemm=gemm,
    )


@OP_KINDS.register("matmul")
def matmul(m: int, n: int, *, k: int, dtype: str = "fp32") -> Op:
    """Multiply (m x k) by (k x n): 2mnk FLOP; both factors read, the product written.

    Examples
    --------
    >>> op = matmul(4000, 4000, k=4000)
    >>> op.flops, op.nbytes
    (128000000000.0, 192000000.0)
    """
    sizes(m=m, n=n, k=k)
    return _product("matmul", Gemm(1, m, n, k), dtype=dtype)


@OP_KINDS.register("bmm")
def bmm(batch: int, m: int, *, n: int, k: int, dtype: str = "fp32") -> Op:
    """`batch` independent products of (m x k) by (k x n)."""
    sizes(batch=batch, m=m, n=n, k=k)
    return _product("bmm", Gemm(batch, m, n, k), dtype=dtype)


@OP_KINDS.register("linear")
def linear(rows: int, fan_in: int, *, fan_out: int, bias: bool = True, dtype: str = "fp32") -> Op:
    """Fully connected layer, (rows x fan_in) by (fan_in x fan_out), and a bias added to each row."""
    sizes(rows=rows, fan_in=fan_in, fan_out=fan_out)
    return _product("linear", Gemm(1, rows, fan_out, fan_in), dtype=dtype, bias=bias)


@OP_KINDS.register("conv2d")
def conv2d(
    batch: int,
    channels: int,
    *,
    filters: int,
    height: int,
    width: int,
    kernel: int = 3,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    dtype: str = "fp32",
) -> Op:
    """Convolution, forward, of (batch, channels, height, width) with square kernels.

    Each of the ``batch * filters * out_h * out_w`` results takes
    ``channels / groups * kernel**2`` multiply-adds, whatever algorithm computes it (Winograd and
    FFT need fewer: then the achieved rate exceeds the one counted here). The GEMM is the implicit
    one, a product a group.

    Examples
    --------
    >>> op = conv2d(1, 3, filters=64, height=224, width=224, kernel=7, stride=2, padding=3)
    >>> op.flops / 2 == 64 * 112 * 112 * 3 * 7 * 7
    True
    """
    sizes(
        batch=batch,
        channels=channels,
        filters=filters,
        height=height,
        width=width,
        kernel=kernel,
        stride=stride,
        groups=groups,
    )
    problems = [
        Problem(f"must be a multiple of groups ({groups})", key=key, value=repr(value))
        for key, value in (("channels", channels), ("filters", filters))
        if value % groups
    ]
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        problems.append(Problem("must be a whole number, 0 or more", key="padding", value=repr(padding)))
    elif min(height, width) + 2 * padding < kernel:
        problems.append(
            Problem(
                "the kernel is larger than the padded image",
                key="kernel",
                value=repr(kernel),
                expected=f"at most {min(height, width) + 2 * padding}",
            )
        )
    if problems:
        raise InputError(problems)
    out_h = (height + 2 * padding - kernel) // stride + 1
    out_w = (width + 2 * padding - kernel) // stride + 1
    gemm = Gemm(groups, batch * out_h * out_w, filters // groups, channels // groups * kernel**2)
    size = element_size(dtype)
    results = float(batch * filters * out_h * out_w)
    weights = filters * gemm.k
    return Op(
        name="conv2d",
        kind="conv2d",
        flops=2.0 * results * gemm.k,
        nbytes_read=float(size * (batch * channels * height * width + weights)),
        nbytes_written=size * results,
        dtype=dtype,
        family="conv",
        elements=results,
        gemm=gemm,
    )
