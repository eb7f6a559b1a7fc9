"""The symbolic check must find planted defects (simperf.testing, simperf.collectives.interpret)."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.collectives import Channel, Phase, Plan, Round, make_plan
from simperf.collectives.interpret import problems_of
from simperf.testing import check_collective


def broken(plan, change, phase=0):
    """The plan with the rounds of one phase changed by ``change(index, round)``."""
    old = plan.channels[0]
    one = old.phases[phase]
    made = Phase(one.nrounds, lambda index: change(index, one.make(index)), one.style)
    phases = (*old.phases[:phase], made, *old.phases[phase + 1 :])
    return replace(plan, channels=(Channel(phases, old.nchunks, old.share), *plan.channels[1:]))


def ring(n=4):
    return make_plan("all-reduce", "ring", nranks=n)


@pytest.mark.parametrize(
    ("change", "phase", "text"),
    [
        (lambda i, r: replace(r, chunk=(r.chunk + (i == 1)) % 4), 0, "twice"),
        (lambda i, r: replace(r, reduce=False), 0, "misses"),
        (lambda i, r: replace(r, reduce=True), 1, "twice"),
        (lambda i, r: replace(r, dst=r.src), 0, "to itself"),
        (lambda i, r: replace(r, dst=r.dst + 1), 0, "none of the 4"),
        (lambda i, r: replace(r, chunk=r.chunk + 1), 0, "none of the 4"),
        (lambda i, r: replace(r, span=5), 0, "carries 5 of 4 chunks"),
        (lambda i, r: Round(r.src[1:], r.dst[1:], r.chunk[1:], reduce=True), 0, "misses"),
    ],
)
def test_defects_in_a_ring_are_found(change, phase, text):
    with pytest.raises(AssertionError, match=text):
        check_collective(broken(ring(), change, phase))


def test_sending_what_one_does_not_hold_is_found():
    plan = make_plan("all-gather", "ring", nranks=4)
    with pytest.raises(AssertionError, match="does not hold"):
        check_collective(broken(plan, lambda i, r: replace(r, chunk=(r.chunk + 1) % 4)))


def test_wrong_claims_are_found():
    assert "claims 5" in problems_of(replace(ring(), steps=5))[0]
    assert "claims 2" in problems_of(replace(ring(), sent=2.0))[0]


def test_channels_that_do_not_cover_the_payload_are_found():
    plan = ring()
    half = replace(plan, channels=(replace(plan.channels[0], share=0.5),), sent=plan.sent / 2)
    assert "add up to 0.5" in problems_of(half)[0]


def test_a_pipeline_that_relies_on_luck_is_found():
    """Rank 1 overwrites chunk 0 of rank 0 whenever it likes: right in one order only."""
    zero, one = np.array([0]), np.array([1])
    rounds = [Round(one, zero, zero, reduce=True), Round(zero, one, zero), Round(np.array([2]), zero, zero)]
    plan = Plan("reduce", "lucky", 3, (Channel((Phase(3, rounds.__getitem__, "pipeline"),), 1),), 2, 1.0)
    assert any(problems_of(plan, seed=seed) for seed in range(3))


def test_an_algorithm_that_refuses_everything_is_no_success():
    with pytest.raises(AssertionError, match="refuses every"):
        check_collective("reduce-scatter/halving-doubling", ns=[3, 5])
