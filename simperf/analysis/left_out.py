"""90 % intervals of predictions, from the errors of published figures that were left out.

A published figure was measured once, on constants of one machine, by a program that the model knows in part. Its error
has every source of a prediction's error: constants, spread from run to run, and what the model leaves out. So
the errors of figures that a prediction has not seen are the errors to expect of a new prediction of the same kind.

The interval is a conformal one (V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*, 2005): the
outer quantiles of the signed errors, in logarithms of measured over predicted time. Two things are added.

*Difficulty* (H. Papadopoulos, A. Gammerman, V. Vovk, "Normalized nonconformity measures for regression conformal
prediction", 2008): each error is divided by ``1 + difficulty / base``, and the quantiles are multiplied by that of the
prediction. Difficulty comes from the prediction itself: what a run loses against linear scaling, so that one that
hardly communicates has a narrow interval; of large models how short a layer is beside the host's time for it; and of
steps on one GPU for the share of them in which the host launches kernels, because hosts differ more than GPUs.
Nothing is said of a prediction that is more difficult than each of the figures, or of more GPUs.

*Families*: figures of one source and machine have like errors, so that a new family is held less often than a new
figure. The quantiles are taken so far out that nine of ten figures are held while their family is left out, each family
in turn.

Where runs are missed to one side (`SKEWED`), each end has its quantile. Elsewhere the bias of one source says little of
the next one's, and the interval reaches as far below the prediction as above it.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from simperf.analysis.chance import COVERAGE
from simperf.analysis.questions import COLLECTIVES, KERNELS, LARGE, ONE_GPU, PLANS, SCALING
from simperf.csv_file import read_csv
from simperf.time_use import LAUNCH_THREAD_BUSY

__all__ = [
    "BASES",
    "COLUMNS",
    "DATA",
    "FILES",
    "SKEWED",
    "LeftOutError",
    "SpreadOfErrors",
    "difficulty_of",
    "error_file",
    "launch_difficulty",
    "read_errors",
    "spread",
    "spread_of_errors",
]

#: questions whose runs take longer than predicted far more often than they take less
SKEWED = (SCALING, COLLECTIVES, LARGE)
#: the outer quantiles that are tried, as the share between them [1]
_LEVELS = tuple(0.8 + 0.005 * step for step in range(40))
#: families, and figures, that are too few to say something of a new one
_FEWEST_FAMILIES, _FEWEST = 5, 20

#: least time that a host needs for a layer of a transformer, forward and backward [s]
_HOST = 1e-3

DATA = Path(__file__).parent / "data"
COLUMNS = ("group", "family", "source", "gpu", "gpus", "difficulty", "used", "error")
#: difficulty at which the spread is twice that of a run without any, by question [1]; the others have one spread
BASES = {ONE_GPU: 1.0, SCALING: 0.1, LARGE: 0.25}
#: what is said of a prediction that is more difficult than all published figures
_HARDER = "no published run of this kind is as hard to predict: its difficulty is {:.3g}, and theirs is at most {:.3g}"
#: the same by question, with what its difficulty is
_HARDER_BY_QUESTION = {
    ONE_GPU: "no published run of this kind is as hard to predict: "
    "the host launches kernels for a share of {:.3g}, and theirs is at most {:.3g}",
    **dict.fromkeys(
        (SCALING, PLANS),
        "no published run of this kind is as hard to predict: "
        "the logarithm of what is lost against linear scaling is {:.3g}, and theirs is at most {:.3g}",
    ),
    LARGE: "no published run of this kind is as hard to predict: "
    "the host's least time for a layer, over the layer's time, is {:.3g}, and theirs is at most {:.3g}",
}
#: name of each question's file
FILES = {
    ONE_GPU: "one_gpu",
    SCALING: "scaling",
    PLANS: "plans",
    COLLECTIVES: "collectives",
    KERNELS: "kernels",
    LARGE: "large",
}


@dataclass(frozen=True, slots=True)
class LeftOutError:
    """The error of one published figure.

    Parameters
    ----------
    group : str
        Which figures of its question are like it.
    family, source, gpu : str
        What it shares with others: its case, where it was published, and the GPU.
    difficulty : float
        Of the prediction (`difficulty_of`, `launch_difficulty`) [1]; 0 where it plays no part.
    error : float
        Logarithm of measured over predicted time [1].
    gpus : int
        That took part.
    used : float
        Share of what can be reached that is predicted, an efficiency or a utilisation [1]; 0 where there is none.
    """

    group: str
    family: str
    source: str
    gpu: str
    difficulty: float
    error: float
    gpus: int = 1
    used: float = 0.0


@dataclass(frozen=True, slots=True)
class SpreadOfErrors:
    """Outer quantiles of the errors of figures.

    Parameters
    ----------
    low, high : float
        Of the logarithm of measured over predicted time, at a scale of 1 [1].
    base : float
        The scale without difficulty [1]; infinite where difficulty plays no part.
    figures, families, sources : int
        That they were taken from.
    hardest : float
        Difficulty of the most difficult of the figures [1].
    most_gpus : int
        That took part in one of the figures.
    """

    low: float
    high: float
    base: float
    figures: int
    families: int
    sources: int
    hardest: float = math.inf
    most_gpus: int = sys.maxsize

    @property
    def origin(self) -> str:
        """Figures that it was taken from, in words.

        Examples
        --------
        >>> SpreadOfErrors(-0.1, 0.2, 0.1, 1040, 8, 3).origin
        'errors of 1,040 published figures of 8 families, each left out, from 3 sources'
        """
        where = f"{self.sources} sources" if self.sources > 1 else "one source alone"
        return f"errors of {self.figures:,} published figures of {self.families} families, each left out, from {where}"

    def beyond(self, difficulty: float = 0.0, *, gpus: int = 1, question: str = "") -> str:
        """Reason why the figures say nothing of a prediction, in words; empty if they do.

        Parameters
        ----------
        difficulty : float
            Of the prediction [1].
        gpus : int
            That take part.
        question : str
            That the figures are of; says what the difficulty is.

        Examples
        --------
        >>> SpreadOfErrors(-0.1, 0.2, 0.1, 40, 8, 3, hardest=0.7, most_gpus=512).beyond(0.5, gpus=1024)
        'published figures of runs like it are of at most 512 GPUs, and it has 1,024'
        """
        if gpus > self.most_gpus:
            return f"published figures of runs like it are of at most {self.most_gpus:,} GPUs, and it has {gpus:,}"
        if difficulty > self.hardest:
            return _HARDER_BY_QUESTION.get(question, _HARDER).format(difficulty, self.hardest)
        return ""

    def factors(self, difficulty: float = 0.0, *, used: float = 0.0) -> tuple[float, float]:
        """Factors on the predicted time that give both ends of the interval of the measured one [1].

        Parameters
        ----------
        difficulty : float
            Of the prediction [1].
        used : float
            Share of what can be reached that is predicted, such as an efficiency [1]: no time is shorter than this
            share of the predicted one. A share above 1 sets no bound but the prediction itself.

        Examples
        --------
        >>> SpreadOfErrors(-0.1, 0.2, 0.1, 40, 8, 3).factors(used=0.99)[0]
        0.99
        >>> spread = SpreadOfErrors(-0.1, 0.2, 0.1, 40, 8, 3)
        >>> [round(end, 3) for end in spread.factors()], [round(end, 3) for end in spread.factors(0.1)]
        ([0.905, 1.221], [0.819, 1.492])
        """
        scale = _scale(self.base, difficulty)
        low = max(math.exp(self.low * scale), min(used, 1.0))
        return low, max(low, math.exp(self.high * scale))


def _scale(base: float, difficulty: float) -> float:
    return 1.0 + max(0.0, difficulty) / base


def difficulty_of(question: str, metrics: Mapping[str, float]) -> float:
    """Difficulty of a prediction [1]; 0 where it plays no part.

    Of several GPUs what they lose against linear scaling, as a logarithm; of a step on one GPU for which part of it the
    host launches kernels.

    Parameters
    ----------
    question : str
    metrics : mapping of str to float
        Of its result.

    Examples
    --------
    >>> round(difficulty_of(SCALING, {"scaling efficiency": 0.5}), 3), difficulty_of(SCALING, {})
    (0.693, 0.0)
    """
    if question == ONE_GPU:
        return metrics.get(LAUNCH_THREAD_BUSY, 0.0)
    if question not in (SCALING, PLANS):
        return 0.0
    efficiency = metrics.get("scaling efficiency", 1.0)
    return max(0.0, -math.log(efficiency)) if efficiency > 0.0 else math.inf


def launch_difficulty(layer: float) -> float:
    """Difficulty of a large model's step: the least time that a host needs for a layer, over that of the layer [1].

    Parameters
    ----------
    layer : float
        Predicted time of a layer and micro-batch, forward and backward [s].

    Notes
    -----
    The least time is 1 ms: about 70 launches a pass by a process of Python (`simperf/hardware/data/frontend`).

    Examples
    --------
    >>> launch_difficulty(0.01)
    0.1
    """
    return _HOST / layer


def error_file(question: str) -> Path:
    """The file of a question's errors."""
    return DATA / f"{FILES[question]}.csv"


