"""Products on several streams in turn: as long as one product of several batches, over their number."""

from dataclasses import replace

import pytest

from simperf.cost.roofline import Roofline
from simperf.hardware import Catalog
from simperf.workload.kinds.dense import bmm, matmul


@pytest.mark.parametrize("gpu", ["a100-sxm4-80gb", "h100-sxm5-80gb", "v100-sxm2-16gb"])
@pytest.mark.parametrize("shape", [(256, 6144, 12288), (256, 12288, 1536)])
def test_parts_in_turn_take_the_time_of_one_batched_product(gpu, shape):
    m, n, k = shape
    model = Roofline(Catalog.load().gpu(gpu))
    alone, whole = matmul(m, n, k=k, dtype="fp16"), bmm(8, m, n=n, k=k, dtype="fp16")
    turns = replace(alone, turns=8)
    kept = (
        0.0 if model.units(alone) else model.overhead * 7 / 8
    )  # a call's own time stays without matrix units' constants
    assert model.cost(turns).time - kept == pytest.approx(model.cost(whole).time / 8, rel=1e-12)
    assert model.cost(turns).time <= model.cost(alone).time * (1 + 1e-12)
    assert model.cost(replace(alone, turns=1)) == model.cost(alone)


def test_a_last_wave_that_is_nearly_empty_is_filled():
    """109 tiles on 108 multiprocessors would take two waves each."""
    model = Roofline(Catalog.load().gpu("a100-sxm4-80gb"))
    part = matmul(256, 128 * 55, k=4096, dtype="bf16")
    assert model.cost(replace(part, turns=8)).time < 0.9 * model.cost(part).time
