"""Memory of a pipeline stage over its passes: what is held when, of what, and the most at a time.

The order of passes is the schedule's plan. A forward pass adds what its layers keep, layer by layer; the backward pass
gives it back from the last layer to the first. Where a schedule has the gradients of weights apart, the backward pass
leaves what they read, inputs of products and gradients of outputs, which that pass gives back (Qi et al., "Zero
Bubble", ICLR 2024, table 1). What lives inside of a layer's pass comes on top while that layer runs.

What an allocator takes of the device is distinguished from what tensors hold: the layer whose pass holds most is not
always that for which most is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeAlias

from simperf.memory.lifetimes import TakenBytes
from simperf.memory.tensors import KINDS, TensorKind

__all__ = ["ChunkMemory", "LayerMemory", "Moment", "StageMemory", "stage_memory"]

BytesByKind = dict[TensorKind, float]
Beside: TypeAlias = tuple[tuple[TensorKind, float], ...]


class LayerMemory(NamedTuple):
    """A layer of a chunk for one micro-batch.

    Parameters
    ----------
    name : str
    kept : float
        From its forward pass to the end of its backward pass [B].
    forward, backward : float
        Most that lives inside of these passes only, at a time [B]; backward with the gradient that comes in.
    left : float or None
        Where a schedule has the gradients of weights apart, what its backward pass leaves for them; all that is kept by
        default [B].
    inputs, weights : float
        Most that lives inside of these two passes only, at a time: of the gradients of inputs beside `kept`, and of the
        gradients of weights beside `left` [B].
    forward_beside, backward_beside : tuple of (str, float)
        By kind, what is held beside all of this while these passes run [B].
    gradient : float
        Of its weights: it is there from its first backward pass of a step on [B].
    taken : TakenBytes
        What an allocator takes for all of its own tensors up to the end of each pass, of a pool that is empty before;
        where that is less than they hold, as where it is not known, as much as they hold [B].
    """

    name: str
    kept: float
    forward: float = 0.0
    backward: float = 0.0
    left: float | None = None
    inputs: float = 0.0
    weights: float = 0.0
    forward_beside: Beside = ()
    backward_beside: Beside = ()
    gradient: float = 0.0
    taken: TakenBytes = TakenBytes()

    @property
    def stays(self) -> float:
        """Bytes that stay between the two passes of a split backward pass [B]."""
        return self.kept if self.left is None else self.left


@dataclass(frozen=True, slots=True)
class ChunkMemory:
    """The layers of one chunk on a stage, and its messages.

    Parameters
    ----------
    layers : sequence of LayerMemory
        In the order of the forward pass.
    sends : float
        What its forward pass sends to the next chunk, and its backward pass receives from there [B]; 0 for the last.
    returns : float
        What its backward pass sends to the chunk before it [B]; 0 for the first.
    """

    layers: Sequence[LayerMemory]
    sends: float = 0.0
    returns: float = 0.0

    @property
    def kept(self) -> float:
        """Bytes that a micro-batch keeps of the whole chunk [B]."""
        return sum(one.kept for one in self.layers)

    @property
    def stays(self) -> float:
        """Bytes that a micro-batch has on it between the two passes of a split backward pass [B]."""
        return sum(one.stays for one in self.layers)

    @property
    def gradient(self) -> float:
        """Of all its layers' weights, as far as it comes and goes in a step [B]."""
        return sum(one.gradient for one in self.layers)


