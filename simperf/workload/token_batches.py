"""Mini-batches of sentences under a limit of tokens: how uneven their work is.

Programs for translation put sentences of like length together until a batch has as many tokens as it may have, shortest
first, and shuffle the batches. A batch is padded to its longest sentence, and has whole sentences, often a multiple of
eight of them. So batches of one size in tokens take different times, and ranks that work on different batches wait for
the longest of them. `batch_spread` simulates such a sampler; what it gives is the `cv` of a job's `jitter`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simperf.errors import InputError, Problem

__all__ = ["Sentences", "batch_spread", "token_batches"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Pairs of sentences in two languages.

    Lengths of sentences are nearly log-normal (C. B. Williams, "A note on the statistical analysis of sentence-length",
    Biometrika 31, 1940), and so is the ratio of both. The numbers stand for WMT 2014, English to German: 4.5 million
    pairs of 26 words (116 million in all; M. Luong, H. Pham, C. Manning, EMNLP 2015), a fifth more in subwords. Both
    spreads are assumed.

    Parameters
    ----------
    median : float
        Tokens of the first language [1].
    spread : float
        Standard deviation of the logarithm of its length [1].
    ratio_spread : float
        The same of the second language's length over the first's [1].
    longest : int
        What is longer is cut [1].
    pairs : int
        Of the corpus [1]; with more of them, batches have sentences that are more alike.
    """

    median: float = 26.0
    spread: float = 0.55
    ratio_spread: float = 0.22
    longest: int = 250
    pairs: int = 4_500_000

    def __post_init__(self) -> None:
        given = (("median", self.median), ("longest", self.longest), ("pairs", self.pairs))
        problems = [
            Problem("sentences cannot be drawn", key=key, value=f"{value:g}", expected="1 or more")
            for key, value in given
            if not value >= 1
        ]
        spreads = (("spread", self.spread), ("ratio_spread", self.ratio_spread))
        problems += [
            Problem("sentences cannot be drawn", key=key, value=f"{value:g}", expected="0 or more")
            for key, value in spreads
            if not value >= 0
        ]
        if problems:
            raise InputError(problems)

    def draw(self, seed: int = 0) -> tuple[IntArray, IntArray]:
        """Lengths in both languages, with an end mark each, shape (pairs,) and (pairs,) [1]."""
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        first = self.median * np.exp(rng.normal(0.0, self.spread, self.pairs))
        second = first * np.exp(rng.normal(0.0, self.ratio_spread, self.pairs))
        return self._whole(first), self._whole(second)

    def _whole(self, lengths: NDArray[np.float64]) -> IntArray:
        return np.clip(np.rint(lengths), 1, self.longest).astype(np.int64) + 1


def token_batches(first: IntArray, second: IntArray, tokens: int, *, multiple: int = 8) -> Iterator[tuple[int, int]]:
    """Batches of pairs in order, as fairseq and NVIDIA's Transformer make them: begin and end of each.

    A batch is closed by the pair with which its size times its longest sentence exceeds the limit. It keeps a multiple
    of `multiple` pairs, if it has so many; the others begin the next one, which is closed at once if they and the pair
    exceed the limit too. No batch exceeds it.

    Parameters
    ----------
    first, second : ndarray
        Lengths in both languages, shape (pairs,) [1].
    tokens : int
        Limit of a batch in either language, padding included [1].
    multiple : int
        Of pairs in a batch [1].

    Raises
    ------
    InputError
        Lengths of unlike shape or below 1, a limit below the longest sentence, or a multiple below 1.

    Examples
    --------
    >>> lengths = np.array([2, 2, 2, 3, 3])
    >>> list(token_batches(lengths, lengths, 6, multiple=1))
    [(0, 3), (3, 5)]
    """
    _refuse(first, second, tokens, multiple)
    longer = np.maximum(first, second)
    begin = 0
    longest = 0
    for pair, length in enumerate(longer.tolist()):
        longest = max(longest, length)
        while (size := pair - begin) and (size + 1) * longest > tokens:
            kept = max(size // multiple * multiple, size % multiple)
            yield begin, begin + kept
            begin += kept
            longest = int(longer[begin : pair + 1].max())
    if begin < len(longer):
        yield begin, len(longer)


def _refuse(first: IntArray, second: IntArray, tokens: int, multiple: int) -> None:
    """Refuse what no batches can be made of.

    Raises
    ------
    InputError
        All that is wrong.
    """
    if first.shape != second.shape or first.ndim != 1 or (len(first) and min(first.min(), second.min()) < 1):
        shapes = f"shapes {first.shape} and {second.shape}"
        expected = "a length of 1 or more in each language for each pair"
        raise InputError(Problem("batches cannot be made", key="lengths", value=shapes, expected=expected))
    least = int(max(first.max(), second.max())) if len(first) else 1
    problems = [
        Problem("batches cannot be made", key=key, value=str(value), expected=f"{lowest} or more")
        for key, value, lowest in (("tokens", tokens, least), ("multiple", multiple, 1))
        if value < lowest
    ]
    if problems:
        raise InputError(problems)


def batch_spread(
    sentences: Sentences, tokens: int, *, multiple: int = 8, weights: tuple[float, float] = (1.0, 1.0), seed: int = 0
) -> float:
    """Standard deviation of the work of batches over its mean [1].

    Parameters
    ----------
    sentences : Sentences
    tokens : int
        Limit of a batch in either language, padding included [1].
    multiple : int
        Of pairs in a batch [1].
    weights : tuple of float
        Work of a padded token of each language [any unit], such as the parameters that it meets.
    seed : int
        Of the draws.

    Raises
    ------
    InputError
        A limit below the longest sentence, or a multiple below 1.

    Examples
    --------
    >>> few = Sentences(pairs=20_000)
    >>> 0.05 < batch_spread(few, 10_240) < batch_spread(few, 2_560) < 0.2
    True
    """
    first, second = sentences.draw(seed)
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    work = [
        (end - begin) * (weights[0] * first[begin:end].max() + weights[1] * second[begin:end].max())
        for begin, end in token_batches(first, second, tokens, multiple=multiple)
    ]
    return float(np.std(work) / np.mean(work))
