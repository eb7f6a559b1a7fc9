"""Batch normalization in one kernel with what follows: arithmetic is kept, tensors between are not moved."""

import pytest

from simperf.errors import InputError
from simperf.workload import zoo
from simperf.workload.layer_kernels import LayerKernels

JOINED = LayerKernels(batch_norm="joined")


@pytest.mark.parametrize("precision", ["fp32", "fp16", "fp16-master"])
@pytest.mark.parametrize("name", ["resnet18", "resnet50"])
def test_tensors_between_are_neither_read_nor_written(name, precision):
    plain, model = zoo.load(name), zoo.load(name, JOINED)
    before, after = (one.at(16, precision) for one in (plain, model))

    def passes(step):
        return (*step.forward, *step.backward)

    assert sum(op.flops for op in passes(after)) == pytest.approx(sum(op.flops for op in passes(before)))
    kinds = [op.kind for op in passes(after)]
    assert "relu" not in kinds
    assert "threshold_backward" not in kinds
    for kind in ("batchnorm", "batchnorm_backward", "conv2d", "conv2d_dgrad", "conv2d_wgrad"):
        assert kinds.count(kind) == [op.kind for op in passes(before)].count(kind)
    # forward each ReLU saves the write before it and its own read, and an addition before it the same; backward a
    # gradient is not written and the result's is read once less, but a sum's is written for what was added
    width = {"fp32": 4, "fp16": 2, "fp16-master": 2}[precision]
    relus = [op for op in before.forward if op.kind == "relu"]
    adds = [op for op in before.forward if op.kind == "add" and op.elements > 1]
    saved = sum(2 * op.elements for op in (*relus, *adds))
    saved += sum(2 * op.elements for op in relus) - sum(op.elements for op in adds)
    moved = [sum(op.nbytes for op in passes(step)) for step in (before, after)]
    assert moved[0] - moved[1] == pytest.approx(saved * width)
    assert [(one.name, one.nbytes) for one in after.gradients] == [(one.name, one.nbytes) for one in before.gradients]
    assert all(0 <= one.after < len(after.backward) for one in after.gradients)
    held = [one.memory(16) for one in (plain, model)]
    assert held[1]["activations"] <= held[0]["activations"]


def test_a_model_without_such_a_chain_is_refused():
    with pytest.raises(InputError, match="batch_norm: no batch normalization of the model gpt2 is followed by ReLU"):
        zoo.load("gpt2", JOINED)