@lru_cache(maxsize=16)
def read_errors(question: str) -> tuple[LeftOutError, ...]:
    """Errors of a question's published figures; none where there is no file."""
    path = error_file(question)
    if not path.exists():
        return ()
    return tuple(
        LeftOutError(
            *(row["group"], row["family"], row["source"], row["gpu"]),
            *(float(row["difficulty"]), float(row["error"]), int(row["gpus"]), float(row["used"])),
        )
        for _, row in read_csv(path).records()
    )


@lru_cache(maxsize=64)
def spread_of_errors(
    question: str, group: str = "", *, without: str = "", without_gpus: frozenset[str] = frozenset()
) -> SpreadOfErrors | None:
    """The spread of the errors of a question's figures; None where they are too few.

    Parameters
    ----------
    question : str
        One of `simperf.analysis.questions`.
    group : str
        Figures of one group alone.
    without : str
        A published case of which nothing is taken, such as the one that is predicted: the families of this name, and
        those whose names begin with it (``"roof-elementwise-l4"`` of ``"roof-elementwise-l4 l4"``).
    without_gpus : frozenset of str
        GPUs of which nothing is taken: those of a prediction that may be a published case itself.
    """
    own = [one for one in read_errors(question) if one.group == group and one.gpu not in without_gpus]
    return spread(question, [one for one in own if not (without and f"{one.family} ".startswith(f"{without} "))])


