"""A collective as a plan without a clock: who sends which chunk to whom, after what.

A `Plan` is a pure function of the ranks. It is lazy: a `Phase` makes its rounds as numpy
arrays when they are asked for, because a ring over 16,384 ranks has 5.4e8 sends. What may
start when follows from the phase's style:

steps
    Every participant goes through the rounds in order and blocks: its sends of a round
    start when all its sends and receives of earlier rounds are complete (the send-receive
    loop that textbooks and MPI libraries write).
pipeline
    A send starts when its chunks have arrived at its source in earlier rounds. Sends from
    one participant to another keep their order and follow each other without a gap: the
    latency of the next one passes while the one before it is still on the wire.

A participant enters a phase when all its sends and receives of the phase before it are
complete. Channels are independent of each other and carry a share of the payload each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from simperf.errors import InputError, Problem, UnknownNameError

__all__ = [
    "COLLECTIVES",
    "Channel",
    "IntArray",
    "Phase",
    "Plan",
    "Round",
    "bus_factor",
    "busiest",
    "chunk_sizes",
    "chunks_in",
]

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Style = Literal["steps", "pipeline"]

#: every collective by its usual name
COLLECTIVES = (
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all-to-all",
    "send-recv",
)


@dataclass(frozen=True, slots=True)
class Round:
    """Sends of one logical step, as arrays of one length.

    Parameters
    ----------
    src, dst : numpy.ndarray of int64
        Participants; ranks come first, then servers.
    chunk : numpy.ndarray of int64
        First chunk that a send carries.
    span : int or numpy.ndarray
        Number of consecutive chunks that a send carries; chunk 0 follows the last one.
    reduce : bool or numpy.ndarray
        Whether the receiver adds what arrives to what it has, or takes it instead.
    """

    src: IntArray
    dst: IntArray
    chunk: IntArray
    span: int | IntArray = 1
    reduce: bool | BoolArray = False

    def __len__(self) -> int:
        return len(self.src)

    def rows(self) -> Iterator[tuple[int, int, int, int, bool]]:
        """The sends one by one as ``(src, dst, chunk, span, reduce)``."""
        count = len(self.src)
        spans = np.broadcast_to(np.asarray(self.span), count).tolist()
        reduces = np.broadcast_to(np.asarray(self.reduce), count).tolist()
        return zip(self.src.tolist(), self.dst.tolist(), self.chunk.tolist(), spans, reduces, strict=True)


@dataclass(frozen=True, slots=True)
class Phase:
    """A run of rounds.

    Parameters
    ----------
    nrounds : int
        Number of rounds.
    make : callable
        Makes the round of a number from 0 to ``nrounds - 1``.
    style : str
        ``"steps"`` or ``"pipeline"``, see the module.
    repeats : bool
        All rounds have the same sources, destinations and spans, in the same order; only
        the chunks move on. A ring does; executors jump over what repeats.
    turning : callable, optional
        Makes the sends of rank 0 in the round of a number, if every rank r sends to r + k
        (modulo the number of ranks) what rank 0 sends to k.
    sends : callable, optional
        Number of sends in the round of a number, where it is known without making the round.
    """

    nrounds: int
    make: Callable[[int], Round]
    style: Style = "steps"
    repeats: bool = False
    turning: Callable[[int], Round] | None = None
    sends: Callable[[int], int] | None = None

    def count(self, index: int, nranks: int) -> int:
        """Sends in the round of a number among `nranks` ranks; counted without making them where that can be."""
        if self.sends is not None:
            return self.sends(index)
        return len(self.make(index)) if self.turning is None else nranks * len(self.turning(index))

    def __iter__(self) -> Iterator[Round]:
        return (self.make(index) for index in range(self.nrounds))

    def over(self, groups: IntArray, *, base: IntArray, scale: int) -> Phase:
        """The same phase in many groups of participants at once.

        Parameters
        ----------
        groups : numpy.ndarray of int64, shape (ngroups, nmembers)
            Participant that stands for member j of each group.
        base : numpy.ndarray of int64, shape (ngroups,)
            First chunk of what the group works on.
        scale : int
            Chunks of the whole plan in one chunk of this phase.
        """
        inner = self.make

        def make(index: int) -> Round:
            one = inner(index)
            count = len(groups)
            return Round(
                groups[:, one.src].ravel(),
                groups[:, one.dst].ravel(),
                (base[:, None] + one.chunk[None, :] * scale).ravel(),
                np.tile(one.span, count) * scale if isinstance(one.span, np.ndarray) else one.span * scale,
                np.tile(one.reduce, count) if isinstance(one.reduce, np.ndarray) else one.reduce,
            )

        return Phase(self.nrounds, make, self.style, self.repeats)


@dataclass(frozen=True, slots=True)
class Channel:
    """A part of a plan that runs beside the others, on its own share of the payload.

    Parameters
    ----------
    phases : tuple of Phase
        In order.
    nchunks : int
        Chunks that the channel's share is cut into, all of one size.
    share : float
        Fraction of the payload, 0 to 1.
    """

    phases: tuple[Phase, ...]
    nchunks: int
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The sends of an algorithm, and the cost that it claims.

    Parameters
    ----------
    collective : str
        One of `COLLECTIVES`.
    algorithm : str
        Name under which the plan's maker is registered.
    nranks : int
        Ranks that take part.
    channels : tuple of Channel
        Independent of each other; their shares add up to 1.
    steps : int
        Sends that follow one another on the longest path, as the algorithm claims.
    sent : float
        Payloads that the busiest participant sends, as the algorithm claims.
    nservers : int
        Participants beside the ranks, numbered from `nranks` on (CPU, parameter server).
    root : int
        Rank from which or onto which a rooted collective goes.
    copies : int
        Payloads in the chunks of all channels together: 1, but `nranks` for all-to-all.
    """

    collective: str
    algorithm: str
    nranks: int
    channels: tuple[Channel, ...]
    steps: int
    sent: float
    nservers: int = 0
    root: int = 0
    copies: int = 1

    def __post_init__(self) -> None:
        if self.collective not in COLLECTIVES:
            raise InputError(Problem(f"no such collective: {self.collective}", expected=", ".join(COLLECTIVES)))

    @property
    def nparticipants(self) -> int:
        """Ranks and servers together."""
        return self.nranks + self.nservers

    @property
    def nsends(self) -> int:
        """Sends in the whole plan; counted, so not for a plan of many rounds that do not repeat."""
        total = 0
        for channel in self.channels:
            for phase in channel.phases:
                if phase.repeats and phase.nrounds:
                    total += phase.nrounds * phase.count(0, self.nranks)
                else:
                    total += sum(phase.count(index, self.nranks) for index in range(phase.nrounds))
        return total


