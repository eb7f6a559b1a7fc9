"""What one of the ranks that share sequences computes: identities, and bytes by hand."""

from dataclasses import replace

import pytest

from simperf.errors import InputError
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.parallel import Spread, rank_passes
from simperf.workload.transformers.passes import Await, Sync

LLAMA = Transformer(layers=3, hidden=256, heads=8, kv_heads=4, ffn=512, vocabulary=1024, sequence=256)
LATENT = replace(LLAMA, kv_heads=0, head_dim=32, kv_rank=64, q_rank=96, rope_dim=16, value_dim=32)
MODELS = {"grouped": LLAMA, "latent": LATENT}
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", residual="fused", cross_entropy="fused")
EXCHANGES = ("ring", "all-gather", "all-to-all")
#: bytes of queries, and of keys and values, of a token on a rank that has all heads
QUERIES, KEYS = 2 * 256, 2 * 2 * 128


def made(cp, exchange="ring", model=LLAMA, **options):
    return rank_passes(model, FUSED, spread=Spread(cp=cp, context_exchange=exchange), **options)


def flops(items, kind):
    return sum(op.flops for op in items if isinstance(op, Op) and op.kind == kind)


def moved(items):
    """Collectives of ranks that share sequences, with their bytes."""
    return [(one.name, one.nbytes) for one in items if isinstance(one, Sync) and one.dimension == "cp"]


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("cp", [2, 4])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_arithmetic_of_all_ranks_is_that_of_the_model(model, cp, exchange, recompute):
    whole, part = made(1, model=model, recompute=recompute).block, made(cp, exchange, model, recompute=recompute).block
    for which in ("forward", "backward"):
        one, other = getattr(whole, which), getattr(part, which)
        for kind in ("attention", "attention_backward"):
            assert cp * flops(other, kind) == pytest.approx(flops(one, kind), rel=1e-12)
        gemms = [sum(op.flops for op in items if isinstance(op, Op) and op.family == "gemm") for items in (one, other)]
        assert cp * gemms[1] == pytest.approx(gemms[0], rel=1e-12)
    assert part.weights == whole.weights
    assert set(part.backward) == {*part.input_gradients, *part.weight_gradients}


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_one_rank_has_whole_sequences(exchange):
    assert made(1, exchange) == replace(made(1), sizes=made(1, exchange).sizes)


def test_bytes_around_the_ring():
    block, tokens = made(4).block, 256 // 4
    assert moved(block.forward) == [("send-recv", tokens * KEYS)] * 3
    back = [tokens * KEYS, 2 * tokens * KEYS, 2 * tokens * KEYS, tokens * KEYS]
    assert moved(block.backward) == [("send-recv", one) for one in back]
    labels = [one.label for one in block.forward if isinstance(one, Await)]
    assert labels == [f"ring.{number}" for number in range(3)]  # each beside a step of attention


def test_bytes_of_gathered_keys_and_values():
    block = made(4, "all-gather").block
    whole = 256 * KEYS / 2
    assert moved(block.forward) == [("all-gather", whole)] * 2
    assert moved(block.backward) == [("all-gather", whole)] * 2 + [("reduce-scatter", whole)] * 2


def test_bytes_of_tokens_for_heads():
    block, tokens = made(4, "all-to-all").block, 256 // 4
    sizes = [tokens * QUERIES, tokens * KEYS / 2, tokens * KEYS / 2]
    assert moved(block.forward) == [("all-to-all", one) for one in [*sizes, tokens * QUERIES]]
    assert moved(block.backward) == [("all-to-all", one) for one in [tokens * QUERIES, *sizes]]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_activations_are_shared(exchange):
    """The whole result of some heads is kept beside the rank's own, where tokens are exchanged for heads."""
    whole, part = made(1).block.activations, made(4, exchange).block.activations
    assert 4 * part == whole + (256 * QUERIES if exchange == "all-to-all" else 0)


@pytest.mark.parametrize(
    ("cp", "exchange", "message"),
    [
        (3, "ring", "two chunks(?s:.*)cp = 2 or cp = 4, or sequences of 252 or 258 tokens"),
        (8, "all-to-all", "cp = 4, or context_exchange"),
        (0, "ring", "1 or more"),
    ],
)
def test_ranks_that_cannot_share_sequences_are_refused_with_what_would(cp, exchange, message):
    with pytest.raises(InputError, match=message):
        made(cp, exchange)


def test_scores_in_memory_are_shared_in_no_way():
    with pytest.raises(InputError, match="flash"):
        rank_passes(LLAMA, replace(FUSED, attention="fused-softmax"), spread=Spread(cp=2))