class Moment(NamedTuple):
    """The moment of a pass at which a stage holds most.

    Parameters
    ----------
    name : str
        The pass, such as ``"F0"`` or ``"B3.1"``, or ``"update"``.
    layer : str
        The layer that runs; empty where none does.
    held : mapping of str to float
        By kind, one of `simperf.memory.KINDS` [B].
    after : float
        What is held when the pass is over [B].
    reserved : float
        Most that an allocator has taken in the pass, of any layer: what is held then, but for kinds that have a pool of
        their own, and what stays free between the tensors of the layer that runs [B].
    """

    name: str
    layer: str
    held: Mapping[TensorKind, float]
    after: float
    reserved: float = 0.0

    @property
    def total(self) -> float:
        """All kinds together [B]."""
        return sum(self.held.values())

    @property
    def when(self) -> str:
        """The pass and the layer in words, such as ``"in pass F0 in the block"``."""
        inside = f" in the {self.layer}" if self.layer else ""
        return "at the update" if self.name == "update" else f"in pass {self.name}{inside}"


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Memory of one stage over a step.

    Parameters
    ----------
    moments : tuple of Moment
        Of every pass, in order, and of the update.
    apart : tuple of (str, float)
        Kinds whose tensors are allocated on a stream of their own, or find no block that is large enough, and what is
        taken for each [B].
    resident : dict of str to float
        What is held for the whole step, by kind [B].
    """

    moments: tuple[Moment, ...]
    apart: Beside = ()
    resident: BytesByKind = field(default_factory=dict)

    @property
    def peak(self) -> Moment:
        """The first moment at which most is held."""
        totals = {id(one.held): one.total for one in {id(one.held): one for one in self.moments}.values()}
        return max(self.moments, key=lambda one: totals[id(one.held)])

    @property
    def reserved(self) -> float:
        """Bytes that an allocator has taken from the device: a pool for each stream, which never shrinks [B].

        What stays free between the tensors of a layer counts where its `LayerMemory.taken` is given, and tensors that
        have a pool of their own (`apart`) count there with their peak. Not modelled: what stays free between tensors of
        several layers.
        """
        return max(one.reserved for one in self.moments) + sum(size for _, size in self.apart)

    @property
    def kinds(self) -> tuple[TensorKind, ...]:
        """Kinds that are held at any moment, in the order of `simperf.memory.KINDS`."""
        found = {kind for one in self.moments for kind in one.held}
        return tuple(kind for kind in KINDS if kind in found)


class _Top(NamedTuple):
    """A layer while its pass runs, and what is there then.

    Of what is kept, of what is temporary, of gradients that other layers have made in this pass, and beside; and what
    an allocator has for its own tensors beyond them, which is free [B].
    """

    layer: str
    kept: float
    temporary: float
    gradients: float = 0.0
    beside: Beside = ()
    free: float = 0.0

    @property
    def total(self) -> float:
        """All together that is held [B]."""
        return self.kept + self.temporary + self.gradients + sum(size for _, size in self.beside)

    def reserved(self, apart: Collection[TensorKind]) -> float:
        """Memory that an allocator has taken for it, but for kinds that have a pool of their own [B]."""
        beside = sum(size for kind, size in self.beside if kind not in apart)
        return self.kept + self.temporary + (0.0 if "gradients" in apart else self.gradients) + beside + self.free


class _Peak(NamedTuple):
    """The layer of a pass with which most is held, and the most that an allocator has taken with any [B]."""

    top: _Top
    reserved: float


def stage_memory(
    passes: Iterable[tuple[str, int, int]],
    chunks: Sequence[ChunkMemory],
    resident: Mapping[TensorKind, float],
    *,
    update: float = 0.0,
    reduced: float = 0.0,
    joined: tuple[float, float] = (0.0, 0.0),
    apart: tuple[TensorKind, ...] = (),
) -> StageMemory:
    """Memory of a stage while each of its passes runs.

    A gradient that was sent to the stage before stays until the next backward pass is over, as in Megatron-LM, whose
    loop keeps a reference to it (megatron/core/pipeline_parallel/schedules.py).

    Parameters
    ----------
    passes : iterable of (str, int, int)
        Kind, micro-batch and chunk in the stage's order, as `simperf.schedules.Schedule.stages` has them; of kind
        ``"BW"`` a backward pass with its gradients of weights, where others are split.
    chunks : sequence of ChunkMemory
        By number.
    resident : mapping of str to float
        What is held for the whole step, by kind [B].
    update : float
        Temporaries of the optimizer [B].
    reduced : float
        Of `resident` gradients, what is given back before the update, where a rank has its part of them alone [B].
    joined : tuple of float
        Most at a time of tensors that the optimizer makes of all gradients together; and the size of all such tensors
        where each is larger than any block that is free, and gets memory of its own, else 0 [B].
    apart : tuple of str
        Kinds whose tensors are allocated on a stream of their own.

    Examples
    --------
    Two micro-batches in flight, then one after the other comes back:

    >>> layers = [LayerMemory("block", 10.0, 1.0, 4.0)] * 2
    >>> order = [("F", 0, 0), ("F", 1, 0), ("B", 0, 0), ("B", 1, 0)]
    >>> found = stage_memory(order, [ChunkMemory(layers)], {"weights": 100.0})
    >>> [(one.name, one.total, one.after) for one in found.moments]
    [('F0', 121.0, 120.0), ('F1', 141.0, 140.0), ('B0', 144.0, 120.0), ('B1', 124.0, 100.0), ('update', 100.0, 100.0)]
    """
    order = [(kind, microbatch, chunk) for kind, microbatch, chunk in passes]
    split = any(kind == "W" for kind, _, _ in order)
    peaks = _peaks_of_chunks(chunks, apart, kinds={"F", "BW"} | ({"B", "W"} if split else set()))
    known: dict[tuple[object, ...], BytesByKind] = {}  # passes of a steady schedule hold the same, again and again
    base, kept, sent, made = dict(resident), 0.0, 0.0, set[int]()
    fixed = sum(base.values())
    usual = sum(size for kind, size in base.items() if kind not in apart)
    moments, earlier = [], 0.0  # gradients of the chunks in `made`
    keeps, stays, of_chunks = zip(*((one.kept, one.stays, one.gradient) for one in chunks), strict=True)
    for told, microbatch, number in order:
        kind = "BW" if told == "B" and not split else told
        chunk, (top, reserved) = chunks[number], peaks[number][number not in made][kind]
        before = kept - {"F": 0.0, "W": stays[number]}.get(kind, keeps[number])  # without what its own chunk keeps
        messages = sent + (chunk.sends if kind in ("B", "BW") else 0.0)
        gradients = top.gradients + earlier
        reserved += usual + before + messages + (0.0 if "gradients" in apart else earlier)
        state = (number, kind, number in made, before, messages, gradients)
        if state not in known:
            known[state] = _held(
                base,
                (
                    ("activations", before + top.kept),
                    ("temporaries", top.temporary),
                    ("messages", messages),
                    ("gradients", gradients),
                    *top.beside,
                ),
            )
        held = known[state]
        kept = before + {"F": keeps[number], "B": stays[number]}.get(kind, 0.0)
        if kind in ("W", "BW") and number not in made:
            made.add(number)
            earlier = sum(of_chunks[one] for one in made)
        if kind in ("B", "BW"):
            sent = chunk.returns
        name = f"{kind[0]}{microbatch}" + (f".{number}" if number else "")
        after = fixed + kept + sent + earlier
        moments.append(Moment(name, top.layer, held, after, reserved))
    gradients = sum(of_chunks)
    at_end: Beside = (
        ("activations", kept),
        ("temporaries", update),
        ("gradients", gradients),
        ("joined gradients", joined[0]),
    )
    parts: BytesByKind = {**base, **({"gradients": base["gradients"] - reduced} if reduced else {})}
    own: Beside = tuple((kind, _most_of(kind, chunks, base)) for kind in apart)
    if joined[1]:
        own = (*own, ("joined gradients", joined[1]))
    held = _held(parts, at_end)
    reserved = sum(size for kind, size in held.items() if kind not in dict(own))
    moments.append(Moment("update", "", held, fixed + gradients, reserved))
    return StageMemory(tuple(moments), own, base)


def _most_of(kind: TensorKind, chunks: Sequence[ChunkMemory], resident: BytesByKind) -> float:
    """Most of a kind that is held at any time, of what does not depend on the order of passes [B]."""
    beside = (
        sum(size for name, size in each if name == kind)
        for chunk in chunks
        for one in chunk.layers
        for each in (one.forward_beside, one.backward_beside)
    )
    made = sum(chunk.gradient for chunk in chunks) if kind == "gradients" else 0.0
    return resident.get(kind, 0.0) + max(beside, default=0.0) + made


def _held(resident: BytesByKind, moving: Beside) -> BytesByKind:
    held = dict(resident)
    for kind, nbytes in moving:
        if nbytes:
            held[kind] = held.get(kind, 0.0) + nbytes
    return held


def _peaks_of_chunks(
    chunks: Sequence[ChunkMemory], apart: Collection[TensorKind], *, kinds: Collection[str]
) -> list[list[dict[str, _Peak]]]:
    """Peaks of the passes over each chunk, with and without gradients that were made before; of like chunks once."""
    found: list[list[dict[str, _Peak]]] = []
    for number, chunk in enumerate(chunks):
        like = next((other for other in range(number) if chunks[other] == chunk), None)
        both = [_peaks(chunk, apart, fresh=fresh, kinds=kinds) for fresh in (False, True)] if like is None else None
        found.append(both if both is not None else found[like or 0])
    return found


def _peaks(
    chunk: ChunkMemory, apart: Collection[TensorKind], *, fresh: bool, kinds: Collection[str]
) -> dict[str, _Peak]:
    """The peak of each kind of pass over a chunk; `fresh`: no backward pass has made gradients yet.

    A layer's own tensors take what an allocator takes for them in an empty pool, behind all that is held before it:
    that no block which is free there is large enough for them is assumed.
    """
    below, place = 0.0, 0
    forward, whole, inputs, weights = list[_Top](), list[_Top](), list[_Top](), list[_Top]()
    left, rest = 0.0, chunk.stays  # for the gradients of weights: of layers up to this one, and of those behind it
    above = chunk.gradient
    for one, count in _ends_of_runs(chunk.layers):
        place += count
        below += count * one.kept
        left += count * one.stays
        rest -= count * one.stays
        above -= count * one.gradient
        made, taken = above if fresh else 0.0, one.taken
        free = max(0.0, taken.forward - one.kept - one.forward)
        forward.append(_Top(one.name, below, one.forward, 0.0, one.forward_beside, free))
        # the gradient that comes into the last layer is the message, which is counted as such
        message = chunk.sends if place == len(chunk.layers) else 0.0
        free = max(0.0, taken.backward - one.kept - one.backward)
        whole.append(_Top(one.name, below, max(0.0, one.backward - message), made, one.backward_beside, free))
        free = max(0.0, taken.inputs - one.kept - one.inputs)
        inputs.append(_Top(one.name, below + rest, max(0.0, one.inputs - message), 0.0, one.backward_beside, free))
        free = max(0.0, taken.weights - one.stays - one.weights)
        weights.append(_Top(one.name, left, one.weights, made, one.backward_beside, free))
    out = _Top("", chunk.kept, chunk.sends)  # the message, made and not yet sent
    found = {"F": [*forward, out], "B": inputs[::-1], "W": weights[::-1], "BW": whole[::-1]}
    return {kind: _peak(tops, apart) for kind, tops in found.items() if kind in kinds}


def _ends_of_runs(layers: Sequence[LayerMemory]) -> Iterator[tuple[LayerMemory, int]]:
    """First, last but one and last of like layers in a row, each with how many it adds.

    What is held grows evenly between the first two; the last layer of a chunk does without the message that came in.
    """
    for _, run in groupby(layers, key=id):
        same = list(run)
        for count in (1, len(same) - 2, 1 if len(same) > 1 else 0):
            if count > 0:
                yield same[0], count


def _peak(tops: Sequence[_Top], apart: Collection[TensorKind]) -> _Peak:
    return _Peak(
        max(tops, key=lambda one: one.total, default=_Top("", 0.0, 0.0)),
        max((one.reserved(apart) for one in tops), default=0.0),
    )
