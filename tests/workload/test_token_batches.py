"""Batches of sentences under a limit of tokens: what each may hold, what is left out, and how uneven they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.scenario import load_scenario
from simperf.workload.token_batches import Sentences, batch_spread, token_batches

FEW = Sentences(pairs=20_000)
TWO = np.array([2, 2])


@pytest.mark.parametrize("multiple", [1, 8])
def test_every_pair_is_in_one_batch_and_no_batch_exceeds_the_limit(multiple):
    first, second = FEW.draw()
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    ends = [0]
    for begin, end in token_batches(first, second, 2560, multiple=multiple):
        assert begin == ends[-1]
        longest = max(first[begin:end].max(), second[begin:end].max())
        assert (end - begin) * longest <= 2560
        assert (end - begin) % multiple == 0 or end - begin < multiple or end == len(first)
        ends.append(end)
    assert ends[-1] == len(first)


@given(
    lengths=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=80),
    tokens=st.integers(60, 400),
    multiple=st.integers(1, 12),
)
def test_no_batch_of_any_order_exceeds_the_limit_and_none_is_empty(lengths, tokens, multiple):
    first, second = np.array(lengths, dtype=np.int64).reshape(-1, 2).T
    batches = list(token_batches(first, second, tokens, multiple=multiple))
    assert [begin for begin, _ in batches] == [0, *(end for _, end in batches)][: len(batches)]
    assert sum(end - begin for begin, end in batches) == len(lengths)
    for begin, end in batches:
        assert 0 < (end - begin) * max(first[begin:end].max(), second[begin:end].max()) <= tokens


def test_sentences_of_one_length_make_equal_batches():
    alike = Sentences(spread=0.0, ratio_spread=0.0, pairs=88 * 3 + 40)
    first, second = alike.draw()
    assert set(first) == set(second) == {27}
    assert {end - begin for begin, end in token_batches(first, second, 2560)} == {88, 40}, "88 = 8 (2560 // 27 // 8)"
    sizes = [88, 88, 88, 40]
    assert batch_spread(alike, 2560) == pytest.approx(np.std(sizes) / np.mean(sizes))


def test_lengths_have_the_median_and_spread_that_they_were_given():
    first, second = Sentences(pairs=100_000).draw()
    assert np.median(first) == pytest.approx(26, abs=1.01)
    assert np.std(np.log(first)) == pytest.approx(0.55, rel=0.06), "whole numbers, with an end mark"
    assert np.std(np.log(second / first)) == pytest.approx(0.22, rel=0.06)


def test_smaller_batches_and_smaller_corpora_are_less_even():
    spreads = [batch_spread(FEW, tokens) for tokens in (2_560, 5_120, 10_240)]
    assert spreads == sorted(spreads, reverse=True)
    assert batch_spread(Sentences(pairs=200_000), 2_560) < spreads[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "variant", "tokens"),
    [
        ("dle-transformer-a100", "8 GPUs", 10_240),
        ("dle-transformer-v100", "8 GPUs", 2_560),
        ("dle-transformer-v100", "8 GPUs, mixed precision", 5_120),
    ],
)
def test_measured_scenarios_have_the_spread_of_their_sampler(name, variant, tokens):
    """A token of the source meets 75 million parameters of the big Transformer, one of the target 135 million."""
    scenario = next(one for one in load_scenario(f"measured/{name}").variants if one.name == variant)
    assert scenario.parameters["cv"] == pytest.approx(batch_spread(Sentences(), tokens, weights=(75, 135)), rel=0.01)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Sentences(median=0.0), "(?s)median.*read: 0.*1 or more"),
        (lambda: Sentences(spread=-1.0), "(?s)spread.*read: -1.*0 or more"),
        (lambda: batch_spread(FEW, 100), "batches cannot be made"),
        (lambda: batch_spread(FEW, 2560, multiple=0), "batches cannot be made"),
        (lambda: list(token_batches(TWO, TWO, 0)), "(?s)tokens.*2 or more"),
        (lambda: list(token_batches(TWO, TWO, 8, multiple=0)), "(?s)multiple.*1 or more"),
        (lambda: list(token_batches(TWO, TWO - 2, 8)), "(?s)lengths.*1 or more"),
        (lambda: list(token_batches(TWO, TWO[:1], 8)), "(?s)lengths.*each pair"),
    ],
)
def test_what_has_no_meaning_is_refused(make, match):
    with pytest.raises(InputError, match=match):
        make()
