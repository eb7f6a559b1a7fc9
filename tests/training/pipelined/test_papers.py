"""Schedules against the tables of their papers, played and walked through: the bubble, and activations."""

import pytest

from simperf.layout import Layout
from simperf.memory import allocated
from simperf.training.pipelined.division import divide
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.replica import Dimensions
from simperf.training.strategies import ModelParallel
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer
from tests.training.pipelined.small import last_step, played, work

P, M = 4, 12
#: idle time of a stage in passes of a whole stage, F, B and W as long as each other: (p - 1) 3 of 1F1B, and
#: what is left of it; ICLR 2024, table 2, and NeurIPS 2024, table 1
IDLE = {
    "gpipe": 3.0 * (P - 1),
    "1f1b": 3.0 * (P - 1),
    "interleaved": 3.0 * (P - 1) / 2,
    "zb-h1": 1.0 * (P - 1),
    "v-min": 2.0 * (P - 1),
    "v-half": 1.5 * (P - 1),
    "zb-v": 0.0,
}
#: passes of a chunk that the turns of a V may take more or less
TURN = {"v-min": 3, "v-half": 1}
#: activations that a stage keeps at most, in those of all layers of all stages
KEPT = {
    "gpipe": M / P,
    "1f1b": 1.0,
    "interleaved": 1.0 + (P - 1) / (2 * P),
    "zb-h1": 1.0,
    "v-min": 1 / 3,
    "v-half": 1 / 2,
    "zb-v": 1.0,
}


@pytest.mark.parametrize("schedule", sorted(IDLE))
def test_idle_time_of_a_step_is_that_of_the_paper(schedule):
    chunks = {"chunks": 2} if schedule == "interleaved" else {}
    of = work(P, M, schedule, time=1.0, nbytes=0.0, message=0.0, ends=False, **chunks)
    _, processes = played("dgx-a100-x4", of, pp=P)
    readings = [last_step(one) for one in processes]
    (work_of_a_stage,) = {round(after.kernels - before.kernels, 6) for before, after in readings}
    unit = work_of_a_stage / (3 * M)  # a pass over a whole stage
    waited = max(after.waiting - before.waiting for before, after in readings)
    assert waited / unit == pytest.approx(IDLE[schedule], abs=TURN.get(schedule, 0) / of.plan.chunks + 1e-3)


MODEL = Transformer(layers=2 * P, hidden=2048, heads=16, ffn=8192, vocabulary=128, sequence=2048)
FUSED = LayerKernels(norm="fused", rotary="fused", activation="fused", gradients="fp32", gradient_accumulation="fused")


@pytest.mark.parametrize("schedule", sorted(KEPT))
def test_activations_are_those_of_the_paper(schedule):
    """Of real layers, with what B leaves for W; the turns of a V keep up to three chunks more."""
    strategy = ModelParallel(schedule=schedule, chunks=2 if schedule == "interleaved" else 1)
    job = Divided(Dimensions(MODEL, FUSED), Layout(pp=P), strategy, M)
    parts = divide(job.model, job.layout, strategy, M).parts
    (block,) = {layer for part in parts for layer in part if layer.name == "block"}
    whole = MODEL.layers * sum(allocated(one.nbytes) for one in block.kept)
    stages = job.memory()
    found = max(one.held["activations"] for stage in stages[:-1] for one in stage.moments if one.name != "update")
    turns = 3 / (2 * P) if schedule in ("v-min", "v-half") else 0.0
    assert KEPT[schedule] <= found / whole <= 1.05 * (KEPT[schedule] + turns)  # with the embedding


def test_gradients_of_weights_need_less_than_is_kept():
    """ZB-H1 delays them within the memory of 1F1B, on every stage."""
    layers = Dimensions(MODEL, FUSED)
    peaks = {
        name: [one.peak.total for one in Divided(layers, Layout(pp=P), ModelParallel(schedule=name), M).memory()]
        for name in ("1f1b", "zb-h1")
    }
    assert peaks["zb-h1"][0] <= 1.02 * peaks["1f1b"][0]
    assert max(peaks["zb-h1"]) <= 1.05 * max(peaks["1f1b"])
