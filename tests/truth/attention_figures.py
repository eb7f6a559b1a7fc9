"""Published figures of attention kernels in TFLOP/s, by library and GPU: what constants are fitted to, or graded with.

A figure is width, mask, direction, batch, heads, length, TFLOP/s. A causal mask counts half of the arithmetic, the
backward pass 2.5 times that of the forward one.
"""

from collections.abc import Mapping, Sequence

__all__ = ["CUDNN", "ELSEWHERE", "FA2_A100", "FA3_PAPER", "FA4", "GB200", "LENGTHS", "Figures"]

#: rows of width, mask, direction, batch, heads, length, TFLOP/s
Figures = Sequence[tuple[int, bool, bool, int, int, int, float]]
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
#: TFLOP/s by library and GPU, of width, mask, direction and lengths, 16 k tokens and a model width of 2,048: bf16 on an
#: H100 SXM5 from figures 5 and 6 of J. Shah and others, "FlashAttention-3" (arXiv 2407.08608)
FA3_PAPER: Mapping[str, Sequence[tuple[int, bool, bool, tuple[int, ...]]]] = {
    "flash-attention": (
        (128, False, False, (467, 565, 625, 638, 646, 648)),
        (128, True, False, (292, 423, 521, 579, 602, 616)),
        (64, False, False, (333, 392, 460, 476, 496, 497)),
        (64, True, False, (197, 265, 371, 420, 460, 473)),
        (256, True, False, (286, 427, 537, 612, 628, 642)),
        (64, False, True, (272, 363, 422, 453, 472, 474)),
        (128, False, True, (316, 424, 501, 542, 559, 561)),
    ),
    "flash-attention-2": (
        (128, False, False, (309, 350, 362, 368, 370, 370)),
        (128, True, False, (191, 260, 298, 319, 333, 335)),
        (64, False, False, (282, 306, 318, 321, 322, 324)),
        (64, True, False, (180, 229, 262, 284, 295, 299)),
        (256, True, False, (208, 251, 278, 293, 297, 298)),
        (64, False, True, (198, 238, 264, 279, 287, 291)),
        (128, False, True, (214, 260, 291, 310, 318, 322)),
    ),
}
#: TFLOP/s of FlashAttention-4 on a B200 (Dao-AILab/flash-attention, pull requests 2605 and 2280): width, mask,
#: direction, batch, heads, length, TFLOP/s
FA4: Figures = (
    *((64, False, False, 32768 // q, 32, q, v) for q, v in zip(LENGTHS[1:], (702, 733, 749, 758, 762), strict=True)),
    *((64, True, False, 32768 // q, 32, q, v) for q, v in zip(LENGTHS[1:], (423, 579, 713, 792, 834), strict=True)),
    *(
        (128, False, False, 32768 // q, 16, q, v)
        for q, v in zip(LENGTHS[1:], (1205, 1279, 1328, 1358, 1362), strict=True)
    ),
    *((128, True, False, 32768 // q, 16, q, v) for q, v in zip(LENGTHS[1:4], (697, 927, 1090), strict=True)),
    *((128, False, back, 4, 16, 8192, v) for back, v in ((False, 1534.8), (True, 1359.8))),
    *((128, True, back, 4, 16, 8192, v) for back, v in ((False, 1418.1), (True, 1208.6))),
)
#: of FlashAttention-2 on an A100: 73 % of the peak forward and 63 % backward at best (T. Dao, "FlashAttention-2", ICLR
#: 2024, sections 4.1 and 5), which are long sequences without a mask of heads of 128
FA2_A100 = ((128, False, False, 1, 16, 16384, 0.73 * 312.0), (128, False, True, 1, 16, 16384, 0.63 * 312.0))

#: cuDNN, bf16, by length from 2,048 to 32,768, 64 heads: NVIDIA/cudnn-frontend, benchmark/attention_training/results,
#: llama3.1: a100 (an A100 PCIe) at 816ea457, h200 at 816ea457; benchmark/sdpa_benchmark_training/results/llama3.1/gb200
#: at 3929da2e, and dsv3/gb200 (keys of 192, values of 128, 128 heads; forward)
_LONG = (2048, 4096, 8192, 16384, 32768)


def _llama(rates: Mapping[tuple[bool, bool], Sequence[float]], *, width: int = 128, heads: int = 64) -> Figures:
    return tuple(
        (width, causal, back, 2, heads, length, float(rate))
        for (causal, back), row in rates.items()
        for length, rate in zip(_LONG, row, strict=False)
    )


CUDNN: Mapping[str, Figures] = {
    "a100-pcie-80gb": _llama(
        {
            (True, False): (155, 174, 177, 173, 176),
            (False, False): (191, 198, 186, 182, 181),
            (True, True): (109, 128, 136, 139, 143),
            (False, True): (135, 144, 142, 144, 146),
        }
    ),
    "h200-sxm-141gb": _llama(
        {
            (True, False): (534, 616, 655, 633, 619),
            (False, False): (660, 687, 701, 640, 622),
            (True, True): (402, 495, 526, 539, 528),
            (False, True): (519, 576, 562, 549, 543),
        }
    ),
    "gb200": (
        *_llama(
            {
                (True, False): (1097, 1408, 1574, 1708, 1622),
                (False, False): (1433, 1599, 1771, 1697, 1634),
                (True, True): (885, 1148, 1332, 1328, 1226),
                (False, True): (1124, 1350, 1404, 1374, 1262),
            }
        ),
        *_llama(
            {(True, False): (1072, 1406, 1585, 1678, 1743), (False, False): (1492, 1666, 1759, 1812, 1584)},
            width=160,
            heads=128,
        ),
    ),
    # Dao-AILab/flash-attention, pull request 2605
    "b200-sxm-180gb": tuple(
        (64, causal, False, 32768 // q, 32, q, float(v))
        for causal, row in ((False, (980, 1072, 1118, 1147, 1157)), (True, (627, 827, 977, 1071, 1115)))
        for q, v in zip(LENGTHS[1:], row, strict=True)
    ),
}
#: a GPU of a GB200 as it differs from a B200 (NVIDIA GB200 NVL72 datasheet, half of the sparse rates; multiprocessors:
#: NVIDIA/TransformerEngine at 0f1af9ae, benchmarks/mxfp8_requantize_comparison.rst)
GB200: Mapping[str, float] = {"sms": 152, "fp32": 80e12, "bf16": 2500e12, "memory_bandwidth": 8e12}

#: figures of GPUs that no constant was chosen with, as `FA4`, and what differs from a part of the catalogue: an H20
#: (Dao-AILab/flash-attention, issue 1310) and an RTX A5000 (gpu-mode/ring-attention, issue 10)
ELSEWHERE: Mapping[str, tuple[str, str, Mapping[str, float], Figures]] = {
    "H20: flash-attention": (
        "h100-sxm5-80gb",
        "flash-attention",
        {"sms": 78, "fp32": 44e12, "bf16": 148e12, "memory_bandwidth": 4e12},
        (
            (64, False, False, 2, 32, 2048, 120.1),
            (64, True, False, 2, 32, 2048, 100.3),
            (128, False, False, 2, 16, 2048, 126.2),
            (128, True, False, 2, 16, 2048, 107.8),
        ),
    ),
    "H20: flash-attention-2": (
        "h100-sxm5-80gb",
        "flash-attention-2",
        {"sms": 78, "fp32": 44e12, "bf16": 148e12, "memory_bandwidth": 4e12},
        (
            (64, False, False, 2, 32, 2048, 81.8),
            (64, True, False, 2, 32, 2048, 71.0),
            (128, False, False, 2, 16, 2048, 83.7),
            (128, True, False, 2, 16, 2048, 65.9),
        ),
    ),
    "RTX A5000: flash-attention": (
        "rtx-a6000",
        "flash-attention",
        {"sms": 64, "fp32": 27.8e12, "bf16": 111e12, "memory_bandwidth": 768e9},
        tuple(
            (64, False, back, 16384 // q, 32, q, v)
            for back, row in ((False, (84.08, 81.02, 81.31, 81.69, 81.86)), (True, (52.88, 62.54, 70.07, 74.8, 77.42)))
            for q, v in zip(LENGTHS[:5], row, strict=True)
        ),
    ),
    "H20: cudnn": (
        "h100-sxm5-80gb",
        "cudnn",
        {"sms": 78, "fp32": 44e12, "bf16": 148e12, "memory_bandwidth": 4e12},
        (
            (64, False, False, 2, 32, 2048, 126.1),
            (64, True, False, 2, 32, 2048, 109.1),
            (128, False, False, 2, 16, 2048, 129.1),
            (128, True, False, 2, 16, 2048, 107.8),
        ),
    ),
    "H100: cudnn of 2024": (  # J. Shah and others, FlashAttention-3 (arXiv 2407.08608), figure 5
        "h100-sxm5-80gb",
        "cudnn",
        {},
        tuple(
            (width, causal, False, 16384 // q, 2048 // width, q, float(v))
            for width, causal, row in (
                (128, False, (497, 574, 617, 609, 600, 595)),
                (128, True, (315, 410, 484, 518, 529, 539)),
                (256, False, (470, 546, 580, 581, 580, 581)),
            )
            for q, v in zip(LENGTHS, row, strict=True)
        ),
    ),
    "A100 PCIe: flash-attention": (  # NVIDIA/cudnn-frontend at 816ea457, as `CUDNN`
        "a100-pcie-80gb",
        "flash-attention",
        {},
        _llama(
            {
                (True, False): (180, 204, 217, 203, 199),
                (False, False): (216, 225, 213, 204, 201),
                (True, True): (141, 168, 173, 175, 180),
            }
        ),
    ),
    "H200: flash-attention (version 4)": (  # the same
        "h200-sxm-141gb",
        "flash-attention",
        {},
        _llama(
            {
                (True, False): (522, 619, 675, 702, 638),
                (False, False): (671, 734, 756, 686, 679),
                (True, True): (446, 558, 629, 606, 610),
                (False, True): (562, 636, 656, 621, 618),
            }
        ),
    ),
}
