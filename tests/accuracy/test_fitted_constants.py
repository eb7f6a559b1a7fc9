"""The list of fitted constants holds what the files have, and every constant that a scenario calls fitted."""

import ast
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.resources import files

import pytest

from simperf.accuracy.fitted_constants import constants_behind, fitted_constants, key_of
from simperf.accuracy.nccl_cases import cases_known
from simperf.files import read_toml
from simperf.scenario import load_scenario, shipped_scenarios

CONSTANTS = fitted_constants()
#: how a scenario says that it was given one GPU's speed, which is fitted by rule
ALONE = ("the computing speed of one", "one GPU's speed", "the speed of one GPU")


@pytest.fixture(scope="module")
def variants():
    """Variants of every measured scenario, by its name."""
    names = [name for name in shipped_scenarios() if name.startswith("measured/")]
    loaded = {name: load_scenario(name) for name in names}
    return {name: scenario.variants or (scenario,) for name, scenario in loaded.items()}


def entries(data, name):
    """Tables of a file's lists that have this id or, of stacks, family; an id of measured data may be a pattern."""
    tables = [table for each in data.values() if isinstance(each, list) for table in each]
    return [t for t in tables if name in (t.get("id"), t.get("family")) or fnmatchcase(str(t.get("id", "")), name)]


@pytest.mark.parametrize(
    "one",
    [one for one in CONSTANTS if not one.in_measured_data],
    ids=lambda one: f"{one.file} {one.entry} {one.key}",
)
def test_a_listed_constant_has_that_value_where_it_is_set(one, variants):
    if one.in_scenarios:
        found = [
            key_of(variant.data, one.key)
            for name, each in variants.items()
            for variant in each
            if one.covers(variant.case, name, variant.name)
        ]
        assert one.value in found
    elif ":" in one.file:
        module, _, name = one.file.partition(":")
        found = getattr(import_module(module), name)
        found = key_of(found, one.key) if one.key else found
        found = list(found) if isinstance(found, tuple) else found
        assert found if one.value is None else found == one.value
    else:
        assert_listed(one, read_toml(files("simperf").joinpath(one.file)).data)


def assert_listed(one, data):
    """A file has a listed constant, in one of the tables that its entry names."""
    tables = entries(data, one.entry) if one.entry else [data]
    found = [key_of(table, one.key) for table in tables] if one.key else tables
    assert found
    assert all(found) if one.value is None else one.value in found


def test_every_constant_has_a_source_and_its_figures_in_scenarios_are_there(variants):
    for one in CONSTANTS:
        assert one.source, one
        if one.in_scenarios:
            assert any(one.covers(v.case, name, v.name) for name, each in variants.items() for v in each), one
        for pattern in one.variants:
            names = [v.name for name, each in variants.items() for v in each if one.covers(v.case, name, v.name)]
            assert any(fnmatchcase(name, pattern) for name in names), (one.name, pattern)


def test_a_choice_on_which_no_figure_rests_says_what_does():
    for one in CONSTANTS:
        assert bool(one.only) is (one.choice and not one.cases), one


#: modules that make intervals, and their names that are no choices: words, files, and limits below which there is none
INTERVALS = {
    "simperf.analysis.left_out": {
        *("DATA", "COLUMNS", "FILES", "_LEVELS", "_FEWEST", "_FEWEST_FAMILIES"),
        *("_HARDER", "_HARDER_BY_QUESTION"),  # words
    },
    "simperf.study.planning.spread": {"FAILURES", "_RATE", "_EFFICIENCY"},
    "simperf.study.layouts.ties": {"TIE"},
}
#: choices of `simperf.analysis.questions`, which has names of questions beside them
GROUPS = {f"simperf.analysis.questions:{name}" for name in ("KERNEL_GROUPS", "ONE_GPU_GROUPS", "SIZE_CLASSES")}


def test_every_choice_of_how_intervals_are_made_is_listed():
    chosen = set(GROUPS)
    for module, none in INTERVALS.items():
        path = f"{module.partition('.')[2].replace('.', '/')}.py"
        tree = ast.parse(files("simperf").joinpath(path).read_text("utf-8"))
        names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        assert none <= names
        chosen |= {f"{module}:{name}" for name in names - none if name.isupper()}
    packages = ("simperf.analysis.", "simperf.study.")
    assert chosen == {one.file for one in CONSTANTS if one.file.startswith(packages)}


