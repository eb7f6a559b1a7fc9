"""Figures that the shipped scenarios quote are those of the published data, and no case of training is forgotten."""

from pathlib import Path

import pytest

from simperf.scenario import load_scenario, shipped_scenarios
from simperf.scenario.expectation import Expectation
from simperf.units import parse

#: cases of training that no scenario stands for; docs/validation/data-parallelism.md says why
LEFT_OUT = {
    "alcf-resnet50-tcp-vs-ofi",
    "mxnet-train-bs-m60",
    "mxnet-infer-bs-v100-fp32",
    "neusight-e2e-a100-pcie-40gb",
    "neusight-e2e-a100-pcie-80gb",
    "neusight-e2e-l4",
    "neusight-e2e-p100-pcie",
    "neusight-e2e-p4",
}
TRAINING = ("scaling", "ps", "single_gpu_training", "batch_curve")
MEASURED = [name for name in shipped_scenarios() if name.startswith("measured/")]


def numbers(value):
    """All numbers of a case's measurements, however deep."""
    if isinstance(value, dict):
        return {n for each in value.values() for n in numbers(each)}
    if isinstance(value, list):
        return {n for each in value for n in numbers(each)}
    if isinstance(value, str):
        return {
            float(word)
            for word in value.replace(",", "").replace("~", " ").replace("(", " ").replace(")", " ").split()
            if word.replace(".", "", 1).isdigit()
        }
    return {float(value)} if isinstance(value, int | float) and not isinstance(value, bool) else set()


def quoted(one: Expectation):
    """Values of a measurement in the units in which they may stand in the data."""
    for text in (one.value, one.low, one.high):
        if text is None:
            continue
        if isinstance(text, int | float):
            yield {float(text)}
            continue
        if text.endswith("%"):
            yield {100 * parse(text, "1")}
            continue
        scales = {"s": (1, 1e3, 1e6), "B/s": (1e-9,), "1/s": (1,)}
        dimension = next((unit for unit in ("B/s", "1/s") if text.endswith(unit)), "s")
        yield {parse(text, dimension) * scale for scale in scales[dimension]}


@pytest.mark.truth
@pytest.mark.parametrize("name", MEASURED)
def test_quoted_figures_stand_in_the_data(cases, name):
    scenario = load_scenario(name)
    known = numbers(cases[scenario.case]["measured"]) | {1100.0}  # the case says ~1000 (1024); 1100 ends the range
    for variant in scenario.variants or (scenario,):
        for one in variant.measurements:
            relative = one.key == "metrics.time relative to dense"  # in per cent, to six digits
            wanted = {100 * a / b for a in known for b in known if 0 < a < b} if relative else known
            rtol = 1e-5 if relative else 1e-9
            for values in quoted(one):
                assert any(abs(v - k) <= rtol * abs(k) for v in values for k in wanted), (variant.name, one.key, values)


@pytest.mark.truth
def test_every_case_of_training_is_set_up_or_left_out_for_a_reason(cases):
    wanted = {name for name, case in cases.items() if case["kind"] in TRAINING and case["evidence"] == "measured"}
    there = {load_scenario(name).case for name in shipped_scenarios() if name.startswith(("measured/", "training/"))}
    assert wanted >= LEFT_OUT
    assert not LEFT_OUT & there
    assert wanted <= there | LEFT_OUT


def test_the_docs_name_every_case_that_is_left_out():
    page = (Path(__file__).parents[2] / "docs" / "validation" / "data-parallelism.md").read_text("utf-8")
    assert not [name for name in LEFT_OUT if f"`{name}`" not in page]
