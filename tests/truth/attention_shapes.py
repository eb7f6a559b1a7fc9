"""Attention by shape against tables of an inference library and published figures of FlashAttention.

``SIMPERF_TRUTH=... python -m tests.truth.attention_shapes`` prints, for each GPU, the median of the absolute errors on
shapes that no constant was chosen with, and with constants of the other GPUs alone; ``--fit`` computes the constants
that the architectures' files have. A hash of the shape puts it into the half that is fitted or the half that is graded.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.shape_tables import ShapeTable, read_shape_tables
from simperf.cost.attention import attention_rates, backward_constants, library_constants
from simperf.cost.attention_formulas import AttentionRates, AttentionWork, attention_time, decode_time, visible
from simperf.hardware import Catalog

__all__ = [
    "Calls",
    "constants_of",
    "decode_calls",
    "elsewhere_calls",
    "errors_of",
    "figure_calls",
    "fit",
    "main",
    "prefill_calls",
]

Array = NDArray[np.float64]
#: rows of width, mask, direction, batch, heads, length, TFLOP/s
Figures = Sequence[tuple[int, bool, bool, int, int, int, float]]
#: constant -> start, least and largest value of a fit
BOUNDS: Mapping[str, tuple[float, float, float]] = {
    "matrix": (0.8, 0.2, 1.0),
    "matrix-fp8": (0.6, 0.2, 1.0),
    "exponential": (1.6, 0.3, 8.0),
    "serial": (0.5, 0.0, 1.0),
    "block": (6000.0, 1.0, 40000.0),
    "tail": (0.5, 0.0, 1.0),
    "wide": (0.2, 0.0, 1.5),
    "fixed": (5.0, 0.5, 12.0),
    "prepare": (25.0, 3.0, 500.0),
    "cached": (3.0, 1.0, 8.0),
    "backward-matrix": (0.7, 0.2, 1.0),
    "backward-exponential": (3.0, 0.3, 10.0),
    "backward-block": (6000.0, 1.0, 60000.0),
    "decode-memory": (0.8, 0.2, 1.15),
    "decode-matrix": (0.2, 0.02, 1.0),
    "decode-block": (500.0, 0.0, 10000.0),
    "decode-fixed": (4.0, 0.5, 12.0),
    "decode-cached": (3.0, 1.0, 8.0),
}
PREFILL = ("matrix", "matrix-fp8", "exponential", "serial", "block", "tail", "wide", "fixed", "prepare")
DECODE = ("decode-memory", "decode-matrix", "decode-block", "decode-fixed", "decode-cached")
FLASH = (
    *("matrix", "exponential", "serial", "block", "wide"),
    *("backward-matrix", "backward-exponential", "backward-block"),
)
#: architectures on which the inference library multiplies in fp8 if the cache is in fp8, whatever the queries are in
_FP8_BY_CACHE = ("hopper", "blackwell")
#: goals of prefill: own GPU's other shapes, and a GPU left out
GOALS = (0.07, 0.15)
_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
#: TFLOP/s by library and GPU, of width, mask, direction and lengths, 16 k tokens and a model width of 2,048: bf16 on an
#: H100 SXM5 from figures 5 and 6 of J. Shah and others, "FlashAttention-3" (arXiv 2407.08608)
_FA3_PAPER: Mapping[str, Sequence[tuple[int, bool, bool, tuple[int, ...]]]] = {
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
_FA4_128 = (1205, 1279, 1328, 1358, 1362)
_FA4: Figures = (
    *((64, False, False, 32768 // q, 32, q, v) for q, v in zip(_LENGTHS[1:], (702, 733, 749, 758, 762), strict=True)),
    *((64, True, False, 32768 // q, 32, q, v) for q, v in zip(_LENGTHS[1:], (423, 579, 713, 792, 834), strict=True)),
    *(
        (128, False, False, 32768 // q, 16, q, v)
        for q, v in zip(_LENGTHS[1:], (1205, 1279, 1328, 1358, 1362), strict=True)
    ),
    *((128, True, False, 32768 // q, 16, q, v) for q, v in zip(_LENGTHS[1:4], (697, 927, 1090), strict=True)),
    *((128, False, back, 4, 16, 8192, v) for back, v in ((False, 1534.8), (True, 1359.8))),
    *((128, True, back, 4, 16, 8192, v) for back, v in ((False, 1418.1), (True, 1208.6))),
)
#: of FlashAttention-2 on an A100: 73 % of the peak forward and 63 % backward at best (T. Dao, "FlashAttention-2", ICLR
#: 2024, sections 4.1 and 5), which are long sequences without a mask of heads of 128
_FA2_A100 = ((128, False, False, 1, 16, 16384, 0.73 * 312.0), (128, False, True, 1, 16, 16384, 0.63 * 312.0))

#: figures of GPUs that no constant was chosen with, as `_FA4`, and what differs from a part of the catalogue: an H20
#: (Dao-AILab/flash-attention, issue 1310) and an RTX A5000 (gpu-mode/ring-attention, issue 10)
_ELSEWHERE: Mapping[str, tuple[str, str, Mapping[str, float], Figures]] = {
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
            for q, v in zip(_LENGTHS[:5], row, strict=True)
        ),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Measured calls of one table, ready for the formulas.

    Parameters
    ----------
    gpu : str
        Name in the catalogue.
    rates : AttentionRates
    work : AttentionWork
        Forward calls, or all if there is but one direction.
    time : array
        [s]
    fitted : array of bool
        The half that constants may be chosen with.
    back : array of bool
        Calls of the backward pass.
    decode : mapping of str to array
        Keys and group of calls with one query; empty for all others.
    flops : array
        [FLOP]
    """

    gpu: str
    rates: AttentionRates
    work: AttentionWork
    time: Array
    fitted: NDArray[np.bool_]
    back: NDArray[np.bool_]
    decode: Mapping[str, Array]
    flops: Array

    def where(self, chosen: NDArray[np.bool_]) -> Calls:
        """The calls that are `chosen`."""
        names = ("instances", "blocks", "tiles", "longest", "scores", "width", "nbytes", "prepared", "fp8")
        work = {name: np.broadcast_to(getattr(self.work, name), chosen.shape)[chosen] for name in names}
        decode = {key: value[chosen] for key, value in self.decode.items()}
        return Calls(
            self.gpu,
            self.rates,
            AttentionWork(products=self.work.products, **work),
            self.time[chosen],
            self.fitted[chosen],
            self.back[chosen],
            decode,
            self.flops[chosen],
        )

    def predicted(self, constants: Mapping[str, float]) -> Array:
        """Times by the formulas [s]."""
        if self.decode:
            found = decode_time(self.work, self.rates, constants, warm=True, **self.decode)[0]
            return np.asarray(found, dtype=float)
        forward = attention_time(self.work, self.rates, constants, warm=True)[0]
        if not self.back.any():
            return np.asarray(forward, dtype=float)
        names = ("instances", "blocks", "tiles", "longest", "scores", "width", "nbytes", "prepared")
        work = AttentionWork(products=5.0, **{name: getattr(self.work, name) for name in names})
        backward = attention_time(work, self.rates, backward_constants(constants), warm=True)[0]
        return np.asarray(np.where(self.back, backward, forward), dtype=float)


