"""Inputs that leave nothing to do: every program gives finite numbers, or an error that says what is expected."""

import math
from typing import Annotated, get_args, get_origin

import pytest

from simperf.errors import InputError, SimperfError
from simperf.programs import PROGRAMS
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.training.data.heterogeneous import proportional_split
from simperf.training.step import even_step
from simperf.units import Unit


def _zeros(name):
    """Parameters of a program, each with a zero in its unit."""
    found = {}
    for key, parameter in PROGRAMS[name].parameters.items():
        kind = parameter.annotation
        unit = None
        if get_origin(kind) is Annotated:
            unit = next((item for item in get_args(kind)[1:] if isinstance(item, Unit)), None)
            kind = get_args(kind)[0]
        if unit is not None and unit.dimension in ("s", "B"):
            found[key] = f"0 {unit.dimension}"
        elif kind in (int, float) and (unit is None or unit.dimension == "1"):
            found[key] = 0
    return found


def _check(name, **parameters):
    """A program that ends reports finite numbers; one that does not raises an error of simperf's."""
    scenario = {"machine": {"use": "pcie-4gpu"}, "program": {"use": name, **parameters}}
    try:
        result = run(make_scenario(scenario), record=False)
    except SimperfError:
        return
    wrong = {key: metric.value for key, metric in result.metrics.items() if not math.isfinite(metric.value)}
    assert not wrong, (name, parameters)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_zeros_end_in_finite_numbers_or_in_an_error(name):
    zeros = _zeros(name)
    for key, value in zeros.items():
        _check(name, **{key: value})
    used = {key: value for key, value in zeros.items() if value != 0 and PROGRAMS[name].parameters[key].default}
    for unit in ("s", "B", ""):
        _check(name, **{key: value for key, value in used.items() if value.endswith(unit)})


@pytest.mark.parametrize("strategy", ["ddp", "data-parallel", "naive", "local-sgd"])
@pytest.mark.parametrize("weights", ["0 B", "100 MB"])
@pytest.mark.parametrize("gpus", [1, 4])
def test_layers_that_take_no_time_can_be_trained(strategy, weights, gpus):
    nothing = {"forward": "0 s", "backward": "0 s", "weights": weights, "gpus": gpus, "dataset": 1024}
    scenario = {"machine": {"use": "pcie-4gpu"}, "program": {"use": "train", "strategy": strategy, **nothing}}
    result = run(make_scenario(scenario), record=False)
    assert "scaling efficiency" not in result.metrics, "one device by itself takes no time"
    together = gpus > 1  # then messages take their latency, of no bytes too
    assert (result.time > 0) == together
    assert ("samples per second" in result.metrics) == together
    assert any("takes no time" in note for note in result.notes) == together


def test_what_has_no_meaning_is_told_by_its_key():
    with pytest.raises(InputError, match="sizes"):
        even_step(2, forward=1.0, backward=1.0, nbytes=1.0, sizes=[0.0, 0.0])
    with pytest.raises(InputError, match="sizes"):
        even_step(2, forward=1.0, backward=1.0, nbytes=1.0, sizes=[-1.0, 2.0])
    assert proportional_split(10, [lambda b: 0.0] * 4) == [3, 3, 2, 2]
    base = {"machine": {"use": "pcie-4gpu"}}
    for wrong, key in (
        ({"forward": "0 s", "backward": "0 s", "alone": "100 1/s"}, "alone"),
        ({"batch": 3, "split": "proportional"}, "batch"),
    ):
        with pytest.raises(InputError, match=f"^.*{key}:"):
            run(make_scenario({**base, "program": {"use": "train", **wrong}}), record=False)
