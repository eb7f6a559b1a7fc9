"""Attention of a traced model that writes its scores to memory."""

from collections import Counter

import pytest

from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.zoo import load

WRITTEN = LayerKernels(attention="unfused")
LAYERS, HEADS, WIDTH, TOKENS = 12, 12, 64, 128


def test_each_layer_has_two_products_forward_and_four_backward_and_the_kernels_between_them():
    before, after = load("bert-base-128").at(4, "tf32"), load("bert-base-128", WRITTEN).at(4, "tf32")
    added = [Counter(op.kind for op in one) for one in (after.forward, after.backward)]
    for one, ops in zip(added, (before.forward, before.backward), strict=True):
        one.subtract(op.kind for op in ops)
    forward = {"attention": -1, "bmm": 2, "copy": 4, "mul": 1, "add": 1, "softmax": 1, "native_dropout": 1}
    backward = {"attention_backward": -1, "bmm": 4, "copy": 4, "mul": 1, "softmax_backward": 1}
    backward |= {"native_dropout_backward": 1}
    assert {kind: count / LAYERS for kind, count in added[0].items() if count} == forward
    assert {kind: count / LAYERS for kind, count in added[1].items() if count} == backward


def test_products_have_the_arithmetic_of_attention_and_the_scores_are_kept():
    batch = 4
    before, after = (one.at(batch, "tf32") for one in (load("bert-base-128"), load("bert-base-128", WRITTEN)))
    scores = batch * HEADS * TOKENS * TOKENS
    products = [op for op in after.ops if op.kind == "bmm"]
    assert sum(op.flops for op in products) == LAYERS * 6 * 2 * scores * WIDTH
    kernel = sum(op.flops for op in before.ops if op.family == "attention")
    assert sum(op.flops for op in products) == kernel * 6 / 7, "one kernel computes the scores twice"
    batch = 64
    scores = batch * HEADS * TOKENS * TOKENS
    held = [one.memory(batch, "tf32")["activations"] for one in (load("bert-base-128"), load("bert-base-128", WRITTEN))]
    # probabilities, what dropout leaves of them, its mask; queries, keys, values are copies in place of the first ones,
    # the result is copied, and statistics of rows are gone
    rows = batch * HEADS * TOKENS * 4
    assert held[1] - held[0] == pytest.approx(LAYERS * (scores * (4 + 4 + 1) - rows), rel=0.01)


def test_gradients_come_in_the_same_order_and_sizes():
    before, after = (one.at(2, "fp16") for one in (load("bert-base-128"), load("bert-base-128", WRITTEN)))
    assert [(one.name, one.nbytes) for one in after.gradients] == [(one.name, one.nbytes) for one in before.gradients]
    places = [one.after for one in after.gradients]
    assert places == sorted(places)
    assert max(places) < len(after.backward)


@pytest.mark.parametrize(("model", "words"), [("gpt2", "are one tensor"), ("resnet18", "it has no attention")])
def test_a_model_whose_attention_is_not_taken_apart_is_refused(model, words):
    with pytest.raises(InputError, match=words):
        load(model, WRITTEN)
