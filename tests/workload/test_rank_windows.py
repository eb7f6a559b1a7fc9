"""Blocks whose attention looks back at some tokens only: arithmetic by hand, and what they are not played with."""

from dataclasses import replace

import pytest

from simperf import run
from simperf.errors import InputError
from simperf.scenario import make_scenario
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.parallel import Spread, rank_passes
from simperf.workload.tuning import Documents, Trained

PLAIN = Transformer(layers=4, hidden=256, heads=8, kv_heads=4, ffn=512, vocabulary=1024, sequence=256)
WINDOWED = replace(PLAIN, window=64, window_layers=2, sinks=True)
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", residual="fused", cross_entropy="fused")


def attention(passes):
    return sum(op.flops for op in passes.forward if isinstance(op, Op) and op.kind == "attention")


def test_a_query_of_a_window_sees_as_many_keys():
    made = rank_passes(WINDOWED, FUSED)
    n, window = 256, 64
    seen = window * (window + 1) / 2 + (n - window) * window
    assert attention(made.windowed) / attention(made.block) == pytest.approx(seen / (n**2 / 2), rel=1e-12)
    assert attention(made.block) == attention(rank_passes(PLAIN, FUSED).block)


def test_a_window_as_long_as_the_sequence_is_none():
    made = rank_passes(replace(PLAIN, window=256, window_layers=2), FUSED)
    assert attention(made.windowed) == attention(made.block)


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_a_sink_is_a_weight_of_each_head_of_a_rank(tp):
    made, plain = rank_passes(WINDOWED, FUSED, tp=tp), rank_passes(PLAIN, FUSED, tp=tp)
    assert made.block.parameters - plain.block.parameters == 8 // tp
    assert made.windowed.parameters == made.block.parameters


def test_blocks_with_a_window_are_spread_evenly():
    made = rank_passes(WINDOWED, FUSED)
    assert [made.numbered(number).name for number in range(4)] == ["window block", "block"] * 2


def test_tokens_for_heads_leave_a_window_whole():
    whole, part = (
        rank_passes(WINDOWED, FUSED),
        rank_passes(WINDOWED, FUSED, spread=Spread(cp=2, context_exchange="all-to-all")),
    )
    assert 2 * attention(part.windowed) == pytest.approx(attention(whole.windowed), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"spread": Spread(cp=2, context_exchange="ring")}, 'expected: cp = 1 or context_exchange = "all-to-all"'),
        ({"spread": Spread(cp=8, context_exchange="ring")}, 'cp = 1 or cp = 4 with context_exchange = "all-to-all"'),
        ({"spread": Spread(cp=8, context_exchange="all-to-all")}, "cp = 4$"),
        ({"spread": Spread(cp=2, context_exchange="all-gather")}, "keys that no query of a window sees"),
        ({"trained": Trained(documents=Documents(64))}, "one document a sequence"),
    ],
)
def test_what_a_window_is_not_played_with(options, said):
    with pytest.raises(InputError, match=said):
        rank_passes(WINDOWED, FUSED, **options)


def test_scores_in_memory_are_whole():
    with pytest.raises(InputError, match="whatever is masked"):
        rank_passes(WINDOWED, replace(FUSED, attention="unfused"))


@pytest.mark.parametrize("pp", [1, 2])
def test_gpt_oss_with_experts_over_ranks_is_played_the_same_with_every_rank(pp):
    model = {"layers": 4, "hidden": 256, "heads": 8, "kv_heads": 4, "vocabulary": 1024, "sequence": 256}
    experts = {"experts": 8, "experts_per_token": 2, "expert_ffn": 128, "bias": True}
    program = {"use": "train", "strategy": "model-parallel", "stack": "megatron-core", "precision": "bf16-master"}
    tables = {
        "machine": {"use": "dgx-h100"},
        "frontend": {"use": "pytorch"},
        "model": {**model, **experts, "window": 64, "window_layers": 2, "sinks": True},
        "layout": {"pp": pp, "dp": 8 // pp, "ep": 2, "sharding": "zero-1"},
        "program": {**program, "batch": 16, "steps": 1},
    }
    classes = run(make_scenario(tables))
    every = run(make_scenario({**tables, "devices": {"exact": "yes"}}))
    assert classes.time == pytest.approx(every.time, rel=1e-9)
