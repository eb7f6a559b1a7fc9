"""Smaller gradients: what goes over the wire, and what it costs to make and to read it.

Encoding and decoding are kernels bound by memory: their cost is the bytes that they move
through the memory of the device that does them, each pass over the gradient counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem
from simperf.registry import Registry

__all__ = ["CODECS", "DENSE", "Codec", "codec"]

_ELEMENT = 4.0  # gradients are fp32


@dataclass(frozen=True, slots=True)
class Codec:
    """A way of writing a gradient.

    Parameters
    ----------
    name : str
    ratio : float
        Share of the elements that is sent.
    value, index, scale : float
        On the wire, each sent element's value and position, and what goes with every element whatever
        is sent (scales of blocks, spread over their elements) [B].
    encode, decode : float
        Through memory to encode or decode one element of the gradient, the wire's own bytes apart [B].
    scatter : float
        Through memory to add one sent element to its place [B].
    sparse : bool
        Sums of encoded gradients have more elements than each, at most the dense ones.
    smallest : float
        What is smaller goes as it is [B].

    Examples
    --------
    >>> codec("top-k", ratio=0.01).wire(4e6), codec("8-bit").wire(4e6) < 1.02e6
    (80000.0, True)
    """

    name: str
    ratio: float = 1.0
    value: float = _ELEMENT
    index: float = 0.0
    scale: float = 0.0
    encode: float = 0.0
    decode: float = 0.0
    scatter: float = 0.0
    sparse: bool = False
    smallest: float = 0.0

    def wire(self, nbytes: float) -> float:
        """Bytes that a dense gradient of `nbytes` becomes [B]."""
        if nbytes < self.smallest:
            return nbytes
        return nbytes / _ELEMENT * (self.ratio * (self.value + self.index) + self.scale)

    def back(self, nbytes: float, workers: int) -> float:
        """Bytes of the answer to a worker: the sum of `workers` encoded gradients, encoded again [B].

        Sparse sums are taken to share no element, until the dense form is shorter.
        """
        return min(nbytes, workers * self.wire(nbytes)) if self.sparse else self.wire(nbytes)

    def encoding(self, nbytes: float) -> float:
        """Bytes through memory to encode [B]; nothing for a dense gradient."""
        if not self.encode or nbytes < self.smallest:
            return 0.0
        return nbytes / _ELEMENT * self.encode + self.wire(nbytes)

    def decoding(self, nbytes: float) -> float:
        """Bytes through memory to decode [B]; nothing for a dense gradient."""
        if not (self.decode or self.scatter) or nbytes < self.smallest:
            return 0.0
        return nbytes / _ELEMENT * (self.decode + self.ratio * self.scatter) + self.wire(nbytes)

    def free(self) -> Codec:
        """The same bytes on the wire, encoded and decoded in no time."""
        return replace(self, encode=0.0, decode=0.0, scatter=0.0)


#: gradients as they are
DENSE = Codec("none")

#: codecs by name: a function of the ratio
CODECS: Registry[Callable[[float], Codec]] = Registry("compression", package="", group="simperf.compression")


@CODECS.register("none")
def _none(ratio: float) -> Codec:
    return DENSE


@CODECS.register("top-k")
def _top_k(ratio: float) -> Codec:
    """Values and 32-bit indices of the largest elements; what is not sent is kept for the next step.

    Aji and Heafield, EMNLP 2017; Lin et al., "Deep Gradient Compression", ICLR 2018. Encoding adds the kept
    error (reads two, writes one), then finds the threshold and packs (two more passes).
    """
    return Codec("top-k", ratio, index=4.0, encode=5 * _ELEMENT, scatter=2 * _ELEMENT, sparse=True)


@CODECS.register("random-k")
def _random_k(ratio: float) -> Codec:
    """Values and 32-bit indices of elements drawn at random; what is not sent is kept for the next step.

    Stich, Cordonnier and Jaggi, "Sparsified SGD with memory", NeurIPS 2018. Encoding adds the kept error (reads two,
    writes one) and keeps what is not sent (reads one, writes one); nothing is searched.
    """
    return Codec("random-k", ratio, index=4.0, encode=5 * _ELEMENT, scatter=2 * _ELEMENT, sparse=True)


@CODECS.register("8-bit")
def _eight_bit(ratio: float) -> Codec:
    """Bytes with one fp32 scale for 256 elements (Dettmers, ICLR 2016; Alistarh et al., QSGD, NIPS 2017).

    Encoding reads for the maximum and again to quantise; decoding writes the dense gradient.
    """
    return Codec("8-bit", value=1.0, scale=4.0 / 256, encode=2 * _ELEMENT, decode=_ELEMENT)


@CODECS.register("1-bit")
def _one_bit(ratio: float) -> Codec:
    """Signs with two fp32 levels for 1,024 elements and error feedback (Seide et al., Interspeech 2014).

    Encoding adds the kept error (reads two, writes one), reads for the levels, and again to write signs and error.
    """
    return Codec("1-bit", value=0.125, scale=8.0 / 1024, encode=6 * _ELEMENT, decode=_ELEMENT)


def codec(name: str, *, ratio: float = 0.01, smallest: float = 0.0) -> Codec:
    """The codec `name`.

    Parameters
    ----------
    name : str
        A key of `CODECS`.
    ratio : float
        Share of the elements that top-k and random-k send.
    smallest : float
        Gradients below this go as they are [B].

    Raises
    ------
    UnknownNameError
        There is no such codec.
    InputError
        A ratio that is no share, or a size below 0.
    """
    if not 0.0 < ratio <= 1.0:
        raise InputError(Problem("a share above 0 and at most 1 is expected", key="ratio", value=str(ratio)))
    if not smallest >= 0.0:
        raise InputError(Problem("a size of 0 or more is expected", key="dense_below", value=f"{smallest:g}"))
    return replace(CODECS[name](ratio), smallest=smallest)
