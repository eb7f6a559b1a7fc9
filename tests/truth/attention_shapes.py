"""Attention by shape against tables of an inference library and published figures of FlashAttention.

``python -m tests.truth.kernels attention`` prints, for each GPU, the median of the absolute errors on
shapes that no constant was chosen with, and with constants of the other GPUs alone; ``--fit`` computes the constants
that the architectures' files have. A hash of the shape puts it into the half that is fitted or the half that is graded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.attention_tables import FP8_BY_CACHE, shape_fitted, table_columns
from simperf.accuracy.lattice_profile import attention_calls, profile_model
from simperf.accuracy.shape_tables import ShapeTable, read_shape_tables
from simperf.cost import Roofline
from simperf.cost.attention import attention_rates, backward_constants, library_constants
from simperf.cost.attention_formulas import AttentionRates, AttentionWork, attention_time, decode_time, visible
from simperf.hardware import Catalog, GpuPart
from tests.truth.attention_figures import CUDNN, ELSEWHERE, FA2_A100, FA3_PAPER, FA4, GB200, LENGTHS, Figures
from tests.truth.error_lines import error_line

__all__ = [
    "Calls",
    "constants_of",
    "decode_calls",
    "elsewhere_calls",
    "errors_of",
    "figure_calls",
    "fit",
    "prefill_calls",
]

_line = partial(error_line, width=44)
Array = NDArray[np.float64]
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
#: GPU of cuDNN's figures -> part whose architecture has their constants
CUDNN_LIKE = {
    "a100-pcie-80gb": "a100-sxm4-80gb",
    "h200-sxm-141gb": "h200-sxm-141gb",
    "gb200": "b200-sxm-180gb",
    "b200-sxm-180gb": "b200-sxm-180gb",
}
#: constants that cuDNN has of FlashAttention on the same architecture: its figures are of long sequences alone
_AS_FLASH = ("serial", "block", "tail", "wide", "backward-block")
#: goals of prefill: own GPU's other shapes, and a GPU left out
GOALS = (0.07, 0.15)


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


def _rates(gpu: str) -> AttentionRates:
    return _rates_of(Catalog.load().gpu(gpu))


def _changed(part: GpuPart, given: Mapping[str, float]) -> GpuPart:
    """A part of the catalogue with other limits."""
    if not given:
        return part
    peak = {**part.peak, "fp32": given["fp32"], "bf16": given["bf16"], "fp16": given["bf16"]}
    return replace(part, peak=peak, sms=int(given["sms"]), memory_bandwidth=given["memory_bandwidth"])


def _rates_of(part: GpuPart) -> AttentionRates:
    return attention_rates(part, memory=part.memory_bandwidth * part.efficiency["elementwise"], floor=part.kernel_floor)


def _bytes(table: ShapeTable, column: str) -> Array:
    return np.where(np.asarray(table[column]) == "fp8", 1.0, 2.0)


def prefill_calls(table: ShapeTable) -> Calls:
    """Calls of a table of prefill, causal, whose keys and values are written to the cache first."""
    part = Catalog.load().gpu(table.gpu)
    mla = table.kind == "mla_prefill"
    if mla:
        # DeepSeek's heads: keys of 128 + 64, values of 128; each head has keys of its own
        batch, queries, heads = table_columns(table, "batch_size", "isl", "num_heads")
        kv, width, values, window = heads, np.full(len(heads), 192.0), np.full(len(heads), 128.0), 0.0 * heads
        dtype = "mla_dtype"
    else:
        names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "window_size")
        batch, queries, heads, kv, width, window = table_columns(table, *names)
        kv, values, dtype = np.where(kv > 0, kv, heads), width, "attn_dtype"
    cache = _bytes(table, "kv_cache_dtype")
    fp8 = (_bytes(table, dtype) == 1.0) | ((cache == 1.0) & (part.architecture in FP8_BY_CACHE) & (not mla))
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
    fitted = np.array([shape_fitted(*map(float, row)) for row in zip(*keys, strict=True)])
    flops = work.instances * queries**2 * (width + values)
    return Calls(table.gpu, _rates(table.gpu), work, table["latency"], fitted, np.zeros(len(fitted), bool), {}, flops)


def decode_calls(table: ShapeTable) -> Calls:
    """Calls of a table of decoding: one query a sequence."""
    names = ("batch_size", "step", "num_heads", "num_key_value_heads", "head_dim", "window_size")
    batch, step, heads, kv, width, window = table_columns(table, *names)
    kv = np.where(kv > 0, kv, heads)
    cache = _bytes(table, "kv_cache_dtype")
    keys = np.where((window > 0) & (window < step + 1), window, step + 1)
    group = heads / kv
    wide = group > 16
    instances = batch * np.where(wide, heads, kv)
    read = batch * kv * keys * 2.0 * width * cache * np.where(wide, group / 2.0, 1.0)
    work = AttentionWork(instances, 1.0, 1.0, 1.0, 1.0, width, 2.0, read + 4.0 * batch * heads * width)
    every = (batch, step, heads, kv, width, window, cache)
    fitted = np.array([shape_fitted(*map(float, row)) for row in zip(*every, strict=True)])
    decode = {"keys": keys, "group": np.where(wide, 1.0, group)}
    flops = 4.0 * batch * heads * keys * width
    return Calls(
        table.gpu, _rates(table.gpu), work, table["latency"], fitted, np.zeros(len(fitted), bool), decode, flops
    )


def figure_calls(library: str, gpu: str) -> Calls:
    """Published figures of a library on a GPU; of cuDNN on ``"gb200"``, a B200 as `GB200` says."""
    rows: list[tuple[int, bool, bool, int, int, int, float]] = []
    if library == "cudnn":
        part = Catalog.load().gpu("b200-sxm-180gb" if gpu == "gb200" else gpu)
        return _figures(gpu, _rates_of(_changed(part, GB200) if gpu == "gb200" else part), CUDNN[gpu], halves=True)
    if gpu == "h100-sxm5-80gb":
        for width, causal, back, values in FA3_PAPER[library]:
            rows += [
                (width, causal, back, 16384 // q, 2048 // width, q, float(v))
                for q, v in zip(LENGTHS, values, strict=True)
            ]
    elif gpu == "b200-sxm-180gb":
        rows += FA4
    elif gpu == "a100-sxm4-80gb":
        rows += FA2_A100
    return _figures(gpu, _rates(gpu), rows, halves=gpu == "h100-sxm5-80gb")


def elsewhere_calls() -> dict[str, tuple[Calls, dict[str, float]]]:
    """Published figures of GPUs that no constant was chosen with, and the constants of their architecture."""
    found = {}
    for label, (like, library, given, rows) in ELSEWHERE.items():
        part = _changed(Catalog.load().gpu(like), given)
        found[label] = (_figures(like, _rates_of(part), rows, halves=False), library_constants(part, library))
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
    fitted = np.array([shape_fitted(*map(int, row[:3]), int(row[5])) or not halves for row in rows])
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
    profiles = list(attention_calls(folder))
    prefill = [prefill_calls(table) for table in read_shape_tables(folder, "attention_prefill") if table.gpu]
    for calls in prefill:
        rest = calls.where(~calls.fitted)
        yield _line(f"{calls.gpu}: own other shapes", errors_of(rest, constants_of(calls.gpu, "tensorrt-llm")))
        for precision in [one for one in profiles if one.part.name == calls.gpu]:
            name = precision.model.removeprefix("kernel.attention-").partition(":")[0]
            models = {"operations": Roofline(precision.part), "with the profile": profile_model([precision])}
            for label, model in models.items():
                away = (precision.times(model) / precision.measured - 1.0)[~precision.fitted]
                yield _line(f"{calls.gpu}: own other shapes, {name}, {label}", away)
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
    yield "published figures, forward and backward"
    for library in ("flash-attention", "flash-attention-2"):
        calls = figure_calls(library, "h100-sxm5-80gb")
        rest = calls.where(~calls.fitted)
        yield _line(f"{calls.gpu}: {library}, own other shapes", errors_of(rest, constants_of(calls.gpu, library)))
    for gpu, like in CUDNN_LIKE.items():
        calls = figure_calls("cudnn", gpu)
        rest = calls.where(~calls.fitted)
        yield _line(f"{gpu}: cudnn, own other shapes", errors_of(rest, constants_of(like, "cudnn")))
    yield "libraries on GPUs that no constant was chosen with"
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
    names = [name for name in FLASH if name not in _AS_FLASH]
    for like in dict.fromkeys(CUDNN_LIKE.values()):
        own = [figure_calls("cudnn", gpu) for gpu, one in CUDNN_LIKE.items() if one == like]
        base = constants_of(like, "flash-attention")
        known = {name: base[name] for name in _AS_FLASH}
        yield f"{like} cudnn {known | fit(own, names, known)}"
