"""Fields of parts that follow from fitted constants."""

from __future__ import annotations

import pytest

from simperf.hardware.measured import device_fields, frontend_fields

MODELS = {
    "frontend.launch": {"launch": 4e-6},
    "frontend.depth": {"depth": 1022.6},
    "kernel.elementwise-fp32": {"overhead": 2e-6, "rate": 1e12},
    "wait.round": {"round": 15e-6},
    "graph.replay": {"alpha": 9e-6, "beta": 1.5e-6},
    "graph.replay-host": {"alpha": 6e-6, "beta": 1e-8},
    "call.relu.plain": {"plain": 5e-6},
    "call.relu.forward": {"forward": 6e-6},
    "call.module.forward": {"forward": 8e-6},
    "call.relu.backward": {"backward": 4e-6},
    "update.sgd": {"alpha": 20e-6, "beta": 1e-6},
}


def test_a_frontend_is_put_together_from_what_was_measured():
    found = frontend_fields(MODELS)
    assert (found["launch"], found["depth"]) == (4e-6, 1023.0)
    assert found["synchronize"] == pytest.approx(15e-6 - 4e-6 - 2e-6, rel=1e-3)
    assert found["graph_launch"] == 6e-6
    assert found["graph_node"] == 1e-8
    assert found["graph_gap"] == pytest.approx(1.5e-6 - 2e-6 - 8192 / 1e12)
    assert found["in_step"] == 1.0, "calls are measured in a step"
    assert found["calls"]["relu"] == pytest.approx(1.25)
    assert found["calls"]["pass:forward"] == pytest.approx(0.75), "a layer is called as a module"
    assert found["calls"]["pass:backward"] == pytest.approx(-0.25)
    assert found["calls"]["update:sgd:tensor"] == pytest.approx(0.25)


def test_a_profile_that_measured_no_pass_leaves_what_a_step_adds_to_the_catalogue():
    models = {name: values for name, values in MODELS.items() if not name.startswith("call.")}
    assert not any(name.startswith("pass:") for name in frontend_fields(models)["calls"])
    assert "in_step" not in frontend_fields(models)


def test_calls_of_a_cpu_stay_what_they_were():
    """Where no launch was measured, an operation is costed with its call, and nothing of it is the frontend's."""
    models = {name: values for name, values in MODELS.items() if not name.startswith(("frontend", "graph"))}
    models["kernel.elementwise-fp32"] = {"overhead": 2e-6, "memory": 1e10}
    assert frontend_fields(models) == {}


def test_a_device_is_slowed_by_copies_and_never_sped_up():
    found = device_fields(
        {"streams": {"held": 0.4, "limit": 16.0}, "overlap.memory": {"copy": 1.2, "kernel": 0.98}, "overlap.gemm": {}}
    )
    assert (found["block_share"], found["side_by_side"]) == (0.4, 16.0)
    assert found["beside"] == {"copy.memory": 1.2, "kernel.memory": 1.0}
    assert device_fields({}) == {}