#: modules of kernels' times, and their names that are no choices: what libraries, guides and layouts of memory have,
#: and what follows from other names
KERNELS = {
    "products": {"_TILES", "_SPLITS", "_STEP", "_SHORTEST", "_HEIGHT", "_WIDTH", "_SPLIT", "_MEAN"},
    "tiles": {"TILES", "SINGLE", "_SPLITS"},
    "attention_formulas": {"ROWS", "COLUMNS", "SPECIAL", "_GRAIN", "RUN", "_GROUP"},
    "attention": {"CACHED", "BACKWARD", "LEAST_QUERIES", "_NEEDED", "_PRODUCTS", "_PRODUCTS_BACK", "_KERNELS_BACK"},
    "formulas": set(),
    "experts": {"_SIDES", "_LEAST", "_MOST", "_HEIGHT", "_WIDTH", "BLOCK_UNITS", "_STEP", "_SIZE"},
    "longsums": {"_STEP", "_LANES", "_NUMBER"},
    "convolutions": {"WINOGRAD"},
    "roofline": {"THREADS_PER_SM", "_VECTOR", "BLOCK_SCALED", "_BLOCK_RATES", "SCALING_KINDS"},
}


@pytest.mark.parametrize("module", KERNELS)
def test_every_constant_of_kernels_that_no_guide_has_is_listed(module):
    tree = ast.parse(files("simperf").joinpath(f"cost/{module}.py").read_text("utf-8"))
    assigned = [one for line in tree.body if isinstance(line, ast.Assign | ast.AnnAssign) for one in ast.walk(line)]
    names = {one.id for one in assigned if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    names = {name for name in names if name.isupper()}
    assert KERNELS[module] <= names
    listed = {one.file.partition(":")[2] for one in CONSTANTS if one.file.startswith(f"simperf.cost.{module}:")}
    assert listed == names - KERNELS[module]


#: options of measured scenarios that were looked up with figures in view, and values that say nothing
LOOKED_UP = {
    "program.batches": (None,),
    "program.alone_accumulate": (None, 0),
    "program.attention_kernels": (None,),
    "program.memory_format": (None, "channels-last"),
}


@pytest.mark.parametrize("key", LOOKED_UP)
def test_an_option_that_was_looked_up_is_listed_wherever_a_scenario_has_it(key, variants):
    names = {one.name for one in CONSTANTS if one.key == key}
    having = [v for each in variants.values() for v in each if key_of(v.data, key) not in LOOKED_UP[key]]
    assert having
    for variant in having:
        assert names & set(constants_behind(variant.case, variant, choice=True)), variant


def test_stacks_of_kernels_that_were_looked_up_are_listed_wherever_a_scenario_has_them(variants):
    stacks = {f"deeplearningexamples-{name}" for name in ("bert", "bert-fp32", "convnets-tf32", "ssd-tf32")}
    names = {one.name for one in CONSTANTS if one.key == "program.stack"}
    having = [v for each in variants.values() for v in each if key_of(v.data, "program.stack") in stacks]
    assert len(having) > 20
    for variant in having:
        assert names & set(constants_behind(variant.case, variant, choice=True)), variant


def test_frontends_of_lambda_follow_the_host_that_the_logs_name_and_are_listed(variants):
    for name, each in variants.items():
        if not name.startswith("measured/lambda-"):
            continue
        workstation = name.startswith(("measured/lambda-rtx3090-", "measured/lambda-rtx4090-"))
        for variant in each:
            used = key_of(variant.data, "frontend.use")
            assert used == ("pytorch-1-workstation" if workstation else "pytorch-1"), name
            listed = constants_behind(variant.case, variant, choice=True)
            assert ("launch on a workstation" in listed) is workstation, name


def test_what_a_scenario_calls_fitted_is_listed(variants):
    for name, each in variants.items():
        text = each[0].fitted
        if text.startswith("nothing"):
            continue
        if text.startswith(ALONE):
            assert all(variant.parameters["alone"] > 0 for variant in each), name
            continue
        listed = [
            constants_behind(variant.case, variant, choice=choice) for variant in each for choice in (False, True)
        ]
        assert any(listed), f"{name}: {text}"


def test_what_a_case_of_collectives_calls_fitted_is_listed():
    fitted = {case for case, setup in cases_known().items() if setup.get("fitted")}
    assert fitted
    assert {case for case in cases_known() if constants_behind(case)} == fitted


def test_overlap_that_is_switched_off_is_a_choice_wherever_a_scenario_has_it(variants):
    switched = [
        variant for each in variants.values() for variant in each if key_of(variant.data, "program.overlap") is False
    ]
    assert len(switched) > 1
    for variant in switched:
        assert "overlap = false" in constants_behind(variant.case, variant, choice=True), variant
        assert "overlap = false" not in constants_behind(variant.case, variant)


def test_a_number_that_was_read_off_one_ratio_leaves_the_others_predicted():
    case, name = "primus-llama2-7b-mi300-1f1b-interleaved-vpp2", "micro-batches of Primus"
    assert constants_behind(case, quantity="throughput ratio") == (name,)
    assert constants_behind(case, quantity="memory ratio") == ()
    assert "Primus' model and batch" in constants_behind(case, quantity="memory ratio", choice=True)
