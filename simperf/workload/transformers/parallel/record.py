"""A pass of a layer as it is written down: its operations and collectives, and the memory that its tensors hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypedDict

from simperf.memory import LayerTensors, TensorEvent
from simperf.workload.op import Op
from simperf.workload.transformers.passes import Await, CollectiveName, Item, Kept, Sync

__all__ = ["PassRecord", "RecordedPasses", "SplitMemory", "layer_tensors", "recorded_passes"]


class _Logged(NamedTuple):
    """An event of a tensor: it is there from now on, is read for gradients of weights, or is there no longer."""

    kind: Literal["hold", "read", "free"]
    tensor: int


@dataclass(frozen=True, slots=True)
class SplitMemory:
    """Memory of a backward pass in two passes, of the gradients of inputs and of those of weights.

    Parameters
    ----------
    left : tuple of Kept
        What the first leaves for the second: inputs of products, and gradients of their outputs.
    inputs, weights : float
        Most that either pass holds at a time [B].
    """

    left: tuple[Kept, ...]
    inputs: float
    weights: float


class RecordedPasses(TypedDict):
    """Record of both passes of a layer for `simperf.workload.transformers.passes.LayerPasses`."""

    forward: tuple[Item, ...]
    backward: tuple[Item, ...]
    input_gradients: tuple[Item, ...]
    weight_gradients: tuple[Item, ...]
    kept: tuple[Kept, ...]
    temporary_forward: float
    temporary_backward: float
    left: tuple[Kept, ...]
    temporary_inputs: float
    temporary_weights: float


class PassRecord:
    """Items of a pass in the order in which they are launched.

    A tensor counts from the item that makes it to the one behind which it is freed.

    Parameters
    ----------
    held : iterable of Kept
        Tensors that exist when it begins.
    """

    def __init__(self, held: Iterable[Kept] = ()) -> None:
        self.items: list[Item] = []
        self._weights: list[bool] = []
        self._beside: set[str] = set()  # labels of collectives that what follows does not wait for
        self._tensors: dict[str, int] = {}
        self._sizes: list[Kept] = []
        self._log: list[_Logged] = []
        self._later: set[int] = set()
        self._now = self._peak = 0.0
        self._prefix = ""
        self._shares: Mapping[str, float] = {}
        self._owned: list[str] = []
        for one in held:
            self.hold(one.name, one.nbytes)

    def op(
        self,
        op: Op,
        name: str,
        *,
        makes: Iterable[Kept] = (),
        frees: Iterable[str] = (),
        weights: bool = False,
        reads: Iterable[str] = (),
    ) -> None:
        """Add an operation.

        Parameters
        ----------
        op : Op
        name : str
            Unique in the pass.
        makes : iterable of Kept
            Tensors that it makes.
        frees : iterable of str
            Tensors that nothing behind it reads.
        weights : bool
            Whether it belongs to the gradients of weights.
        reads : iterable of str
            Tensors that it reads then, which have to stay for it where these gradients are a pass of their own.
        """
        self.read(*reads)
        share = self._shares.get(name.partition("/")[0], 1.0)  # of a part that of the whole
        if share:
            self._add(replace(_part(op, share), name=self._prefix + name), weights=weights)
        for one in makes:
            self.hold(one.name, one.nbytes, weights=weights)
        self.free(*frees)

    def sync(
        self,
        name: CollectiveName,
        nbytes: float,
        label: str,
        *,
        dimension: str = "tp",
        waits: bool = True,
        weights: bool = False,
    ) -> None:
        """Add a collective, among the ranks along a dimension."""
        if not self._shares.get(label.partition("/")[0], 1.0):
            return
        self._add(Sync(name, dimension, float(nbytes), self._prefix + label, waits), weights=weights)
        if not waits:
            self._beside.add(self._prefix + label)

    def wait(self, label: str, *, weights: bool = False) -> None:
        """Wait for a collective, unless it was waited for."""
        label = self._prefix + label
        if label in self._beside:
            self._add(Await(label), weights=weights)

    def again(self, prefix: str, shares: Mapping[str, float] | None = None) -> None:
        """Names of what follows begin with `prefix`: it is computed again.

        Parameters
        ----------
        prefix : str
        shares : mapping of str to float, optional
            Part of the outputs of operations and collectives that is computed, by name: the rest has been kept; all of
            those without [1].
        """
        self._prefix, self._shares = prefix, shares or {}

    def hold(self, name: str, nbytes: float, *, weights: bool = False) -> None:
        """A tensor exists from here on; `weights` says whether only the gradients of weights need it."""
        assert name not in self._tensors, name
        self._tensors[name] = tensor = len(self._sizes)
        self._sizes.append(Kept(name, float(nbytes)))
        self._log.append(_Logged("hold", tensor))
        if weights:
            self._later.add(tensor)
        self._now += nbytes
        self._peak = max(self._peak, self._now)

    def read(self, *names: str) -> None:
        """Gradients of weights read tensors here."""
        self._log += (_Logged("read", self._tensors[name]) for name in names)

    def free(self, *names: str) -> None:
        """Tensors exist no longer."""
        for name in names:
            tensor = self._tensors.pop(name)
            self._log.append(_Logged("free", tensor))
            self._now -= self._sizes[tensor].nbytes

    def resize(self, name: str, nbytes: float) -> None:
        """A tensor is replaced by another one of the same name, once that is there."""
        self.hold(f"{name}.resized", nbytes)
        self.free(name)
        self.rename(f"{name}.resized", name)

    def rename(self, name: str, to: str) -> None:
        """Call a tensor by another name."""
        assert to not in self._tensors, to
        self._tensors[to] = self._tensors.pop(name)

    def own(self, name: str) -> None:
        """A gradient of a weight stays up to the end of the pass."""
        self._owned.append(name)

    def end(self) -> None:
        """The pass is over, and gradients of weights that it owns are reduced."""
        self.free(*self._owned)
        self._owned.clear()

    def kept(self, names: Iterable[str]) -> tuple[Kept, ...]:
        """Of all tensors that exist those of these names; the others are freed."""
        found = tuple(Kept(name, self._sizes[self._tensors[name]].nbytes) for name in names if name in self._tensors)
        self.free(*[name for name in self._tensors if name not in {one.name for one in found}])
        return found

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of all tensors that exist."""
        return tuple(self._tensors)

    @property
    def live(self) -> Mapping[str, int]:
        """Tensors that exist, by name: which of all that it has had."""
        return self._tensors

    @property
    def peak(self) -> float:
        """Most memory that its tensors hold at a time [B]."""
        return self._peak

    @property
    def inputs(self) -> tuple[Item, ...]:
        """Items but those of the gradients of weights."""
        return tuple(item for item, weights in zip(self.items, self._weights, strict=True) if not weights)

    @property
    def weights(self) -> tuple[Item, ...]:
        """Items of the gradients of weights."""
        return tuple(item for item, weights in zip(self.items, self._weights, strict=True) if weights)

    def split(self) -> SplitMemory:
        """Memory where the gradients of weights are a pass of their own, behind that of the gradients of inputs.

        A tensor that the second pass reads stays from the first one to its last reader there. Each pass holds the
        others as in the whole pass.
        """
        last = {one.tensor: index for index, one in enumerate(self._log) if one.kind == "read"}
        left = [tensor for tensor in last if tensor not in self._later]
        now = inputs = 0.0
        for one in self._log:
            if one.tensor in self._later or (one.kind == "free" and one.tensor in last):
                continue
            now += {"hold": 1, "read": 0, "free": -1}[one.kind] * self._sizes[one.tensor].nbytes
            inputs = max(inputs, now)
        now = weights = sum(self._sizes[tensor].nbytes for tensor in left)
        for index, one in enumerate(self._log):
            size = self._sizes[one.tensor].nbytes
            if one.tensor in self._later:
                now += {"hold": size, "read": 0.0, "free": -size}[one.kind]
            elif last.get(one.tensor) == index:
                now -= size
            weights = max(weights, now)
        return SplitMemory(tuple(self._sizes[tensor] for tensor in left), inputs, weights)

    def numbers(self, before: Mapping[str, int]) -> list[int]:
        """Number of each tensor: of those that exist before by their names, fresh ones of the others."""
        fresh, left, found = max(before.values(), default=-1) + 1, dict(before), list[int]()
        for index, one in enumerate(self._sizes):
            found.append(left.pop(one.name, fresh + index))
        return found

    def events(self, before: Mapping[str, int]) -> tuple[TensorEvent, ...]:
        """Tensors that come and go, by `numbers`; those that exist before do not come."""
        return self._told(self._log, before)

    def split_events(self, before: Mapping[str, int]) -> tuple[tuple[TensorEvent, ...], tuple[TensorEvent, ...]]:
        """The same of a backward pass in two, as `split` has them; the second begins with what is left for it."""
        last = {one.tensor: index for index, one in enumerate(self._log) if one.kind == "read"}
        first, second = list[_Logged](), list[_Logged]()
        for index, one in enumerate(self._log):
            if one.tensor in self._later:
                second.append(one)
            elif last.get(one.tensor) == index:
                second.append(one._replace(kind="free"))
            elif one.kind == "hold" or (one.kind == "free" and one.tensor not in last):
                first.append(one)
        left = [_Logged("hold", tensor) for tensor in last if tensor not in self._later]
        return self._told(first, before), self._told([*left, *second], {}, like=before)

    def _told(
        self, log: Iterable[_Logged], before: Mapping[str, int], *, like: Mapping[str, int] | None = None
    ) -> tuple[TensorEvent, ...]:
        numbers, known = self.numbers(before if like is None else like), set(before.values())
        return tuple(
            TensorEvent(numbers[one.tensor], self._sizes[one.tensor].nbytes if one.kind == "hold" else None)
            for one in log
            if one.kind == "free" or (one.kind == "hold" and numbers[one.tensor] not in known)
        )

    def _add(self, item: Item, *, weights: bool) -> None:
        self.items.append(item)
        self._weights.append(weights)


