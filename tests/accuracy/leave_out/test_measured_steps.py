"""Measured steps: what is taken away to be predicted, and what their kernels take, as predicted and as drawn."""

import math

import numpy as np
import pytest

from simperf.accuracy.leave_out.measured_steps import measured_steps
from simperf.cost import Miss, Unseen
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.training.replica import training_step
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.zoo import load

MISSES = {"product": Miss(0.4, 0.2), "rows": Miss(0.3, 0.1), "stream": Miss(0.15, 0.05)}


@pytest.fixture(scope="module")
def step():
    """ResNet-50 in TF32 on one RTX 3090."""
    (found,) = measured_steps(["lambda-rtx3090-resnet50"])
    return found


def test_one_gpu_without_what_it_was_told(step):
    assert (step.part.name, step.model, step.precision, step.sort) == ("rtx-3090", "resnet50", "tf32", "tf32")
    assert step.scenario.parameters["gpus"] == 1
    assert step.scenario.parameters["alone"] == 0.0
    assert step.measured > 0.0
    assert math.exp(-step.missed) * step.measured == pytest.approx(step.measured, rel=0.5)


def test_kernels_are_those_of_the_step_that_is_trained(step):
    m = Session(Simulation(step.scenario.machine))
    batch = step.scenario.parameters["batch_per_gpu"]
    kernels = LayerKernels(memory_format=step.scenario.parameters["memory_format"])
    model, optimizer = load("resnet50", kernels), step.scenario.parameters["optimizer"]
    played = training_step(m, model, m.gpu(), batch=batch, precision="tf32", optimizer=optimizer)
    assert step.kernels({}) == pytest.approx(played.compute_time, rel=1e-9)
    assert step.kernels({"conv": 0.35, "gemm": 0.35}) > 1.1 * step.kernels({}), "windows of 3 x 3 keep their rate"


def test_a_micro_batch_has_its_part_of_the_update():
    step = next(measured_steps(["dle-bert-pretraining-512-v100"]))
    turns = step.scenario.parameters["accumulate"]
    assert turns > 1
    m = Session(Simulation(step.scenario.machine))
    batch = step.scenario.parameters["batch_per_gpu"] // turns
    kernels = LayerKernels(attention=step.scenario.parameters["attention_kernels"])
    played = training_step(m, load(step.model, kernels), m.gpu(), batch=batch, precision="fp32")
    update = sum(kernel.time for kernel in played.update)
    assert step.kernels({}) == pytest.approx(played.compute_time - update * (1 - 1 / turns), rel=1e-9)


def test_drawn_kernels_are_those_of_a_run_but_for_what_each_shape_has(step):
    draws = [Unseen(draw=index, misses=MISSES, alike=0.1) for index in range(20)]
    drawn = step.drawn({}, draws)
    exact = [math.log(step.kernels({}, one) / step.kernels({})) for one in draws]
    assert np.abs(drawn - exact).max() < 0.12
    assert np.corrcoef(drawn, exact)[0, 1] > 0.95
    shared = {sort: Miss(miss.common, 0.0) for sort, miss in MISSES.items()}
    plain = [Unseen(draw=index, misses=shared, alike=0.1) for index in range(20)]
    assert step.drawn({}, plain) == pytest.approx([math.log(step.kernels({}, one) / step.kernels({})) for one in plain])


def test_nothing_is_measured_twice():
    steps = list(measured_steps(["lambda-h100-resnet50", "lambda-h100-resnet50", "dle-pytorch-v100"]))
    names = [step.name for step in steps]
    assert len(set(names)) == len(names) == 3


def test_steps_that_scenarios_of_one_gpu_quote_are_there_where_they_are_asked_for():
    assert list(measured_steps(["timm-rtx3090", "mxnet-k80"])) == []
    steps = list(measured_steps(["timm-rtx3090", "mxnet-k80"], quoted=True))
    assert len(steps) == 20
    assert {(step.part.name, step.measured) for step in steps} >= {("rtx-3090", 826.06), ("k80", 49.48)}
    assert not any(step.scenario.parameters["alone"] for step in steps)
    both = list(measured_steps(["dle-pytorch-v100"], quoted=True))
    assert [step.name for step in both] == [step.name for step in measured_steps(["dle-pytorch-v100"])]
