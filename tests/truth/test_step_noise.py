"""Percentiles of logged steps, and those of steps that are drawn with noise."""

import pytest

from simperf.accuracy.large_stacks import profile_of
from tests.accuracy.test_large_cases import CASE, read
from tests.truth.kernel_noise import deviations
from tests.truth.large_models import main
from tests.truth.step_noise import (
    PERCENTS,
    NoiseDistribution,
    drawn_ratios,
    measured_ratios,
    noise_distributions,
)

LOGGED = {**CASE["measured"], "step_p10": 1.9, "step_p50": 2.0, "step_p90": 2.1, "step_p99": 2.5, "step_max": 3.0}


def case(tmp_path, **tables):
    (one,), left = read(tmp_path, {**CASE, "measured": LOGGED, **tables})
    assert not left
    return one


def test_logged_percentiles_are_ratios_to_the_median(tmp_path):
    assert measured_ratios(case(tmp_path)) == {10: 0.95, 90: 1.05, 99: 1.25}
    (plain,), _ = read(tmp_path, CASE)
    assert measured_ratios(plain) == {}


def test_other_gpus_in_every_step_make_steps_differ_and_the_same_ones_do_not(tmp_path):
    one = case(tmp_path)
    assert not profile_of(one)
    found = {noise.name: drawn_ratios(one, noise, draws=48) for noise in noise_distributions()}
    for ratios in found.values():
        assert tuple(ratios) == PERCENTS
        assert ratios[10] <= 1.0 <= ratios[90] <= ratios[99]
    same, other = (found[name] for name in ("the same GPUs in every step", "other GPUs in every step"))
    assert same[99] - same[10] < 0.002
    assert 0.005 < other[99] - other[10] < 0.03
    still = NoiseDistribution("speeds that stay", {"variation": 0.015}, {})
    assert drawn_ratios(one, still) == {percent: pytest.approx(1.0, abs=1e-12) for percent in PERCENTS}


def test_every_value_of_a_law_has_a_source():
    for noise in noise_distributions():
        assert set(noise.program) == set(noise.source)


def test_kernels_that_vary_are_told_apart_by_their_shape_and_beside_no_collective():
    def kernel(name, begin, time, grid=1):
        return {"ph": "X", "cat": "kernel", "name": name, "ts": begin, "dur": time, "args": {"grid": [grid]}}

    events = [kernel("matmul", 1000 * n, 90 + 20 * (n % 2)) for n in range(8)]
    events += [kernel("matmul", 1000 * n + 500, 400, grid=2) for n in range(8)]
    events += [kernel("matmul", 20000, 900), kernel("ncclKernel", 20100, 10)]
    assert sorted(deviations(events).values()) == [0.0, pytest.approx(0.1)]


def test_the_command_tells_each_law_and_what_is_left_out(tmp_path, capsys):
    case(tmp_path, hardware={**CASE["hardware"], "inter": ""})
    assert main(["--cases", str(tmp_path), "--percentiles"]) == 0
    told = capsys.readouterr().out
    assert "left out: new_family: machine: the network between servers is not printed (1 cases)" in told
