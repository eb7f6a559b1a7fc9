"""Layouts of a model on a number of GPUs: every combination of the axes that divides the model and its batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from simperf.errors import InputError
from simperf.layout import Layout
from simperf.layout.layout import Sharding
from simperf.schedules.registry import model_parts
from simperf.workload.transformers import Transformer

__all__ = ["LayoutAxes", "LayoutChoice", "layers_of_stages", "layout_choices"]

#: tokens of a sequence that context parallelism leaves a rank at least, where the axis is not given
_LEAST_TOKENS = 4096
#: samples of a micro-batch at most, where the axis is not given
_MOST_SAMPLES = 8
#: parts of the model on a stage at most, where the axis is not given: the bubble is a 64th of a plain pipeline's then
_MOST_CHUNKS = 64
#: sharding, where the axis is not given: states alone; or weights too, where no pipeline has its own part of them
_SHARDINGS: tuple[Sharding, ...] = ("zero-1", "zero-3")


@dataclass(frozen=True, slots=True)
class LayoutAxes:
    """Values of each option of a layout that are tried; an empty axis stands for all that divide.

    Parameters
    ----------
    tp, cp, pp, ep, microbatch, chunks : tuple of int
    sharding, schedule, recompute, precision : tuple of str
    """

    tp: tuple[int, ...] = ()
    cp: tuple[int, ...] = ()
    pp: tuple[int, ...] = ()
    ep: tuple[int, ...] = ()
    microbatch: tuple[int, ...] = ()
    chunks: tuple[int, ...] = ()
    sharding: tuple[str, ...] = ()
    schedule: tuple[str, ...] = ("1f1b", "interleaved")
    recompute: tuple[str, ...] = ("none", "selective", "full")
    precision: tuple[str, ...] = ("bf16-master",)


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """One way to divide a model and its batch.

    Parameters
    ----------
    layout : Layout
    microbatch : int
        Samples of a micro-batch of each data-parallel rank.
    schedule : str
    chunks : int
        Parts of the model on each stage.
    recompute : str
    precision : str
    stage_layers : tuple of int
        Layers of each part of the model; none where all parts have as many.
    """

    layout: Layout
    microbatch: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    recompute: str = "none"
    precision: str = "bf16-master"
    stage_layers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """For tables, such as ``"tp=8 pp=16 dp=16 zero-1, micro-batch 1, interleaved x2, recompute full"``."""
        layout, words = self.layout, []
        words += [
            " ".join(f"{key}={size}" for key in ("tp", "cp", "ep", "pp", "dp") if (size := getattr(layout, key)) > 1)
        ]
        words[0] = (words[0] or "dp=1") + (f" {layout.sharding}" if layout.sharding != "none" else "")
        words.append(f"micro-batch {self.microbatch}")
        if layout.pp > 1:
            words.append(self.schedule + (f" x{self.chunks}" if self.chunks > 1 else ""))
        words += [f"recompute {self.recompute}"] if self.recompute != "none" else []
        return ", ".join(words)

    def options(self) -> dict[str, Any]:
        """Keys of a scenario's ``[program]`` that say it."""
        found: dict[str, Any] = {
            "microbatch": self.microbatch,
            "schedule": self.schedule,
            "recompute": self.recompute,
            "precision": self.precision,
        }
        found |= {"chunks": self.chunks} if self.chunks > 1 else {}
        return found | ({"stage_layers": list(self.stage_layers)} if self.stage_layers else {})


def layers_of_stages(layers: int, parts: int) -> tuple[int, ...] | None:
    """Layers of each of several parts of a model: none where all have as many, None where they cannot be divided.

    Where the parts do not divide the layers, the embedding and the head count as a layer each, as Llama 3 has it
    (arXiv 2407.21783, section 3.3.2): with as many parts, the first has the embedding alone and the last the head.

    Examples
    --------
    >>> layers_of_stages(32, 8), layers_of_stages(126, 16)[:3], layers_of_stages(126, 5)
    ((), (7, 8, 8), None)
    >>> layers_of_stages(6, 8)
    (0, 1, 1, 1, 1, 1, 1, 0)
    """
    if layers % parts == 0:
        return ()
    each, left = divmod(layers + 2, parts)
    if left or parts < 2 or layers < 1:
        return None
    return (each - 1, *[each] * (parts - 2), each - 1)


