"""Constants of a scenario's own: a run with one has no interval and says which it is; data sheets are no such."""

import pytest

from simperf.hardware import Catalog
from simperf.run import run
from simperf.scenario import load_scenario, make_scenario, shipped_scenarios
from simperf.scenario.own_constants import estimated_architecture, own_constants, own_gpu_constants

MACHINE = {"use": "p3-16xlarge"}
PROGRAM = {"use": "train", "model": "resnet18", "batch_per_gpu": 32, "gpus": 2, "steps": 2}
GPU = """
kind = "gpu"
title = "A GPU of one's own"
architecture = "volta"
memory_bandwidth = "1200 GB/s"
memory_capacity = "16 GiB"
l2 = "6 MiB"
sms = 84
nvlinks = 6
[peak]
fp32 = "18 TFLOP/s"
{more}
[source]
default = "its data sheet"
efficiency = "a guess"
"""
SERVER = """
kind = "server"
title = "One of them"
[[node]]
id = "gpu0"
gpu = "mine"
[[node]]
id = "cpu0"
cpu = "xeon-8168"
[[link]]
a = "gpu0"
b = "cpu0"
part = "pcie3-x16"
[source]
default = "none"
"""
PACE = """
format = 1
kind = "stack"
title = "One's own"
base = "megatron-core"
[[pace]]
architecture = "ampere"
share = 0.8
source = "a guess"
"""


def scenario(**tables):
    return make_scenario({"machine": MACHINE, "program": PROGRAM, **tables})


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({}, ""),
        ({"frontend": {"use": "pytorch"}}, ""),
        ({"frontend": {"use": "pytorch", "launch": "3 us"}}, "launch of a frontend of its own"),
        ({"cost": {"efficiency": {"gemm": 0.5}}}, "efficiencies that the scenario states"),
        ({"cost": {"corner": "sharp"}}, "the roofline of textbooks"),
    ],
)
def test_what_stands_for_the_catalogue_is_told(tables, told):
    assert own_constants(scenario(**tables)) == told


def test_a_run_with_a_launch_of_its_own_has_no_interval_and_says_so():
    assert run(scenario(frontend={"use": "pytorch"}), record=False).intervals
    found = run(scenario(frontend={"use": "pytorch", "launch": "3 us"}), record=False)
    assert not found.intervals
    assert "not with launch of a frontend of its own" in found.no_interval


@pytest.mark.parametrize(
    ("more", "told"), [("", ""), ("[efficiency]\ngemm = 0.99", "efficiency of mine"), ("[efficiency]\ngemm = 0.8", "")]
)
def test_a_gpu_by_its_data_sheet_has_an_interval_and_one_with_an_efficiency_of_its_own_has_none(tmp_path, more, told):
    text = GPU.format(more=more)
    (tmp_path / "mine.toml").write_text(text if more else text.replace('efficiency = "a guess"\n', ""))
    (tmp_path / "one-mine.toml").write_text(SERVER)
    assert own_gpu_constants(Catalog.load([tmp_path]).machine("one-mine")) == told


def test_a_stack_with_a_pace_of_its_own_is_told_and_one_without_is_not(tmp_path):
    name = next(one for one in shipped_scenarios() if one.startswith("large/"))
    (tmp_path / "paced.toml").write_text(PACE)
    (tmp_path / "version.toml").write_text(PACE.partition("[[pace]]")[0].replace('"megatron-core"', '"paced.toml"'))
    (tmp_path / "plain.toml").write_text(PACE.partition("[[pace]]")[0])
    for stack, told in (("paced", "paces of kernels of the stack paced"), ("plain", "")):
        own = load_scenario(name, [f"program.stack={tmp_path / stack}.toml"])
        assert own_constants(own) == told
    version = load_scenario(name, [f"program.stack={tmp_path / 'version.toml'}"])
    assert own_constants(version) == "paces of kernels of the stack paced"


def test_no_shipped_scenario_that_grades_training_has_constants_of_its_own():
    """Else its published figure would be evidence for runs that have other constants."""
    for name in shipped_scenarios():
        if name.startswith("measured/lambda-"):
            each = load_scenario(name)
            assert {own_constants(one) for one in each.variants or (each,)} == {""}, name


STEP = {"use": "train", "model": "resnet18", "batch_per_gpu": 32, "steps": 2}


@pytest.mark.parametrize(("machine", "gpus"), [("p2-xlarge", 1), ("p2-8xlarge", 2)])
def test_a_step_on_an_architecture_of_which_no_kernel_was_measured_has_no_interval(machine, gpus):
    result = run(scenario(machine={"use": machine}, program={**STEP, "gpus": gpus}), record=False)
    assert result.intervals == {}
    assert result.no_interval == "no kernel of the architecture kepler was measured: its efficiencies are estimates"


def test_scaling_from_a_measured_gpu_asks_for_no_kernel():
    given = {"use": "train", "layers": 10, "alone": "50 1/s", "batch_per_gpu": 32, "gpus": 2}
    assert run(scenario(machine={"use": "p2-8xlarge"}, program=given), record=False).intervals


def test_architectures_of_published_kernels_are_no_estimates():
    catalog = Catalog.load()
    assert [estimated_architecture(catalog.machine(name)) for name in ("dgx-1v", "dgx-a100", "dgx-b200")] == [""] * 3
