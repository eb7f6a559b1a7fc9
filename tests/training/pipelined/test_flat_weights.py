"""Fully sharded weights that are one tensor for each unit: memory by hand, beside gradients that are reduced once."""

import pytest

from simperf import DataExchange, Layout, ModelParallel, Transformer, train
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels

RANKS = 4
#: of a large vocabulary, so that the embedding and the head, which are one unit, decide
MODEL = Transformer(layers=2, hidden=256, heads=4, vocabulary=128_000, sequence=16, norm="rms", tied=False)
KERNELS = LayerKernels(gradients="as-weights", update="foreach")
LARGE = 2 * MODEL.vocabulary * MODEL.hidden


def memory(*, flat=True, reduce="last", precision="bf16-pure", batch=4 * RANKS):
    exchange = DataExchange(reshard="always", reduce=reduce, kept="as-products", flat=flat)
    strategy, layout = ModelParallel(exchange=exchange), Layout(dp=RANKS, sharding="zero-3")
    return Divided(Dimensions(MODEL, KERNELS, precision), layout, strategy, batch).memory()[0]


def test_gradients_of_parts_and_of_the_whole_are_there_at_a_time():
    """In bf16 alone: parts of weights and of two states, whole gradients; those of a micro-batch twice, at its end."""
    peak, each = memory().peak, MODEL.parameters
    assert peak.layer == "flat gradients"
    wanted = {
        "weights": 2 * each / RANKS,
        "optimizer": 4 * each / RANKS,
        "gradients": 2 * each,
        "unsharded weights": 2 * LARGE,
        "temporaries": 2 * 2 * LARGE,
    }
    assert {kind: peak.held[kind] for kind in wanted} == pytest.approx(wanted, rel=0.01)
    assert "master" not in peak.held


def test_a_rank_updates_with_its_part_of_gradients_that_were_reduced_once():
    end, usual = memory().moments[-1], memory(reduce="each").moments[-1]
    assert end.held["gradients"] == pytest.approx(2 * MODEL.parameters / RANKS, rel=0.01)
    assert end.held == pytest.approx(usual.held, rel=0.01)


def test_states_may_be_as_narrow_as_the_parts_of_weights():
    exchange = DataExchange(kept="as-products")
    narrow, wide = (
        train(
            MODEL,
            on="dgx-a100",
            layout=Layout(dp=8, sharding="zero-3"),
            strategy=ModelParallel(exchange=exchange),
            precision=precision,
            batch=8,
        ).metrics
        for precision in ("bf16-pure", "bf16-master")
    )
    assert narrow["memory"].value < wide["memory"].value
    assert narrow["time per step"].value < wide["time per step"].value
