"""Weights that are gathered together: their sizes in FP8, whether experts are on every rank or spread."""

import pytest

from simperf.training.pipelined.weight_units import UnitBytes, weight_units
from simperf.training.pipelined.work import StepEnd
from simperf.training.strategies import DataExchange
from simperf.workload.transformers.dimensions import Weight
from simperf.workload.transformers.passes import LayerPasses

#: ten weights that are no experts', six of them multiplied in FP8, and twenty experts', all but two of them
OTHERS, EXPERTS = Weight("others", (10,)), Weight("experts", (20,))
LAYER = LayerPasses(
    "block", (), (), (), (), (), 0.0, 0.0, (OTHERS, EXPERTS), experts=(EXPERTS,), scaled=(4, 2), scaled_experts=(9, 9)
)


@pytest.mark.parametrize("apart", [False, True])
def test_what_is_multiplied_in_fp8_is_gathered_so(apart):
    """One byte for each of 6 + 18 weights, two for each of the 4 + 2 others."""
    nbytes = UnitBytes(gathered=2.0, weight=2.0, narrow=1.0)
    (unit,) = weight_units(0, [LAYER], DataExchange(), nbytes, stages=1, apart=apart)
    sizes, end = [unit.bucket, *([unit.experts] if unit.experts else [])], StepEnd(weight=2.0, narrow=1.0)
    assert [end.gathered(one) for one in sizes] == ([6 + 4 * 2, 18 + 2 * 2] if apart else [24 + 6 * 2])
    assert sum(op.nbytes_read for op in unit.spread) == 24 + 6 * 2
    assert sum(op.elements for op in unit.spread) == 30