def _half(*shape: Any) -> bool:
    """Whether a shape is of the half that constants may be chosen with."""
    return hashlib.sha256(repr(shape).encode()).digest()[0] % 2 == 0


def _rates(gpu: str) -> AttentionRates:
    part = Catalog.load().gpu(gpu)
    return attention_rates(part, memory=part.memory_bandwidth * part.efficiency["elementwise"], floor=part.kernel_floor)


def _columns(table: ShapeTable, *names: str) -> list[Array]:
    missing = {"head_dim": 128.0, "window_size": 0.0}
    return [
        np.asarray(table[name] if name in table.columns else np.full(len(table), missing[name]), dtype=float)
        for name in names
    ]


def _bytes(table: ShapeTable, column: str) -> Array:
    return np.where(np.asarray(table[column]) == "fp8", 1.0, 2.0)


def prefill_calls(table: ShapeTable) -> Calls:
    """Calls of a table of prefill, causal, whose keys and values are written to the cache first."""
    part = Catalog.load().gpu(table.gpu)
    mla = table.kind == "mla_prefill"
    if mla:
        # DeepSeek's heads: keys of 128 + 64, values of 128; each head has keys of its own
        batch, queries, heads = _columns(table, "batch_size", "isl", "num_heads")
        kv, width, values, window = heads, np.full(len(heads), 192.0), np.full(len(heads), 128.0), 0.0 * heads
        dtype = "mla_dtype"
    else:
        names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "window_size")
        batch, queries, heads, kv, width, window = _columns(table, *names)
        kv, values, dtype = np.where(kv > 0, kv, heads), width, "attn_dtype"
    cache = _bytes(table, "kv_cache_dtype")
    fp8 = (_bytes(table, dtype) == 1.0) | ((cache == 1.0) & (part.architecture in _FP8_BY_CACHE) & (not mla))
    size = np.where(fp8, 1.0, 2.0)
    cut = np.array([visible(int(q), int(q), window=int(w)) for q, w in zip(queries, window, strict=True)], dtype=float)
    tokens = batch * queries
    # a token of DeepSeek's cache is one latent vector of 512 and a rotated part of 64
    rotated, written = (64.0, 512.0 + 64.0) if mla else (width, kv * (width + values))
    work = AttentionWork(
        instances=batch * heads,
        blocks=cut[:, 0],
        tiles=cut[:, 1],
        longest=cut[:, 2],
        scores=cut[:, 3],
        width=0.5 * (width + values),
        products=2.0,
        nbytes=tokens * (heads * width * size + kv * (width + values) * cache + 2.0 * heads * values),
        prepared=tokens * (heads * rotated * (2.0 + size) + written * (2.0 + cache)),
        fp8=fp8,
    )
    keys = (batch, queries, heads, kv, width, window, size, cache)
    fitted = np.array([_half(*map(float, row)) for row in zip(*keys, strict=True)])
    flops = work.instances * queries**2 * (width + values)
    return Calls(table.gpu, _rates(table.gpu), work, table["latency"], fitted, np.zeros(len(fitted), bool), {}, flops)


