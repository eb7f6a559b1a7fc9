"""How far apart two layouts have to be is read off published pairs."""

import pytest

from simperf.study.layouts.ties import LAYOUTS_OFF
from tests.truth.layout_pairs import Pair, largest_excess, pairs


def test_the_constant_is_what_published_pairs_give(truth):
    found = list(pairs(truth))
    assert len(found) > 1000
    assert len({one.family for one in found}) >= 5
    assert largest_excess(found) == pytest.approx(LAYOUTS_OFF, abs=0.02)


def test_orders_that_are_further_apart_are_right_more_often(truth):
    found = list(pairs(truth))
    near, far = ([one for one in found if (one.predicted > LAYOUTS_OFF) == beyond] for beyond in (False, True))
    share = [sum(one.measured > 0 for one in some) / len(some) for some in (near, far)]
    assert share[0] < 0.8
    assert share[1] > 0.85


def test_each_source_counts_alike():
    many = [Pair("many", 0.1, 0.1)] * 98
    few = [Pair("few", 0.1, 0.0), Pair("few", 0.1, -0.1)]
    assert largest_excess([*many, *few], share=0.5) == pytest.approx(0.0)
    assert largest_excess([*many, *few], share=0.75) == pytest.approx(0.1)
    assert largest_excess([*many, *few]) == pytest.approx(0.2)