def layer_tensors(forward: PassRecord, backward: PassRecord) -> LayerTensors:
    """Lifetimes of the tensors of two passes of a layer, one behind the other.

    Parameters
    ----------
    forward : PassRecord
        With the tensors that are kept.
    backward : PassRecord
        Which begins with these.

    Examples
    --------
    >>> forward = PassRecord(held=[Kept("logits", 512.0), Kept("kept", 1024.0)])
    >>> forward.free("logits")
    >>> backward = PassRecord(held=forward.kept(["kept"]))
    >>> backward.hold("gradient", 1024.0)
    >>> [tuple(one) for one in layer_tensors(forward, backward).forward]
    [(0, 512.0), (1, 1024.0), (0, None)]
    >>> [tuple(one) for one in layer_tensors(forward, backward).backward]
    [(3, 1024.0)]
    """
    numbers = forward.numbers({})
    before = {name: numbers[tensor] for name, tensor in forward.live.items()}
    inputs, weights = backward.split_events(before)
    return LayerTensors(forward.events({}), backward.events(before), inputs, weights)


def _part(op: Op, share: float) -> Op:
    """A part of the outputs of a matrix product."""
    if share == 1.0 or op.gemm is None:
        return op
    size = op.nbytes_written / op.elements
    gemm = replace(op.gemm, n=round(op.gemm.n * share))
    left = size * gemm.m * gemm.k
    return replace(
        op,
        flops=op.flops * share,
        nbytes_read=left + (op.nbytes_read - left) * share,
        nbytes_written=op.nbytes_written * share,
        elements=op.elements * share,
        gemm=gemm,
    )


def recorded_passes(
    forward: PassRecord, backward: PassRecord, kept: tuple[Kept, ...], *, apart: bool = True
) -> RecordedPasses:
    """Items and memory of a layer whose passes are written down.

    Parameters
    ----------
    forward, backward : PassRecord
    kept : tuple of Kept
        What stays from the one to the other.
    apart : bool
        Whether the gradients of weights may be a pass of their own.
    """
    held = sum(one.nbytes for one in kept)
    split = backward.split() if apart else SplitMemory((), backward.peak, 0.0)
    return {
        "forward": tuple(forward.items),
        "backward": tuple(backward.items),
        "input_gradients": backward.inputs if apart else tuple(backward.items),
        "weight_gradients": backward.weights if apart else (),
        "kept": kept,
        "temporary_forward": forward.peak - held,
        "temporary_backward": backward.peak - held,
        "left": split.left,
        "temporary_inputs": split.inputs - held,
        "temporary_weights": split.weights - sum(one.nbytes for one in split.left),
    }
