"""Programs whose runs have published figures: the accuracy page and intervals take the same runs for the same thing."""

import pytest

from simperf.accuracy.questions import question_of
from simperf.analysis.left_out import read_errors
from simperf.analysis.questions import COLLECTIVES, KERNELS, LARGE, ONE_GPU, PLANS, SCALING, asked_by, runs_of
from simperf.answer import PUBLISHED, unpublished
from simperf.programs import PROGRAMS
from simperf.scenario import load_scenario, shipped_scenarios

#: what a table of the accuracy page answers, by what a run answers
TABLES = {ONE_GPU: (ONE_GPU, SCALING), PLANS: (SCALING,), LARGE: (SCALING,)}


def test_every_program_with_published_figures_is_there():
    assert set(PUBLISHED) <= set(PROGRAMS)


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_a_program_without_published_figures_says_so_whatever_it_is_given(program):
    for given in ({}, {"model": "resnet50"}, {"alone": 40.0}):
        found = asked_by(program, {"nbytes": 1e6, **given}, gpus=8)
        assert (found.why_not == unpublished(program)) is (not runs_of(program, given))
        assert program in PUBLISHED or found.why_not == unpublished(program)


@pytest.mark.parametrize("name", [one for one in shipped_scenarios() if one.startswith("measured/")])
def test_the_accuracy_page_and_the_interval_of_a_run_take_it_for_the_same(name):
    scenario = load_scenario(name)
    for variant in scenario.variants or (scenario,):
        gpus = len(variant.machine.gpus) if variant.machine is not None else 0
        asked = asked_by(variant.program.name, variant.parameters, gpus=gpus)
        table, runs = question_of(variant, None), runs_of(variant.program.name, variant.parameters)
        assert (table == SCALING) is (runs == "training" and gpus != 1)
        assert (table == COLLECTIVES) is (runs == "exchange")
        assert (table == KERNELS) is (runs == "kernels")
        if asked.question:
            assert table in TABLES.get(asked.question, (asked.question,))


def test_a_parameter_server_trains_or_exchanges():
    server = "parameter-server"
    assert runs_of(server, {}) == "exchange"
    assert runs_of(server, {"alone": 40.0}) == runs_of(server, {"model": "vgg16"}) == "training"
    assert "NCCL" in asked_by(server, {}, gpus=8).why_not


@pytest.mark.parametrize("name", [one for one in shipped_scenarios() if one.startswith("large/")])
def test_the_case_of_a_large_model_names_families_of_its_figures(name):
    families = {one.family.split(" ")[0] for one in read_errors(LARGE)}
    assert load_scenario(name).case in {"", *families}


def test_families_of_a_measured_kernel_begin_with_the_case_of_its_scenario():
    cases = {load_scenario(name).case for name in shipped_scenarios() if name.startswith("measured/linear-fp32")}
    assert cases
    assert cases <= {one.family.split(" ")[0] for one in read_errors(KERNELS)}
