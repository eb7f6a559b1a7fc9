"""Attention by shape on tables and figures that no constant was chosen with."""

import numpy as np
import pytest

from simperf.accuracy.shape_tables import read_shape_tables
from simperf.errors import InputError
from tests.truth.attention_shapes import (
    GOALS,
    PREFILL,
    constants_of,
    elsewhere_calls,
    errors_of,
    figure_calls,
    fit,
    prefill_calls,
)

#: a GPU that is no data-centre GPU: shown, without a goal
SHOWN = "l40s"


def median(errors):
    return float(np.median(np.abs(errors)))


def prefill(truth):
    try:
        tables = read_shape_tables(truth, "attention_prefill")
    except InputError:
        pytest.skip("the measured data has no tables by shape")
    return [prefill_calls(table) for table in tables if table.gpu]


def test_prefill_of_a_gpu_whose_other_shapes_were_fitted(truth):
    for calls in prefill(truth):
        if calls.gpu == SHOWN:
            continue
        rest = calls.where(~calls.fitted)
        assert len(rest.time) > 0.4 * len(calls.time)
        assert median(errors_of(rest, constants_of(calls.gpu, "tensorrt-llm"))) < GOALS[0], calls.gpu


def test_prefill_of_a_gpu_that_was_left_out(truth):
    every = prefill(truth)
    for calls in every:
        if calls.gpu != SHOWN:
            others = fit([one for one in every if one is not calls], PREFILL)
            assert median(errors_of(calls, others)) < GOALS[1], calls.gpu


def test_flash_attention_of_published_figures():
    for library, bound in (("flash-attention", 0.03), ("flash-attention-2", 0.05)):
        calls = figure_calls(library, "h100-sxm5-80gb")
        assert median(errors_of(calls.where(~calls.fitted), constants_of(calls.gpu, library))) < bound


def test_flash_attention_of_gpus_that_no_constant_was_chosen_with():
    found = {label: median(errors_of(calls, constants)) for label, (calls, constants) in elsewhere_calls().items()}
    assert found["H20: flash-attention"] < 0.15
    assert found["RTX A5000: flash-attention"] < 0.10
    assert found["H20: flash-attention-2"] < 0.45, "its matrix instructions are no share of a peak that is capped"


def test_a_fit_finds_the_constants_that_calls_were_made_with():
    calls = figure_calls("flash-attention", "h100-sxm5-80gb")
    known = constants_of("h100-sxm5-80gb", "flash-attention")
    object.__setattr__(calls, "time", calls.predicted(known))
    found = fit([calls], ("matrix", "backward-matrix"), known)
    assert found == pytest.approx({name: known[name] for name in found}, rel=0.02)
