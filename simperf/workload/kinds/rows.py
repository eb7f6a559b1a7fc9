"""Operations that combine many elements: reductions, normalizations, pooling, losses."""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["batchnorm", "cross_entropy", "layernorm", "pool2d", "reduction", "softmax"]


@OP_KINDS.register("reduction")
def reduction(rows: int, columns: int, *, dtype: str = "fp32") -> Op:
    """Sum (or maximum, or mean) of each row: ``rows * (columns - 1)`` FLOP."""
    sizes(rows=rows, columns=columns)
    size = element_size(dtype)
    return Op(
        name="reduction",
        kind="reduction",
        flops=float(rows * (columns - 1)),
        nbytes_read=float(size * rows * columns),
        nbytes_written=float(size * rows),
        dtype=dtype,
        family="reduction",
        elements=float(rows * columns),
    )


@OP_KINDS.register("softmax")
def softmax(rows: int, columns: int, *, dtype: str = "fp32") -> Op:
    """Softmax over each row: maximum, subtract, exponential, sum, divide = 15 FLOP an element.

    A row is taken to stay on chip: one array read, one written.
    """
    sizes(rows=rows, columns=columns)
    array = float(element_size(dtype) * rows * columns)
    return Op(
        name="softmax",
        kind="softmax",
        flops=15.0 * rows * columns,
        nbytes_read=array,
        nbytes_written=array,
        dtype=dtype,
        family="normalization",
        elements=float(rows * columns),
        row=float(columns),
    )


@OP_KINDS.register("layernorm")
def layernorm(rows: int, columns: int, *, dtype: str = "fp32") -> Op:
    """Layer normalization of each row, with scale and shift: 7 FLOP an element.

    Sum, subtract, square, sum, normalize, scale, shift (the few FLOP a row are left out).
    """
    sizes(rows=rows, columns=columns)
    size = element_size(dtype)
    return Op(
        name="layernorm",
        kind="layernorm",
        flops=7.0 * rows * columns,
        nbytes_read=float(size * (rows * columns + 2 * columns)),
        nbytes_written=float(size * rows * columns),
        dtype=dtype,
        family="normalization",
        elements=float(rows * columns),
        row=float(columns),
    )


@OP_KINDS.register("batchnorm")
def batchnorm(batch: int, channels: int, *, pixels: int, training: bool = True, dtype: str = "fp32") -> Op:
    """Batch normalization over ``batch * pixels`` values a channel.

    In training the statistics need a pass over the whole batch before anything can be normalized,
    so the array is read twice: 7 FLOP an element and three arrays moved. In inference the
    statistics are constants: a multiply-add and two arrays.
    """
    sizes(batch=batch, channels=channels, pixels=pixels)
    size, count = element_size(dtype), batch * channels * pixels
    return Op(
        name="batchnorm",
        kind="batchnorm",
        flops=float((7 if training else 2) * count),
        nbytes_read=float(size * ((2 if training else 1) * count + 4 * channels)),
        nbytes_written=float(size * count),
        dtype=dtype,
        family="normalization",
        elements=float(count),
    )


@OP_KINDS.register("pool2d")
def pool2d(
    batch: int,
    channels: int,
    *,
    height: int,
    width: int,
    kernel: int = 2,
    stride: int | None = None,
    padding: int = 0,
    dtype: str = "fp32",
) -> Op:
    """Maximum or average pooling with square windows: ``kernel**2`` FLOP a result."""
    step = kernel if stride is None else stride
    sizes(batch=batch, channels=channels, height=height, width=width, kernel=kernel, stride=step)
    if isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        raise InputError(Problem("must be a whole number, 0 or more", key="padding", value=repr(padding)))
    if min(height, width) + 2 * padding < kernel:
        raise InputError(
            Problem(
                "the window is larger than the padded image",
                key="kernel",
                value=repr(kernel),
                expected=f"at most {min(height, width) + 2 * padding}",
            )
        )
    out = ((height + 2 * padding - kernel) // step + 1) * ((width + 2 * padding - kernel) // step + 1)
    size, results = element_size(dtype), batch * channels * out
    return Op(
        name="pool2d",
        kind="pool2d",
        flops=float(results * kernel**2),
        nbytes_read=float(size * batch * channels * height * width),
        nbytes_written=float(size * results),
        dtype=dtype,
        family="reduction",
        elements=float(results),
    )


@OP_KINDS.register("cross_entropy")
def cross_entropy(rows: int, classes: int, *, dtype: str = "fp32") -> Op:
    """Cross-entropy of each row against a class index (8 B), by way of log-softmax.

    Maximum, subtract, exponential, sum, subtract = 12 FLOP an element. The log-probabilities
    are written too, because the backward pass needs them.
    """
    sizes(rows=rows, classes=classes)
    size = element_size(dtype)
    return Op(
        name="cross_entropy",
        kind="cross_entropy",
        flops=12.0 * rows * classes,
        nbytes_read=float(size * rows * classes + 8 * rows),
        nbytes_written=float(size * (rows * classes + 1)),
        dtype=dtype,
        family="normalization",
        elements=float(rows * classes),
    )
