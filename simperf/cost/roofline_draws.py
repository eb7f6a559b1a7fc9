"""Costs of a GPU without measurements, as one draw of how far such a GPU may lie from its roofline.

What a prediction from a data sheet misses has three parts. All kernels of a GPU share one: its clock under load, its
memory. The kernels of a sort share another: how far a library reaches the limits of such a chip. The third is each
shape's own. A step has kernels of a hundred shapes but of three sorts, so that the third part averages out and the
others do not: draws tell them apart. Kernels of one shape are one kernel, run twice, and miss alike.

A training step misses by more than its kernels: what a framework adds, what its library chooses (Winograd, TF32).
That is one more factor on all kernels of the step, in two parts again: a GPU's, and each model's in a precision.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import NormalDist

from simperf.cost.roofline import Roofline
from simperf.cost.seams import OpCost
from simperf.workload.op import MATRIX_FAMILIES, Op

__all__ = ["SORTS", "STEPS", "Miss", "Unseen", "UnseenRoofline", "even_normal", "sort_of", "step_sort"]

#: sorts of kernels: matrix products (convolutions and attention too), kernels on rows (softmax, normalisation), and
#: what streams through memory (all others)
SORTS = ("product", "rows", "stream")
#: sorts of training steps, by what their matrix products are in: fp32, tf32, or 16 bits and fewer
STEPS = ("fp32", "tf32", "half")
_NORMAL = NormalDist()
#: so many draws of what kernels share lie in so many equal parts of its distribution (McKay, Beckman and Conover, "A
#: comparison of three methods for selecting values of input variables", Technometrics 21(2), 1979); 20 are the fewest
#: draws that say something about the outer 5 %
_PARTS = 20


def sort_of(op: Op) -> str:
    """The sort of `op`'s kernel, one of `SORTS`."""
    if op.family in MATRIX_FAMILIES:
        return "product"
    return "rows" if op.family == "normalization" else "stream"


def step_sort(precision: str) -> str:
    """The sort of a training step whose matrix products are in `precision`, one of `STEPS`."""
    return {"fp64": "fp32", "fp32": "fp32", "tf32": "tf32"}.get(precision, "half")


@dataclass(frozen=True, slots=True)
class Miss:
    """Distance of kernels or steps of one sort from what is predicted, as standard deviations of the logarithm.

    Parameters
    ----------
    common : float
        Of what all of them share on a GPU [1].
    own : float
        Of what each shape, or each model's step, has beside [1].
    middle : float
        Median of the logarithm [1].
    """

    common: float
    own: float
    middle: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """One draw of how far GPUs lie from their rooflines: the same for a GPU's name wherever it stands.

    Parameters
    ----------
    draw : int
    misses : mapping of str to Miss
        By sort; a sort that is absent is not missed.
    alike : float
        Correlation of what two sorts miss on one GPU [1].
    said : collection of str
        Families, with or without precision, whose efficiency somebody stated: they are taken at their word.
    steps : mapping of str to Miss
        Of whole training steps beside their kernels, by `STEPS`; a sort that is absent is not missed.

    Examples
    --------
    >>> one = Unseen(draw=1, misses={"product": Miss(0.3, 0.0)}, alike=0.2)
    >>> from simperf.workload.kinds import matmul
    >>> one.longer(matmul(64, 64, k=64), "t4") == one.longer(matmul(128, 64, k=64), "t4")
    True
    """

    draw: int
    misses: Mapping[str, Miss]
    alike: float = 0.0
    said: Collection[str] = ()
    steps: Mapping[str, Miss] = field(default_factory=dict)

    def longer(self, op: Op, gpu: str) -> float:
        """Time of `op` on a GPU of the name `gpu` over the predicted one [1]."""
        sort = sort_of(op)
        miss = self.misses.get(sort)
        if miss is None or op.family in self.said or f"{op.family}-{op.dtype}" in self.said:
            return 1.0
        shared = math.sqrt(self.alike) * even_normal(self.draw, gpu)
        shared += math.sqrt(1.0 - self.alike) * even_normal(self.draw, gpu, sort)
        gemm = op.gemm
        shape = (gemm.batch, gemm.m, gemm.n, gemm.k) if gemm is not None else (op.elements, op.row)
        own = _chance(self.draw, gpu, op.kind, op.dtype, *shape, op.flops, op.nbytes) if miss.own else 0.5
        return math.exp(miss.common * shared + miss.own * _NORMAL.inv_cdf(own))

    def step(self, model: str, precision: str, gpu: str) -> float:
        """Time of a training step over that of its kernels on a GPU of the name `gpu` [1].

        Parameters
        ----------
        model : str
            Its name: batches of one model in one precision miss alike.
        precision : str
            Of its matrix products.
        gpu : str
        """
        miss = self.steps.get(step_sort(precision))
        if miss is None:
            return 1.0
        shared, own = even_normal(self.draw, gpu, "step"), even_normal(self.draw, gpu, "step", model, precision)
        return math.exp(miss.middle + miss.common * shared + miss.own * own)


def _chance(*key: object) -> float:
    """A number between 0 and 1 that is `key`'s, whoever else draws."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return (int.from_bytes(digest[:6], "big") + 0.5) / 2.0**48


@lru_cache(maxsize=4096)
def even_normal(draw: int, *key: str) -> float:
    """A standard normal number of the draw and `key`; `_PARTS` draws on end lie in as many equal parts, shuffled."""
    block, place = divmod(draw, _PARTS)
    order = sorted(range(_PARTS), key=lambda part: _chance(block, part, *key))
    return _NORMAL.inv_cdf((order[place] + _chance(draw, *key)) / _PARTS)


class UnseenRoofline:
    """The roofline of a GPU without measurements, at one draw.

    No kernel gets faster than its lower bound: flops over peak, bytes over bandwidth. A step may, by an algorithm
    with fewer multiplications or kernels that are one.

    Parameters
    ----------
    roofline : Roofline
    unseen : Unseen
    """

    __slots__ = ("_roofline", "_unseen")

    def __init__(self, roofline: Roofline, unseen: Unseen) -> None:
        self._roofline, self._unseen = roofline, unseen

    def step(self, model: str, precision: str) -> float:
        """Time of a training step over that of its kernels [1], see `Unseen.step`."""
        return self._unseen.step(model, precision, self._roofline.device.name)

    def accounts(self, op: Op) -> frozenset[str]:
        """Effects that the cost of `op` accounts for, as `Roofline.accounts`."""
        return self._roofline.accounts(op)

    def attention_library(self, op: Op) -> str:
        """Library whose kernels cost an attention, as `Roofline.attention_library`."""
        return self._roofline.attention_library(op)

    def cost(self, op: Op) -> OpCost:
        """Cost of `op` alone on the device."""
        cost = self._roofline.cost(op)
        longer = self._unseen.longer(op, self._roofline.device.name)
        longer = max(longer, min(1.0, (self._roofline.floor(op) + cost.overhead) / cost.time)) if cost.time else longer
        return replace(
            cost,
            time=cost.time * longer,
            compute_time=cost.compute_time * longer,
            memory_time=cost.memory_time * longer,
        )
