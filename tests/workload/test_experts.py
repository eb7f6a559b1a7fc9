"""Loads of experts, and the layer of one rank (simperf.workload.expert_loads, simperf.workload.kinds.experts)."""

import numpy as np
import pytest

from simperf.errors import InputError
from simperf.workload import make_op
from simperf.workload.expert_loads import EXPERT_PRECISIONS, expert_loads, rank_rows
from simperf.workload.kinds import matmul, moe

LOADS = ("balanced", "power-law-1.01", "power-law-1.2", "power-law-1.2/4", "power-law-1")
SIZES = [
    (1, 8, 2, 4),
    (3, 128, 6, 8),
    (48, 256, 8, 16),
    (100, 6, 4, 3),
    (4096, 160, 8, 32),
    (16384, 8, 2, 1),
    (5, 16, 1, 16),
]


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(("tokens", "experts", "top_k", "ranks"), SIZES)
def test_all_tokens_reach_as_many_experts_as_they_choose(tokens, experts, top_k, ranks, load):
    rows = expert_loads(tokens, experts, top_k, ranks=ranks, load=load)
    assert rows.shape == (experts,)
    assert rows.sum() == tokens * top_k
    # a token goes to an expert once at most
    assert rows.min() >= 0
    assert rows.max() <= tokens
    # the rank whose time is asked for has the most
    assert rows.reshape(ranks, -1).sum(axis=1).argmax() == 0 or load == "balanced"


@pytest.mark.parametrize(("tokens", "experts", "top_k", "ranks"), SIZES)
def test_balanced_experts_differ_by_what_one_round_gives(tokens, experts, top_k, ranks):
    rows = expert_loads(tokens, experts, top_k, ranks=ranks)
    mean = tokens * top_k / experts
    assert abs(rows - mean).max() <= max(1, top_k)
    assert len(set(expert_loads(experts * 3, experts, top_k).tolist())) == 1


def test_a_draw_is_the_same_every_time_and_another_one_is_not():
    first = expert_loads(1000, 64, 8, load="power-law-1.2/1")
    assert (first == expert_loads(1000, 64, 8, load="power-law-1.2/1")).all()
    assert (first != expert_loads(1000, 64, 8, load="power-law-1.2/2")).any()
    assert first.std() > 5 * expert_loads(1000, 64, 8).std()


def test_the_fullest_rank_has_more_by_a_power_law():
    even, uneven = (
        sum(row * count for row, count in rank_rows(4096, 128, 8, ranks=8, load=load))
        for load in ("balanced", "power-law-1.2")
    )
    assert even == 4096
    assert uneven > 1.2 * even


def test_flops_and_bytes_of_a_rank_by_hand():
    # 64 tokens to 2 of 8 experts: 16 rows each, and a rank has 4 experts of half the width
    op = moe(64, 32, intermediate=48, experts=8, top_k=2, tensor_parallel=2, expert_parallel=2)
    assert op.experts.rows == ((16, 4),)
    assert op.flops == 2 * 64 * 32 * 24 * 3
    assert op.nbytes_read == 2 * (4 * 3 * 32 * 24 + 64 * 32 + 64 * 8)
    assert op.nbytes_written == op.holds == 2 * 64 * 32


def test_only_experts_with_rows_are_read():
    one, many = (moe(tokens, 64, intermediate=64, experts=256, top_k=8) for tokens in (1, 4096))
    assert (one.experts.active, many.experts.active) == (8, 256)
    assert many.experts.weights == 32 * one.experts.weights


def test_one_expert_for_all_is_two_plain_products():
    op = moe(512, 256, intermediate=1024, experts=1, top_k=1, gated=False)
    assert op.flops == matmul(512, 1024, k=256).flops + matmul(512, 256, k=1024).flops


@pytest.mark.parametrize("precision", EXPERT_PRECISIONS)
def test_the_experts_of_all_ranks_are_those_of_one(precision):
    whole = moe(4096, 256, intermediate=512, experts=64, top_k=8, dtype=precision)
    part = moe(4096, 256, intermediate=512, experts=64, top_k=8, expert_parallel=8, tensor_parallel=2, dtype=precision)
    assert whole.flops == 16 * part.flops
    assert whole.experts.weights == 16 * part.experts.weights


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"load": "even"}, "no load of experts"),
        ({"load": "power-law-x"}, "no load of experts"),
        ({"load": "power-law--1"}, "no load of experts"),
        ({"top_k": 9}, "more than the 8 experts"),
        ({"expert_parallel": 3}, "must divide the 8 experts"),
        ({"tensor_parallel": 7}, "must divide the experts' width"),
        ({"dtype": "int3"}, "no precision of experts"),
        ({"tokens": 0}, "must be a whole number"),
    ],
)
def test_what_cannot_be_is_refused_with_its_key(change, said):
    spec = {"op": "moe", "tokens": 16, "hidden": 64, "intermediate": 64, "experts": 8, "top_k": 2} | change
    with pytest.raises(InputError, match=said) as caught:
        make_op(spec)
    assert caught.value.problems[0].key == next(iter(change))


def test_loads_do_not_depend_on_numpys_global_state():
    np.random.seed(1)
    first = expert_loads(777, 32, 4, load="power-law-1.2/9").tolist()
    np.random.seed(2)
    assert expert_loads(777, 32, 4, load="power-law-1.2/9").tolist() == first
