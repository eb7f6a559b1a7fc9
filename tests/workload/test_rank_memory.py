"""What one rank keeps of a transformer: against published formulas and published peaks."""

import pytest

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.parallel import rank_passes

S, B, H, A = 64, 2, 128, 4
GPT = Transformer(
    layers=2,
    hidden=H,
    heads=A,
    vocabulary=1024,
    sequence=S,
    norm="layer",
    positions="learned",
    activation="gelu",
    bias=True,
    dropout=True,
)
MEGATRON = LayerKernels(attention="fused-softmax", norm="fused", activation="fused", residual="fused")


def kept(tp, *, sequence_parallel=False, recompute="none"):
    block = rank_passes(
        GPT, MEGATRON, tp=tp, sequence_parallel=sequence_parallel, microbatch=B, recompute=recompute
    ).block
    return sum(one.nbytes for one in block.kept if not one.name.endswith("statistics"))


@pytest.mark.parametrize("t", [1, 2, 4])
def test_activations_of_a_layer_as_published(t):
    """Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", equations 1, 2, 4, 5, 6."""
    unit, attention = S * B * H, 5 * A * S / H
    assert kept(t) == unit * (10 + 24 / t + attention / t)
    assert kept(t, recompute="selective") == unit * (10 + 24 / t)
    assert kept(t, recompute="full") == 2 * unit
    if t > 1:
        assert kept(t, sequence_parallel=True) == unit / t * (34 + attention)
        assert kept(t, sequence_parallel=True, recompute="selective") == unit / t * 34
        assert kept(t, sequence_parallel=True, recompute="full") == 2 * unit / t


#: most memory that PyTorch had allocated on a rank of each stage [MiB], bf16 with Transformer Engine 2.11, one
#: micro-batch of one sequence in flight a stage that follows: MooreThreads/SimuMax at 4dcaae51,
#: docs/b200/b200_release_v1.2_summary.json
LLAMA_70B = {"layers": 12, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 28672}
LLAMA_405B = {"layers": 4, "hidden": 16384, "heads": 128, "kv_heads": 16, "ffn": 53248}
PEAKS = [
    (LLAMA_70B, 1, 2, 4, (68149.2, 64479.5)),
    (LLAMA_70B, 2, 1, 4, (62136.3,)),
    (LLAMA_70B, 4, 1, 2, (40009.8,)),
    (LLAMA_405B, 1, 2, 4, (88688.8, 89173.1)),
    (LLAMA_405B, 2, 1, 4, (83549.6,)),
    (LLAMA_405B, 4, 1, 2, (54158.1,)),
]
ENGINE = LayerKernels(
    norm="fused",
    rotary="fused",
    activation="fused",
    residual="fused",
    cross_entropy="in-place",
    gradients="fp32",
    gradient_accumulation="fused",
    placeholders="by-shape",
)


@pytest.mark.parametrize(("dimensions", "tp", "pp", "dp", "measured"), PEAKS)
def test_peaks_of_memory_as_measured(dimensions, tp, pp, dp, measured):
    """Weights, gradients, a part of the optimizer's states, activations in flight, and the larger of two passes."""
    model = Transformer(**dimensions, vocabulary=128256, sequence=4096)
    passes = rank_passes(model, ENGINE, tp=tp, sequence_parallel=tp > 1)
    layers = model.layers // pp
    for stage, peak in enumerate(measured):
        ends = [passes.embedding] * (stage == 0)
        head = [passes.head] * (stage == pp - 1)
        weights = layers * passes.block.parameters + sum(one.parameters for one in (*ends, *head))
        found = weights * (passes.weight_width + passes.gradient_width + passes.state_width / dp)
        found += (pp - stage) * (layers * passes.block.activations + sum(one.activations for one in ends))
        found += sum(one.nbytes for part in (passes.block, *head) for one in part.placeholders)
        at_head = sum(one.activations + one.temporary_backward for one in head)
        found += max(passes.block.temporary_backward, at_head)
        assert found / 2**20 == pytest.approx(peak, rel=0.005)


def test_what_is_left_for_gradients_of_weights_as_published():
    """Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024, table 1: 32 s b h, of 34 s b h + 5 a s^2 b."""
    block = rank_passes(GPT, MEGATRON, microbatch=B).block
    assert sum(one.nbytes for one in block.left) == 32 * S * B * H
    again = rank_passes(GPT, MEGATRON, microbatch=B, recompute="full").block
    assert again.left == block.left, "what is computed again is left as well"


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_what_is_left_is_read_by_products_only(tp):
    """With tokens shared, inputs are gathered again: 10 of the 32 are gradients of whole outputs."""
    passes = rank_passes(GPT, MEGATRON, tp=tp, sequence_parallel=tp > 1, microbatch=B)
    unit = S * B * H
    found = {one.name: one.nbytes / unit for one in passes.block.left}
    whole = {"projection.gradient.gathered": 2.0, "down.gradient.gathered": 2.0} if tp > 1 else {}
    assert {name: found[name] for name in whole} == whole
    assert sum(found.values()) == 32 / tp + sum(whole.values())
    head = {one.name: one.nbytes for one in passes.head.left}
    assert head["logits.gradient"] == 2 * S * B * GPT.vocabulary / tp


def test_gradients_of_the_head_may_stay_in_its_backward_pass():
    """What is apart elsewhere: nothing is left then, and all operations are where they were."""
    apart, whole = (
        rank_passes(GPT, LayerKernels(attention="fused-softmax", apart=of), microbatch=B) for of in ("all", "blocks")
    )
    assert apart.head.weight_gradients
    assert apart.head.left
    assert whole.head.input_gradients == whole.head.backward == apart.head.backward
    assert whole.head.weight_gradients == whole.head.left == ()
    assert whole.head.temporary_inputs == whole.head.temporary_backward
    assert whole.block == apart.block


def test_two_passes_hold_no_more_than_both_together():
    for recompute in ("none", "selective", "full"):
        for tp in (1, 2):
            passes = rank_passes(GPT, MEGATRON, tp=tp, sequence_parallel=tp > 1, recompute=recompute)
            for part in (passes.block, passes.head):
                held, left = part.activations, sum(one.nbytes for one in part.left)
                assert part.temporary_inputs + held >= left
                assert part.temporary_weights >= 0
                assert part.temporary_inputs + held <= part.temporary_backward + held + left


def test_a_pass_never_holds_less_than_it_keeps():
    for recompute in ("none", "selective", "full"):
        passes = rank_passes(GPT, MEGATRON, tp=2, sequence_parallel=True, recompute=recompute)
        for part in (passes.embedding, passes.block, passes.head):
            assert part.temporary_forward >= 0
            assert part.temporary_backward >= 0
    full = rank_passes(GPT, MEGATRON, recompute="full").block
    whole = rank_passes(GPT, MEGATRON).block
    assert full.temporary_backward + full.activations >= whole.activations + whole.temporary_backward
