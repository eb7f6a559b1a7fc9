"""Running one training step on the meta device and writing down every kernel.

A tensor on the meta device has a shape and no memory, so a step of any model takes as long as its
Python does. Autograd runs as always; each operation below it passes by a dispatch mode here.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from simperf.workload.trace.cell import KERNELS as CELLS
from simperf.workload.trace.kernels import TracedKernel, kernels
from simperf.workload.trace.kinds import FREE
from simperf.workload.trace.recurrent import KERNELS as LAYERS
from simperf.workload.traced import NEVER

__all__ = ["Recorded", "RecordedOp", "TraceRecorder", "recording"]

#: operations whose result's shape, or whose very value, depends on data
_DATA = frozenset(
    {"_local_scalar_dense", "item", "is_nonzero", "nonzero", "equal", "masked_select", "_unique2", "unique_dim"}
)

#: operations of our own, which stand for what a GPU's library keeps whole
_OWN = {**LAYERS, **CELLS}


class DataDependenceError(RuntimeError):
    """The program asked for the value of a tensor."""


@dataclass(slots=True)
class RecordedOp:
    """One kernel: amounts as plain numbers at the batch of this recording."""

    name: str
    kind: str
    family: str
    flops: int
    reads: tuple[tuple[int, int, int], ...]
    writes: tuple[tuple[int, int, int], ...]
    gemm: tuple[int, ...]


@dataclass(slots=True)
class RecordedStorage:
    """Memory, in elements; see `simperf.workload.traced.Storage`."""

    elements: int
    width: int
    role: str
    born: int
    dies: int = NEVER
    name: str = ""


@dataclass(slots=True)
class Recorded:
    """One step at one batch."""

    ops: list[RecordedOp] = field(default_factory=list)
    storages: list[RecordedStorage] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)
    gradients: list[tuple[int, int, int]] = field(default_factory=list)
    forward: int = 0
    unknown: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)


class TraceRecorder:
    """Keeps track of tensors by the storage that they lie in, and of where in the model the program is."""

    def __init__(self) -> None:
        self.out = Recorded()
        self.path: list[str] = []
        self.failed = ""  # place in the model whose operation raised
        self._storages: dict[int, int] = {}  # address of a storage in torch -> our number
        self._current: dict[int, int] = {}  # our number -> latest version of its tensor
        self._watches: dict[int, Any] = {}
        self._sequence: dict[int, str] = {}  # number of a node of autograd -> place in the model
        self._names: dict[str, int] = {}
        self._made: set[int] = set()  # versions that a kernel has written, or that were there before
        self._open = True

    def storage(self, tensor: Any, *, role: str = "value", name: str = "") -> int:
        """Our number of the storage of `tensor`; a new one if it has not been seen."""
        raw = tensor.untyped_storage()
        key = raw._cdata
        number = self._storages.get(key)
        if number is None:
            number = self._storages[key] = len(self.out.storages)
            width = 0 if tensor.dtype.is_floating_point and tensor.element_size() <= 4 else tensor.element_size()
            elements = raw.nbytes() // tensor.element_size()
            self.out.storages.append(RecordedStorage(elements, width, role, len(self.out.ops), NEVER, name))
            self.out.tensors.append(number)
            self._current[number] = len(self.out.tensors) - 1
            if role != "value":
                self._made.add(self._current[number])
            self._watches[number] = weakref.ref(raw, self._watch(key, number))
        return number

    def _watch(self, key: int, number: int) -> Callable[[Any], None]:
        return lambda _: self._gone(key, number)

    def _gone(self, key: int, number: int) -> None:
        """The last tensor on a storage went away."""
        if self._storages.get(key) == number:
            del self._storages[key]
        if self._open:
            self.out.storages[number].dies = len(self.out.ops)

    def version(self, tensor: Any) -> int:
        """Latest version of the tensor that lies in this storage."""
        return self._current[self.storage(tensor)]

    def call(self, name: str, args: Sequence[Any], out: Any) -> None:
        """Write down the kernels of one call that has been made."""
        import torch

        operands = list(_tensors(args))
        results = list(_tensors((out,)))
        if not results or any(t.device.type != "meta" for t in results):
            return
        before = {t.untyped_storage()._cdata for t in operands}
        inside = name.endswith("_") and not name.endswith("__")
        if not inside and all(t.untyped_storage()._cdata in before for t in results):
            return  # a view
        if name in FREE:
            for tensor in results:
                self.storage(tensor)
            return
        node = torch._C._current_autograd_node()
        place = self._place(node)
        if name in _OWN:
            found = _OWN[name](args, out)
        else:
            found = kernels(name, args, operands=operands, results=results, out=out)
        for tensor in operands:
            self.storage(tensor)
        for kernel in found:
            self._kernel(kernel, place, backward=node is not None)
        if any(not kernel.known for kernel in found):
            self.out.unknown[name.strip("_")] = None

    def _place(self, node: Any) -> str:
        import torch

        if node is None:
            place = self.path[-1] if self.path else ""
            self._sequence.setdefault(torch._C._autograd._get_sequence_nr() - 1, place)
            return place
        return self._sequence.get(node._sequence_nr(), "")

    def _kernel(self, kernel: TracedKernel, place: str, *, backward: bool) -> None:
        reads: dict[int, list[int]] = {}
        for touch in kernel.reads:
            number = self.storage(touch.tensor)
            elements = touch.elements if touch.elements >= 0 else _different(touch.tensor)
            version = self._current[number]
            if version not in self._made:  # set aside, never written: data that comes from outside
                self._made.add(version)
                self.out.storages[number].role = "input"
                self.out.storages[number].name = f"target{number}"
            entry = reads.setdefault(version, [0, 1])
            whole = self.out.storages[number].elements
            same = touch.elements < 0 and elements == whole
            entry[0] = max(entry[0], elements) if same or touch.elements >= 0 else min(whole, entry[0] + elements)
            entry[1] = max(entry[1], touch.passes)
        writes: list[tuple[int, int, int]] = []
        for touch in kernel.writes:
            number = self.storage(touch.tensor)
            version = self._current[number]
            if any(item[0] == version for item in writes):
                continue
            if version in self._made:
                if version not in reads and _different(touch.tensor) < self.out.storages[number].elements:
                    reads[version] = [0, 1]  # what it leaves alone must be there: an order, no traffic
                self.out.tensors.append(number)
                version = self._current[number] = len(self.out.tensors) - 1
            self._made.add(version)
            writes.append((version, _different(touch.tensor), touch.passes))
        label = f"{place}.{kernel.kind}" if place else kernel.kind
        label = f"{label}.back" if backward and not kernel.kind.endswith(("_backward", "grad")) else label
        count = self._names[label] = self._names.get(label, 0) + 1
        self.out.ops.append(
            RecordedOp(
                label if count == 1 else f"{label}.{count}",
                kernel.kind,
                kernel.family,
                int(kernel.flops),
                tuple((version, amount[0], amount[1]) for version, amount in reads.items()),
                tuple(writes),
                kernel.gemm,
            )
        )

    def gradient(self, parameter: int, tensor: Any) -> None:
        """The gradient of a parameter is final."""
        self.out.gradients.append((parameter, self.version(tensor), len(self.out.ops) - 1))

    def finish(self) -> Recorded:
        """The recording, after which tensors may go away unseen."""
        self._open = False
        return self.out


def _different(tensor: Any) -> int:
    """Elements of a tensor that lie at different addresses: an expanded dimension counts once."""
    return math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)


def _tensors(items: Any) -> Iterator[Any]:
    import torch

    for item in items:
        if isinstance(item, torch.Tensor):
            yield item
        elif isinstance(item, list | tuple):
            yield from _tensors(item)


@contextmanager
def recording(recorder: TraceRecorder, module: Any) -> Iterator[None]:
    """While it lasts, everything that runs is written down."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from simperf.workload.trace.fused import fused_functions

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.overloadpacket.__name__
            recorder.failed = recorder.path[-1] if recorder.path else ""
            if name in _DATA and any(t.device.type == "meta" for t in _tensors(args)):
                raise DataDependenceError(name)
            if name == "index" and any(t.dtype == torch.bool for t in _tensors(args[1:])):
                raise DataDependenceError("indexing with a mask")
            out = func(*args, **(kwargs or {}))
            recorder.call(name, [*args, *(kwargs or {}).values()], out)
            return out

    with ExitStack() as stack:
        if module is not None:
            for path, child in module.named_modules():
                stack.callback(child.register_forward_pre_hook(_enter(recorder, path)).remove)
                stack.callback(child.register_forward_hook(_leave(recorder), always_call=True).remove)
        stack.enter_context(fused_functions(recorder.out.notes))
        stack.enter_context(Mode())
        yield


def _enter(recorder: TraceRecorder, path: str) -> Any:
    return lambda *_: recorder.path.append(path)


def _leave(recorder: TraceRecorder) -> Any:
    def leave(*_: Any) -> None:
        recorder.path.pop()

    return leave