def busiest(channels: tuple[Channel, ...], nparticipants: int) -> float:
    """Payloads that the busiest participant sends, counted send by send.

    For shapes whose closed form is no shorter than the count.
    """
    total = np.zeros(nparticipants)
    for channel in channels:
        for phase in channel.phases:
            rounds = list(phase)
            spans = [np.broadcast_to(np.asarray(one.span, dtype=np.float64), len(one)) for one in rounds]
            src = np.concatenate([np.zeros(0, dtype=np.int64), *(one.src for one in rounds)])
            sent = np.bincount(src, np.concatenate([np.zeros(0), *spans]), minlength=nparticipants)
            total += sent * (channel.share / channel.nchunks)
    return float(total.max())


def chunks_in(chunk: int, span: int, nchunks: int) -> list[int]:
    """The chunks of a run.

    Examples
    --------
    >>> chunks_in(4, 3, 6)
    [4, 5, 0]
    """
    return [part % nchunks for part in range(chunk, chunk + span)]


def chunk_sizes(
    chunk: IntArray, span: int | IntArray, nchunks: int, *, nbytes: float, unit: float = 0.0
) -> npt.NDArray[np.float64]:
    """Bytes in runs of chunks.

    Parameters
    ----------
    chunk : numpy.ndarray of int64
        First chunk of each run.
    span : int or numpy.ndarray
        Chunks in each run; a run that passes the last chunk continues with chunk 0.
    nchunks : int
        Chunks of the payload.
    nbytes : float
        Payload [B].
    unit : float
        Size that is never split [B]: chunks then differ by at most one unit, and what is
        left over of the payload goes with the last chunk. 0 cuts the payload evenly,
        into fractions of a byte if need be.

    Returns
    -------
    numpy.ndarray of float64
        Sizes [B].

    Examples
    --------
    >>> chunk_sizes(np.arange(4), 1, 4, nbytes=10.0).tolist()
    [2.5, 2.5, 2.5, 2.5]
    >>> chunk_sizes(np.arange(4), 1, 4, nbytes=10.0, unit=1.0).tolist()
    [2.0, 3.0, 2.0, 3.0]
    >>> chunk_sizes(np.array([3]), 2, 4, nbytes=10.0, unit=1.0).tolist()
    [5.0]
    """
    if unit <= 0.0:
        even: npt.NDArray[np.float64] = np.broadcast_to(np.asarray(span) * (nbytes / nchunks), chunk.shape)
        return even
    units, rest = divmod(nbytes, unit)
    after = chunk + span
    whole = (after * int(units)) // nchunks - (chunk * int(units)) // nchunks
    return np.asarray(whole * unit + np.where(after >= nchunks, rest, 0.0), dtype=np.float64)


def bus_factor(collective: str, nranks: int) -> float:
    """Ratio busbw / algbw [1] of a collective over `nranks` ranks, as nccl-tests defines it (doc/PERFORMANCE.md there).

    algbw is S / t. The factor corrects it by what each rank must move at least, so that busbw compares with the rate of
    a link whatever the number of ranks. S is the full vector: of all-gather and reduce-scatter the parts of all ranks.

    Raises
    ------
    UnknownNameError
        No such collective.
    InputError
        Less than one rank.

    Examples
    --------
    >>> bus_factor("all-reduce", 8), bus_factor("all-gather", 4), bus_factor("broadcast", 4)
    (1.75, 0.75, 1.0)
    """
    if collective not in COLLECTIVES:
        raise UnknownNameError("collective", collective, COLLECTIVES)
    if nranks < 1:
        raise InputError(Problem("at least one rank is needed", key="nranks", value=str(nranks)))
    part = (nranks - 1) / nranks
    if collective == "all-reduce":
        return 2 * part
    if collective in ("reduce-scatter", "all-gather", "all-to-all", "gather", "scatter"):
        return part
    return 1.0
