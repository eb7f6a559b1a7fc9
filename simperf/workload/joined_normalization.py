"""Batch normalization of a traced model that is one kernel with the addition and the activation behind it.

A trace has PyTorch's kernels: normalization, the addition to a residual, and ReLU, each by itself. cuDNN's kernels for
images in NHWC (``CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION``) and compilers such as XLA have them in one, both ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simperf.errors import InputError, Problem
from simperf.workload.model import TracedModel
from simperf.workload.traced import NEVER, Affine, Operand, TracedOp

__all__ = ["join_normalization"]

_NONE = Affine(0, 0)


def join_normalization(model: TracedModel) -> TracedModel:
    """The model with one kernel for a batch normalization, the addition behind it if there is one, and ReLU.

    Forward, the kernel stands where ReLU was: it reads the input as often as the normalization did, and what is added,
    and writes ReLU's result. Backward it reads the gradient of that result as often as the normalization read its own,
    and the result once, and writes the gradient of what was added where another kernel reads it. Tensors between are
    neither read nor written; a tensor that another operation reads is not joined.

    Parameters
    ----------
    model : TracedModel

    Raises
    ------
    InputError
        No batch normalization of the model is followed by ReLU.
    """
    ops = list(model.ops)
    readers: Counter[int] = Counter(one.tensor for op in ops for one in op.reads)
    gone: set[int] = set()
    for place in range(len(ops)):
        if ops[place].kind == "relu" and place < model.forward:
            _forward(ops, place, readers, gone)
        elif ops[place].kind == "threshold_backward":
            _backward(ops, place, readers, gone)
    if not gone:
        message = f"no batch normalization of the model {model.name} is followed by ReLU"
        expected = "a traced model with both, such as resnet50"
        raise InputError(Problem(message, key="batch_norm", value="'joined'", expected=expected))
    return _without(model, ops, gone)


def _forward(ops: list[TracedOp], place: int, readers: Counter[int], gone: set[int]) -> None:
    """Join what makes the input of the ReLU at `place`."""
    relu = ops[place]
    read, added = relu.reads[0], None
    other: tuple[Operand, ...] = ()
    maker = _maker(ops, read.tensor, place)
    if maker is not None and ops[maker].kind == "add" and len(ops[maker].reads) == 2 and readers[read.tensor] == 1:
        both = ops[maker].reads
        if any(one.elements != read.elements for one in both):
            return
        found = [_maker(ops, one.tensor, maker) for one in both]
        norms = [i for i, at in enumerate(found) if at is not None and ops[at].kind == "batchnorm" and at not in gone]
        norms = [i for i in norms if readers[both[i].tensor] == 1]
        if not norms:
            return
        chosen = norms[0]
        added, read = maker, both[chosen]
        maker, other = found[chosen], (both[1 - chosen],)
    if maker is None or ops[maker].kind != "batchnorm" or readers[read.tensor] != 1:
        return
    norm = ops[maker]
    merged = [norm, relu] if added is None else [norm, ops[added], relu]
    reads, writes = (*norm.reads, *other), (relu.writes[0], *norm.writes[1:])
    ops[place] = norm._replace(flops=_sum(merged), reads=reads, writes=writes)
    gone.update({maker} if added is None else {maker, added})


def _backward(ops: list[TracedOp], place: int, readers: Counter[int], gone: set[int]) -> None:
    """Join the gradient of a ReLU at `place` with that of the normalization before it."""
    relu = ops[place]
    made = relu.writes[0].tensor
    for later in range(place + 1, len(ops)):
        norm = ops[later]
        if made not in {one.tensor for one in norm.reads}:
            continue
        if norm.kind != "batchnorm_backward" or norm.reads[0].tensor != made:
            return
        gradient = relu.reads[0]._replace(passes=norm.reads[0].passes)
        # of a sum, the gradient goes to what was added, too
        writes = (*norm.writes, *relu.writes) if readers[made] > 1 else norm.writes
        reads = (gradient, *norm.reads[1:], *relu.reads[1:])
        ops[later] = norm._replace(flops=_sum([norm, relu]), reads=reads, writes=writes)
        gone.add(place)
        return


def _maker(ops: Sequence[TracedOp], tensor: int, before: int) -> int | None:
    """Place of the operation before another one that writes a tensor."""
    places = range(before - 1, -1, -1)
    return next((at for at in places if tensor in {one.tensor for one in ops[at].writes}), None)


def _sum(ops: Sequence[TracedOp]) -> Affine:
    return Affine(sum(op.flops.constant for op in ops), sum(op.flops.slope for op in ops))


def _without(model: TracedModel, ops: Sequence[TracedOp], gone: set[int]) -> TracedModel:
    """The model of these operations but those that are gone; what nothing writes takes no memory."""
    starts, count = [], 0  # of each operation that stays, and of the next one that does for each that is gone
    for place in range(len(ops)):
        starts.append(count)
        count += place not in gone
    starts.append(count)
    kept = [op for place, op in enumerate(ops) if place not in gone]
    writers: dict[int, int] = {}
    for place, op in enumerate(kept):
        for one in op.writes:
            writers.setdefault(model.tensors[one.tensor], place)
    lost = {model.tensors[one.tensor] for place in gone for one in model.ops[place].writes} - writers.keys()
    storages = []
    for index, storage in enumerate(model.storages):
        born = writers.get(index, starts[storage.born]) if storage.role == "value" else starts[storage.born]
        dies = NEVER if storage.dies == NEVER else max(starts[storage.dies], born + 1)
        storages.append(storage._replace(elements=_NONE if index in lost else storage.elements, born=born, dies=dies))
    return model.changed(
        ops=tuple(kept),
        forward=starts[model.forward],
        storages=tuple(storages),
        gradients=tuple(order._replace(after=starts[order.after]) for order in model.gradients),
    )