def decode_calls(table: ShapeTable) -> Calls:
    """Calls of a table of decoding: one query a sequence."""
    names = ("batch_size", "step", "num_heads", "num_key_value_heads", "head_dim", "window_size")
    batch, step, heads, kv, width, window = _columns(table, *names)
    kv = np.where(kv > 0, kv, heads)
    cache = _bytes(table, "kv_cache_dtype")
    keys = np.where((window > 0) & (window < step + 1), window, step + 1)
    group = heads / kv
    wide = group > 16
    instances = batch * np.where(wide, heads, kv)
    read = batch * kv * keys * 2.0 * width * cache * np.where(wide, group / 2.0, 1.0)
    work = AttentionWork(instances, 1.0, 1.0, 1.0, 1.0, width, 2.0, read + 4.0 * batch * heads * width)
    every = (batch, step, heads, kv, width, window, cache)
    fitted = np.array([_half(*map(float, row)) for row in zip(*every, strict=True)])
    decode = {"keys": keys, "group": np.where(wide, 1.0, group)}
    flops = 4.0 * batch * heads * keys * width
    return Calls(
        table.gpu, _rates(table.gpu), work, table["latency"], fitted, np.zeros(len(fitted), bool), decode, flops
    )


def figure_calls(library: str, gpu: str) -> Calls:
    """Published figures of FlashAttention on a GPU."""
    rows: list[tuple[int, bool, bool, int, int, int, float]] = []
    if gpu == "h100-sxm5-80gb":
        for width, causal, back, values in _FA3_PAPER[library]:
            rows += [
                (width, causal, back, 16384 // q, 2048 // width, q, float(v))
                for q, v in zip(_LENGTHS, values, strict=True)
            ]
    elif gpu == "b200-sxm-180gb":
        rows += _FA4
    elif gpu == "a100-sxm4-80gb":
        rows += _FA2_A100
    return _figures(gpu, _rates(gpu), rows, halves=gpu == "h100-sxm5-80gb")


def elsewhere_calls() -> dict[str, tuple[Calls, dict[str, float]]]:
    """Published figures of GPUs that no constant was chosen with, and the constants of their architecture."""
    found = {}
    for label, (like, library, given, rows) in _ELSEWHERE.items():
        part = Catalog.load().gpu(like)
        peak = {**part.peak, "fp32": given["fp32"], "bf16": given["bf16"], "fp16": given["bf16"]}
        part = replace(part, peak=peak, sms=int(given["sms"]), memory_bandwidth=given["memory_bandwidth"])
        rates = attention_rates(
            part, memory=part.memory_bandwidth * part.efficiency["elementwise"], floor=part.kernel_floor
        )
        found[label] = (_figures(like, rates, rows, halves=False), library_constants(part, library))
    return found


def _figures(gpu: str, rates: AttentionRates, rows: Figures, *, halves: bool) -> Calls:
    """Calls of figures in TFLOP/s."""
    width, causal, back, batch, heads, queries, rate = (np.array(column) for column in zip(*rows, strict=True))
    cut = np.array([visible(int(q), int(q), causal=bool(c)) for q, c in zip(queries, causal, strict=True)], dtype=float)
    values = batch * heads * queries * width * 1.0
    flops = 4.0 * values * queries * np.where(causal, 0.5, 1.0) * np.where(back, 2.5, 1.0)
    work = AttentionWork(
        instances=batch * heads * 1.0,
        blocks=cut[:, 0],
        tiles=cut[:, 1],
        longest=cut[:, 2],
        scores=cut[:, 3],
        width=width * 1.0,
        products=2.0,
        nbytes=2.0 * values * np.where(back, 8.0, 4.0),
        prepared=values * np.where(back, 14.0, 0.0),
    )
    fitted = np.array([_half(*map(int, row[:3]), int(row[5])) or not halves for row in rows])
    return Calls(gpu, rates, work, flops / rate / 1e12, fitted, back.astype(bool), {}, flops)


def fit(every: Sequence[Calls], names: Sequence[str], known: Mapping[str, float] | None = None) -> dict[str, float]:
    """Constants with the least error on the fitted halves, tables of any length counting the same."""
    from scipy.optimize import least_squares

    halves = [calls.where(calls.fitted) for calls in every]
    start, low, high = (np.array([BOUNDS[name][i] for name in names]) for i in range(3))

    def residuals(z: Array) -> Array:
        constants = {**(known or {}), **dict(zip(names, z * start, strict=True))}
        return np.concatenate(
            [np.log(calls.predicted(constants) / calls.time) * (2000.0 / len(calls.time)) ** 0.5 for calls in halves]
        )

    found = least_squares(
        residuals, np.ones(len(start)), bounds=(low / start, high / start), loss="soft_l1", f_scale=0.1, max_nfev=80
    )
    return {name: float(f"{value:.3g}") for name, value in zip(names, found.x * start, strict=True)}


def errors_of(calls: Calls, constants: Mapping[str, float]) -> Array:
    """Predicted over measured time, less 1."""
    return calls.predicted(constants) / calls.time - 1.0


def _line(label: str, errors: Array) -> str:
    size = np.abs(errors)
    return f"{label:44} {len(size):5}  {np.median(errors):+7.1%} {np.median(size):7.1%} {np.quantile(size, 0.9):7.1%}"


def _baselines(calls: Calls) -> tuple[Array, Array]:
    """Errors of one efficiency of the roofline, and of constant FLOP/s, both fitted to the first half."""
    rates = calls.rates
    peak = np.where(calls.work.fp8, rates.matrix_fp8, rates.matrix)
    memory = (calls.work.nbytes + calls.work.prepared) / rates.memory

    def roofline(share: float) -> Array:
        return np.maximum(calls.flops / (peak * share), memory) + rates.floor

    def median(times: Array) -> float:
        chosen = calls.fitted
        return float(np.median(np.abs(times[chosen] / calls.time[chosen] - 1.0)))

    best = min(np.linspace(0.05, 1.0, 96), key=lambda share: median(roofline(float(share))))
    rate = float(np.median((calls.flops / calls.time)[calls.fitted]))
    rest = ~calls.fitted
    return (roofline(float(best)) / calls.time - 1.0)[rest], (calls.flops / rate / calls.time - 1.0)[rest]


def constants_of(gpu: str, library: str) -> dict[str, float]:
    """Constants that the catalogue has of a library on a GPU."""
    return library_constants(Catalog.load().gpu(gpu), library)


def report(folder: str) -> Iterable[str]:
    """Lines of the table: by kind, the shipped constants, those of the other GPUs, and the baselines."""
    yield f"{'prefill (goals 7 % own, 15 % left out)':44} {'rows':>5}  {'bias':>7} {'median':>7} {'p90':>7}"
    prefill = [prefill_calls(table) for table in read_shape_tables(folder, "attention_prefill") if table.gpu]
    for calls in prefill:
        rest = calls.where(~calls.fitted)
        yield _line(f"{calls.gpu}: own other shapes", errors_of(rest, constants_of(calls.gpu, "tensorrt-llm")))
        others = fit([one for one in prefill if one is not calls], PREFILL)
        yield _line(f"{calls.gpu}: left out", errors_of(calls, others))
        one, constant = _baselines(calls)
        yield _line(f"{calls.gpu}: one efficiency (baseline)", one)
        yield _line(f"{calls.gpu}: constant FLOP/s (baseline)", constant)
    decode = [decode_calls(table) for table in read_shape_tables(folder, "attention_decode") if table.gpu]
    yield "decode (no goal)"
    for calls in decode:
        rest = calls.where(~calls.fitted)
        yield _line(f"{calls.gpu}: own other shapes", errors_of(rest, constants_of(calls.gpu, "tensorrt-llm")))
        others = fit([one for one in decode if one is not calls], DECODE)
        yield _line(f"{calls.gpu}: left out", errors_of(calls, others))
    yield "MLA prefill (no goal; no constant was fitted to it)"
    for table in read_shape_tables(folder, "mla_prefill"):
        if table.gpu:
            calls = prefill_calls(table)
            yield _line(calls.gpu, errors_of(calls, constants_of(calls.gpu, "tensorrt-llm")))
    yield "FlashAttention, published figures, forward and backward"
    for library in ("flash-attention", "flash-attention-2"):
        calls = figure_calls(library, "h100-sxm5-80gb")
        rest = calls.where(~calls.fitted)
        yield _line(f"{calls.gpu}: {library}, own other shapes", errors_of(rest, constants_of(calls.gpu, library)))
    yield "FlashAttention, GPUs that no constant was chosen with"
    for label, (calls, constants) in elsewhere_calls().items():
        yield _line(label, errors_of(calls, constants))


def fits(folder: str) -> Iterable[str]:
    """Constants of each architecture, as its file has them."""
    catalog = Catalog.load()
    # only an L2 as large as Ada's, beside a memory as slow, tells in prefill
    for kind, names, make in (("prefill", PREFILL, prefill_calls), ("decode", DECODE, decode_calls)):
        by: dict[str, list[Calls]] = {}
        for table in read_shape_tables(folder, f"attention_{kind}"):
            if table.gpu:
                by.setdefault(catalog.gpu(table.gpu).architecture, []).append(make(table))
        for architecture, every in by.items():
            cached = ("cached",) if architecture == "ada" and kind == "prefill" else ()
            yield f"{architecture} tensorrt-llm {fit(every, (*names, *cached))}"
    flash = {}
    for library, gpu in (
        ("flash-attention", "h100-sxm5-80gb"),
        ("flash-attention-2", "h100-sxm5-80gb"),
        ("flash-attention", "b200-sxm-180gb"),
    ):
        # figures of full devices do not tell how unevenly a few blocks end; tables of small calls do
        known = {"tail": constants_of(gpu, "tensorrt-llm")["tail"]}
        flash[library, gpu] = known | fit([figure_calls(library, gpu)], FLASH, known)
        yield f"{gpu} {library} {flash[library, gpu]}"
    a100 = "a100-sxm4-80gb"
    known = flash["flash-attention-2", "h100-sxm5-80gb"] | {"tail": constants_of(a100, "tensorrt-llm")["tail"]}
    found = fit([figure_calls("flash-attention", a100)], ("matrix", "backward-matrix"), known)
    yield f"{a100} flash-attention {known | found}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or the constants."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.attention_shapes", description=__doc__)
    parser.add_argument("--fit", action="store_true", help="compute the constants instead")
    options = parser.parse_args(arguments)
    folder = os.environ.get("SIMPERF_TRUTH")
    if not folder:
        raise SystemExit("SIMPERF_TRUTH names no folder of measured data")
    for line in fits(folder) if options.fit else report(folder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
