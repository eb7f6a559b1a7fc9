"""What calls of the host cost in a whole step on a GPU, from the step that ``frontend/mixed`` runs."""

import pytest

from simperf.execution.calls import call_time, riding, update_time
from simperf.hardware import FrontendPart
from simperf.hardware.measured import frontend_fields

#: an operation alone, and in a step [s]
LAUNCH, FORWARD, BACKWARD, UPDATE = 8e-6, 45e-6, 57e-6, 180e-6
MODELS = {
    "frontend.launch": {"launch": LAUNCH},
    "call.conv2d.plain": {"plain": 2 * LAUNCH},
    "call.relu.plain": {"plain": LAUNCH},
    "call.relu.forward": {"forward": 1.5 * LAUNCH},
    "call.relu.backward": {"backward": 2 * LAUNCH},
    "update.sgd": {"alpha": 50e-6, "beta": 1e-6},
    "update.adamw": {"alpha": 100e-6, "beta": 10e-6},
}
STEP = {
    "call.step.forward": {"forward": FORWARD},
    "call.step.backward": {"backward": BACKWARD},
    "call.step.update": {"update": UPDATE},
}


#: more calls that are measured alone, no two alike
KINDS = [
    "batchnorm",
    "max_pool2d",
    "gelu",
    "linear",
    "layernorm",
    "dropout",
    "cross_entropy",
    "mm",
    "sum",
    "zeros",
    "add",
]
ALONE = {f"call.{kind}.plain": {"plain": (1.1 + 0.17 * i) * LAUNCH} for i, kind in enumerate(KINDS)}


def test_the_step_that_was_measured_takes_what_it_took():
    pytest.importorskip("torch", reason="the step is traced with torch, which is not installed")
    from simperf.calibrate.measure.mixed import layers
    from simperf.workload.trace.tracer import trace_model

    calls = frontend_fields({**MODELS, **ALONE, **STEP})["calls"]
    part = FrontendPart(name="mine", title="", sources={}, launch=LAUNCH, calls=calls)
    step = trace_model(layers, "4x2x8x8", loss="cross-entropy", optimizer="sgd").at(1, "fp32", optimizer="sgd")
    for passed, measured in (("forward", FORWARD), ("backward", BACKWARD)):
        ops = getattr(step, passed)
        taken = sum(call_time(part, op.kind, passed) for op, rides in zip(ops, riding(ops), strict=True) if not rides)
        assert taken == pytest.approx(15 * measured)
    assert update_time(part, "sgd", tensors=12, kernels=1) == pytest.approx(UPDATE)
    longer = UPDATE / (50e-6 + 12 * 1e-6)
    assert update_time(part, "adamw", tensors=10, kernels=1) == pytest.approx(longer * 200e-6)


def test_without_that_step_calls_take_what_they_take_alone():
    calls = frontend_fields(MODELS)["calls"]
    assert calls["pass:forward"] == pytest.approx(0.5)
    assert calls["pass:backward"] == pytest.approx(1.0)
    assert calls["update:sgd"] == pytest.approx(50 / 8)