def spread(question: str, errors: Collection[LeftOutError]) -> SpreadOfErrors | None:
    """The spread of errors, with quantiles so far out that nine of ten are held while their family is left out.

    Parameters
    ----------
    question : str
    errors : collection of LeftOutError

    Returns
    -------
    SpreadOfErrors or None
        None of fewer than 20 figures or 5 families, or where families are so unlike that no quantiles hold nine of ten.
    """
    base = BASES.get(question, math.inf)
    families: dict[str, list[float]] = {}
    for one in errors:
        value = one.error / _scale(base, one.difficulty)
        families.setdefault(one.family, []).append(value if question in SKEWED else abs(value))
    if len(errors) < _FEWEST or len(families) < _FEWEST_FAMILIES:
        return None
    ends = _outer if question in SKEWED else _equal
    every = sorted(value for known in families.values() for value in known)
    level = _level(ends, every, families.values())
    if level is None:
        return None
    low, high = ends(every, level)
    sources = len({one.source for one in errors})
    hardest, most = max(one.difficulty for one in errors), max(one.gpus for one in errors)
    return SpreadOfErrors(low, high, base, len(errors), len(families), sources, hardest, most)


_Ends = Callable[[Sequence[float], float], tuple[float, float]]


def _level(ends: _Ends, every: Sequence[float], families: Iterable[Sequence[float]]) -> float | None:
    """The least of `_LEVELS` at which nine of ten figures are held while their family is left out; None if at none."""
    held = [0] * len(_LEVELS)
    for own in map(sorted, families):
        others = list(every)
        for value in own:
            del others[bisect_left(others, value)]
        for place, level in enumerate(_LEVELS):
            low, high = ends(others, level)
            held[place] += bisect_right(own, high) - bisect_left(own, low)
    enough = COVERAGE * len(every)
    return next((level for level, count in zip(_LEVELS, held, strict=True) if count >= enough), None)


def _outer(ordered: Sequence[float], level: float) -> tuple[float, float]:
    """Quantiles that hold `level` of one more value of the same distribution [1], by its rank among all."""
    tail, count = (1.0 - level) / 2, len(ordered)
    low = math.floor(tail * (count + 1)) - 1
    high = math.ceil((1.0 - tail) * (count + 1)) - 1
    return ordered[max(0, low)], ordered[min(count - 1, high)]


def _equal(sizes: Sequence[float], level: float) -> tuple[float, float]:
    """The same of absolute values in their order, as far below 0 as above it."""
    half = sizes[min(len(sizes) - 1, math.ceil(level * (len(sizes) + 1)) - 1)]
    return -half, half
