"""What one rank computes of a mixture of experts: identities, bytes by hand, and published peaks of memory."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.routing import Routing
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.flops import step_flops
from simperf.workload.transformers.parallel import ExpertSizes, Spread, rank_passes
from simperf.workload.transformers.passes import Sync
from simperf.workload.transformers.shipped import shipped_transformers
from tests.workload.test_rank_passes import FUSED

EAGER = LayerKernels(norm="fused", bias="unfused", gradient_overlap="alone")
MIXTURE = Transformer(
    layers=3,
    hidden=256,
    heads=8,
    kv_heads=4,
    ffn=512,
    vocabulary=1024,
    sequence=128,
    experts=8,
    experts_per_token=2,
    expert_ffn=128,
    shared_experts=2,
    dense_layers=1,
)
LATENT = replace(MIXTURE, kv_heads=0, head_dim=32, kv_rank=64, q_rank=96, rope_dim=16, value_dim=32)
MODELS = {"grouped": MIXTURE, "latent": LATENT, "latent, whole queries": replace(LATENT, q_rank=0)}


def made(model=MIXTURE, kernels=FUSED, **options):
    return rank_passes(model, kernels, **options)


def exchanges(items):
    """Payloads of exchanges of rows, without those of their scores."""
    return [
        one.nbytes for one in items if isinstance(one, Sync) and one.dimension == "ep" and "scores" not in one.label
    ]


def products(items):
    """Shapes of matrix products, and their arithmetic."""
    return Counter((op.gemm, op.flops) for op in items if isinstance(op, Op) and op.family == "gemm")


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("kernels", [FUSED, EAGER], ids=["fused", "eager"])
@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("ep", [1, 2, 8])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_all_ranks_together_have_the_model(model, ep, split, kernels, recompute):
    spread = Spread(ep=ep, etp=1)
    passes = made(model, kernels, tp=split, sequence_parallel=split > 1, recompute=recompute, spread=spread)
    of_model = list(model.block_weights("block"))
    experts = sum(one.elements for one in of_model if ".experts." in one.name)
    assert ep * passes.block.of_experts == experts
    whole = sum(one.elements for one in passes.block.replicated)
    others = sum(one.elements for one in of_model) - experts
    assert split * (passes.block.parameters - passes.block.of_experts - whole) + whole == others
    assert passes.dense is not None
    assert not passes.dense.of_experts
    for one in (passes.block, passes.dense):
        assert set(one.backward) == {*one.input_gradients, *one.weight_gradients}


@pytest.mark.parametrize("kernels", [FUSED, EAGER], ids=["fused", "eager"])
def test_one_expert_that_every_token_goes_to_is_the_dense_model(kernels):
    one = replace(MIXTURE, experts=1, experts_per_token=1, expert_ffn=512, shared_experts=0, dense_layers=0)
    dense = replace(one, experts=0, experts_per_token=0, expert_ffn=0)
    mixture, plain = made(one, kernels), made(dense, kernels)
    for which in ("forward", "backward"):
        own, other = (products(getattr(each.block, which)) for each in (mixture, plain))
        router = own - other
        assert not other - own
        assert {gemm.n for gemm, _ in router} <= {1, dense.hidden}  # of the router, which has one output
        assert sum(flops for _, flops in router.elements()) == (1 if which == "forward" else 2) * 2 * 128 * 256
    assert mixture.block.parameters == plain.block.parameters + 256
    assert mixture.embedding == plain.embedding
    assert mixture.head == plain.head


@pytest.mark.parametrize("ep", [2, 4, 8])
def test_rows_that_go_to_experts_and_back(ep):
    block = made(spread=Spread(ep=ep)).block
    tokens, chosen = 128, 2
    sent = tokens * chosen * 256 * 2
    assert exchanges(block.forward) == exchanges(block.backward) == [sent] * 2
    assert not exchanges(made().block.forward)


def test_tensor_parallel_experts_gather_the_rows_of_their_group():
    block = made(tp=2, sequence_parallel=True, spread=Spread(ep=2)).block
    syncs = [one for one in block.forward if isinstance(one, Sync) and one.dimension == "etp"]
    rows = 128 * 2 / 2 * 2  # of two ranks with half of the tokens each
    assert [(one.name, one.nbytes) for one in syncs if "scores" not in one.label] == [
        ("all-gather", rows * 256 * 2),
        ("reduce-scatter", rows * 256 * 2),
    ]
    assert block.of_experts * 2 * 2 == 8 * 3 * 256 * 128


loads = st.one_of(
    st.just("balanced"), st.builds("power-law-{}/{}".format, st.sampled_from([0.6, 1.01, 1.2, 1.9]), st.integers(0, 9))
)


@given(
    tokens=st.integers(1, 300),
    ep=st.sampled_from([1, 2, 4, 8]),
    etp=st.sampled_from([1, 2]),
    load=loads,
    shares=st.one_of(st.just(()), st.tuples(*[st.floats(0.0, 10.0)] * 8).filter(any)),
)
def test_tokens_are_conserved(tokens, ep, etp, load, shares):
    routing = Routing("balanced" if shares else load, shares)
    sizes = ExpertSizes(model=MIXTURE, tokens=tokens, ep=ep, etp=etp, routing=routing)
    everywhere = [sizes.at(place) for place in range(ep)]
    assert sum(sizes.loads) == sum(one.rows for one in everywhere) == tokens * ep * etp * 2
    assert max(sizes.loads) <= tokens * ep * etp
    assert sum(one.received * etp for one in everywhere) == pytest.approx(ep * etp * sizes.sent)
    limited = ExpertSizes(model=MIXTURE, tokens=tokens, ep=ep, etp=etp, routing=replace(routing, capacity=1.25))
    assert max(limited.loads) <= limited.limit * ep * etp
    assert sum(limited.loads) <= sum(sizes.loads)


def test_experts_of_a_capacity_are_padded_to_it():
    sizes = ExpertSizes(model=MIXTURE, tokens=100, ep=4, routing=Routing(capacity=1.5, padded=True))
    assert sizes.limit == 38  # 100 x 2 / 8 x 1.5, rounded up
    assert sizes.rows == 38 * 2 * 4
    assert sizes.sent == 38 * 8


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        (Spread(ep=16), "fewer experts than ranks(?s:.*)ep = 8"),
        (Spread(ep=3), "ep = 2 or ep = 4"),
        (Spread(etp=3), "does not divide the experts' width"),
        (Spread(routing=Routing(shares=(1.0, 2.0))), "8 numbers"),
    ],
)
def test_experts_that_cannot_be_spread_are_refused_with_what_would(spread, message):
    with pytest.raises(InputError, match=message):
        made(spread=spread)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"capacity": -1.0}, "capacity"),
        ({"padded": True}, "take any number"),
        ({"shares": (0.0, 0.0)}, "shares of experts"),
        ({"shares": (1.0,), "load": "power-law-1.2"}, "say it"),
    ],
)
def test_routings_that_make_no_sense_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        Routing(**given)


def test_what_has_no_effect_without_experts_is_refused():
    dense = replace(MIXTURE, experts=0, experts_per_token=0, expert_ffn=0, shared_experts=0, dense_layers=0)
    for spread in (Spread(ep=2), Spread(routing=Routing("power-law-1.2"))):
        with pytest.raises(InputError, match="no experts"):
            made(dense, spread=spread)


def test_tensor_parallel_ranks_do_not_send_the_same_tokens():
    with pytest.raises(InputError, match="sequence_parallel"):
        made(tp=2, spread=Spread(ep=2))


SHIPPED = {
    name: replace(model, mtp=0)  # with it: test_multi_token.py
    for name, model in shipped_transformers().items()
    if model.experts and not (model.window or model.sinks)
}


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_mixtures_on_eight_ranks(name):
    """Weights but for the padding of the vocabulary, and the arithmetic of the blocks."""
    model = SHIPPED[name]
    passes = made(model, spread=Spread(ep=8))
    total = passes.embedding.parameters + passes.head.parameters
    total -= passes.sizes.vocabulary * model.hidden if model.tied else 0
    blocks = [(passes.block, model.layers - model.dense_layers)]
    blocks += [(passes.dense, model.dense_layers)] if passes.dense is not None else []
    total += sum(count * (one.parameters + 7 * one.of_experts) for one, count in blocks)
    ends = 1 if model.tied else 2
    assert total - ends * passes.sizes.padding * model.hidden == model.parameters
    head = 3 * 2.0 * model.sequence * model.vocabulary * model.hidden
    flops = 0.0
    for one, count in blocks:
        ops = [op for op in (*one.forward, *one.backward) if isinstance(op, Op)]
        flops += count * sum(op.flops for op in ops if op.family == "gemm")
        flops += count * sum(
            op.flops / (1.25 if op.kind == "attention_backward" else 1.0) for op in ops if op.attention
        )
    assert flops == pytest.approx(step_flops(model, causal=True) - head, rel=2e-3)  # and biases