def layout_choices(
    axes: LayoutAxes, model: Transformer, *, gpus: int, domain: int, batch: int
) -> Iterator[LayoutChoice | None]:
    """Every combination of the axes on all GPUs; None in place of one that divides neither them, layers nor batch.

    Parameters
    ----------
    axes : LayoutAxes
    model : Transformer
    gpus : int
    domain : int
        GPUs that tensor parallelism stays within: those of a server, or of an NVLink domain.
    batch : int
        Samples of a step on all GPUs together.
    """
    tps = axes.tp or [one for one in _powers(domain) if model.heads % one == 0]
    cps = axes.cp or [one for one in _powers(gpus) if one == 1 or model.sequence >= one * _LEAST_TOKENS]
    eps = axes.ep or ([one for one in _powers(gpus) if model.experts % one == 0] if model.experts else [1])
    for tp, cp in product(tps, cps):
        if tp > domain or gpus % (tp * cp):
            yield from [None] * bool(axes.tp or axes.cp)
            continue
        left = gpus // (tp * cp)
        pps = axes.pp or [one for one in _divisors(left) if layers_of_stages(model.layers, one) is not None]
        for pp in pps:
            if left % pp or layers_of_stages(model.layers, pp) is None:
                yield None
                continue
            for ep in eps:
                yield from _of_grid(axes, model, batch, (tp, cp, pp, ep, left // pp))


def _of_grid(
    axes: LayoutAxes, model: Transformer, batch: int, grid: tuple[int, int, int, int, int]
) -> Iterator[LayoutChoice | None]:
    """Choices of one grid of ranks."""
    tp, cp, pp, ep, dp = grid
    if dp * cp * tp % (ep * tp) or batch % dp:
        yield None
        return
    samples = axes.microbatch or [one for one in _powers(_MOST_SAMPLES) if batch // dp % one == 0]
    for sharding, microbatch in product(_shardings(axes, dp * cp, pp), samples):
        if batch % (dp * microbatch):
            yield None
            continue
        layout = Layout(tp=tp, cp=cp, pp=pp, ep=ep, dp=dp, sharding=sharding)
        for schedule, chunks in _orders(axes, model.layers, pp, batch // (dp * microbatch)):
            counts = _layers_of_parts(model.layers, schedule, pp, chunks)
            if counts is None:
                yield None
                continue
            for recompute, precision in product(axes.recompute, axes.precision):
                yield LayoutChoice(layout, microbatch, schedule, chunks, recompute, precision, counts)


def _layers_of_parts(layers: int, schedule: str, pp: int, chunks: int) -> tuple[int, ...] | None:
    """As `layers_of_stages`, of the parts of a schedule; None for stages that it does not take."""
    try:
        return layers_of_stages(layers, model_parts(schedule, pp, chunks))
    except InputError:
        return None


def _shardings(axes: LayoutAxes, shared: int, pp: int) -> Sequence[Sharding]:
    """What ranks that have copies of the same weights keep a part of."""
    if shared == 1:
        return ("none",)
    if axes.sharding:
        return axes.sharding  # type: ignore[return-value]
    return _SHARDINGS if pp == 1 else _SHARDINGS[:1]


def _orders(axes: LayoutAxes, layers: int, pp: int, microbatches: int) -> Iterator[tuple[str, int]]:
    """Schedules with their numbers of parts on each stage."""
    if pp == 1:
        yield "1f1b", 1
        return
    for schedule in axes.schedule:
        if schedule != "interleaved":
            yield schedule, 1
        elif microbatches % pp == 0:
            most = (layers + 2) // pp
            yield from (
                (schedule, one)
                for one in axes.chunks or range(2, min(most, _MOST_CHUNKS) + 1)
                if 1 < one <= most and layers_of_stages(layers, pp * one) is not None
            )


def _powers(most: int) -> list[int]:
    """Powers of two that divide a number, or are at most a small one."""
    found, one = [], 1
    while one <= most:
        found += [one] if most % one == 0 else []
        one *= 2
    return found


def _divisors(number: int) -> list[int]:
    """All divisors of a number, the smallest first."""
    return [one for one in range(1, number + 1) if number % one == 0]
