"""Products of 4-bit numbers and kernels that quantise, beside published figures.

``python -m tests.truth.kernels scaled`` prints the medians of the absolute errors; ``--fit`` the constants
that every second product of the first table gives. No table of measured kernels that is at hand has 4-bit products.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from simperf.cost import Roofline
from simperf.hardware import Catalog, GpuPart
from simperf.workload.kinds import block_scaled_matmul, matmul, quantize
from simperf.workload.loops import timing_loop
from simperf.workload.op import Op
from tests.truth.attention_figures import GB200
from tests.truth.error_lines import error_line

__all__ = ["MXFP4", "NVFP4", "REQUANTISED", "fits", "report"]

_line = partial(error_line, width=64, digits=3, share=1.0)
#: square NVFP4 products on a B200 through torch: side, time [s], and that of bf16 [s] (pytorch/ao, pull request 2427)
NVFP4 = (
    (1024, 5.87e-6, 5.08e-6),
    (1536, 6.73e-6, 7.87e-6),
    (2048, 10.2e-6, 15.2e-6),
    (3072, 16.5e-6, 38.4e-6),
    (4096, 30.8e-6, 97.4e-6),
    (6144, 84.4e-6, 319e-6),
    (8192, 205e-6, 774e-6),
)
#: MXFP4 products on a B200: m, n, k, TFLOP/s of DeepGEMM and of cuBLASLt (deepseek-ai/DeepGEMM, pull request 348)
MXFP4 = (
    (128, 2048, 7168, 328, 338),
    (128, 24576, 1536, 980, 745),
    (512, 2048, 7168, 1178, 1422),
    (512, 7168, 2048, 1439, 1190),
    (1024, 7168, 2048, 2056, 1399),
    (4096, 4096, 7168, 5332, 3939),
    (8192, 8192, 8192, 5702, 5239),
)
#: MXFP8 numbers of Transformer Engine that are quantised again along columns, on a GB200: rows, columns, time of its
#: grouped kernel and of its newer one [s] (NVIDIA/TransformerEngine at 0f1af9ae, mxfp8_requantize_comparison.rst)
REQUANTISED = (
    (1024, 4096, 6.22e-6, 3.49e-6),
    (4096, 4096, 11.15e-6, 7.29e-6),
    (8192, 4096, 19.56e-6, 12.14e-6),
    (32768, 4096, 70.65e-6, 47.71e-6),
    (32768, 7168, 119.61e-6, 81.44e-6),
    (65536, 8192, 259.11e-6, 175.32e-6),
    (131072, 7168, 444.41e-6, 308.46e-6),
)


def _b200(**product: float) -> GpuPart:
    part = Catalog.load().gpu("b200-sxm-180gb")
    return replace(part, product={**part.product, **product}) if product else part


def _products(scaling: str) -> tuple[list[Op], np.ndarray]:
    """Products and their times; of MXFP4 the faster library's."""
    if scaling == "nvfp4":
        shapes = [(side, side, side) for side, _, _ in NVFP4]
        times = [time for _, time, _ in NVFP4]
    else:
        shapes = [row[:3] for row in MXFP4]
        times = [2.0 * m * n * k / (max(rates) * 1e12) for m, n, k, *rates in MXFP4]
    ops = [block_scaled_matmul(m, n, k=k, dtype="fp4", scaling=scaling) for m, n, k in shapes]
    return [timing_loop(op, 1) for op in ops], np.array(times)


def _errors(part: GpuPart, ops: Sequence[Op], times: np.ndarray) -> np.ndarray:
    model = Roofline(part)
    return np.array([model.cost(op).time for op in ops]) / times - 1.0


def report(folder: str = "") -> Iterator[str]:
    """Lines of the table."""
    yield f"{'no goal; nothing was fitted but to every second NVFP4 product':64} rows    bias  median    most"
    ops, times = _products("nvfp4")
    yield _line("b200-sxm-180gb: nvfp4, other shapes", _errors(_b200(), ops, times)[1::2])
    yield _line("b200-sxm-180gb: mxfp4, DeepGEMM or cuBLASLt", _errors(_b200(), *_products("mx")))
    half = [timing_loop(matmul(side, side, k=side, dtype="bf16"), 1) for side, _, _ in NVFP4]
    times = np.array([time for _, _, time in NVFP4])
    yield _line("b200-sxm-180gb: bf16, the same source as nvfp4", _errors(_b200(), half, times))
    gpu = replace(_b200(), sms=int(GB200["sms"]), memory_bandwidth=GB200["memory_bandwidth"])
    ops = [quantize(rows * columns, dtype="fp8", to="fp8", scaling="mx") for rows, columns, *_ in REQUANTISED]
    for label, column in (("grouped", 2), ("newer", 3)):
        times = np.array([row[column] for row in REQUANTISED])
        yield _line(f"GB200: Transformer Engine quantises MXFP8 again, {label} kernel", _errors(gpu, ops, times))


def fits(folder: str = "") -> Iterator[str]:
    """The share of the fp4 peak, and the fixed time of a call beside that of others, of least squares on the half."""
    ops, times = _products("nvfp4")
    every = [(share, fixed) for share in np.arange(0.40, 1.0, 0.005) for fixed in np.arange(0.0, 6e-6, 1e-7)]

    def missed(share: float, fixed: float) -> float:
        found = _errors(_b200(**{"fp4": share, "fp4-fixed": fixed}), ops[::2], times[::2])
        return float(np.square(np.log1p(found)).sum())

    share, fixed = min(every, key=lambda one: missed(*one))
    yield f"blackwell product: fp4 = {share:.3g}, fp4-fixed = {fixed * 1e6:.2g} us"
