"""Whatever stands in a scenario's tables, loading ends in a scenario or in an `InputError`, nothing else."""

import copy
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.files import TomlFile
from simperf.scenario import Scenario, load_scenario, make_scenario, shipped_scenarios
from simperf.scenario.overrides import parse_assignment, parse_path

DATA = [tomllib.loads(path.read_text("utf-8")) for path in shipped_scenarios().values()]
WORDS = [
    "",
    "use",
    "gpu0",
    "16 GB/s",
    "-1 s",
    "5 Gb/s",
    "1e999 s",
    "nan",
    "{0..3}",
    "{9..1}",
    "n0/gpu0",
    "\x00",
    "eager",
    "a/b",
]
LEAVES = st.one_of(
    st.sampled_from(WORDS),
    st.text(max_size=5),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.dates(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value, path=()):
    """Every key path of nested tables and lists."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def assert_sound(load):
    """`load` gives a scenario, or says what is wrong."""
    try:
        found = load()
    except InputError as error:
        found = error
    if isinstance(found, InputError):
        assert found.problems
        assert all(problem.message for problem in found.problems)
    else:
        assert isinstance(found, Scenario)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_scenario_with_something_odd_in_it(data):
    tables = copy.deepcopy(data.draw(st.sampled_from(DATA)))
    for _ in range(data.draw(st.integers(1, 2))):
        *parents, last = data.draw(st.sampled_from(list(places(tables))))
        here = tables
        for step in parents:
            here = here[step]
        how = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if how == "delete" and isinstance(here, dict):
            del here[last]
        elif how == "add" and isinstance(here, dict):
            here[data.draw(st.sampled_from(WORDS) | st.text(max_size=4))] = data.draw(VALUES)
        else:
            here[last] = data.draw(VALUES)
        if not tables:
            break
    assert_sound(lambda: make_scenario(tables))


@settings(max_examples=150, deadline=None)
@given(key=st.text(alphabet="aprogmchine.[]0123\"' ", max_size=12), value=st.sampled_from(WORDS) | st.text(max_size=6))
def test_odd_assignments(key, value):
    assert_sound(lambda: load_scenario("d2l/sync-160mb", [f"{key}={value}"]))


@given(st.lists(st.from_regex(r"[a-z_-]{1,5}", fullmatch=True) | st.integers(0, 9), min_size=1, max_size=5))
def test_a_path_is_read_as_it_is_written(path):
    if isinstance(path[0], int):
        path = ["a", *path]
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    assert parse_path(text) == tuple(path)
    assert parse_assignment(f"{text}=1").path == tuple(path)


def test_the_fuzz_has_something_to_work_on():
    assert len(DATA) > 20
    with pytest.raises(InputError):
        make_scenario({"program": TomlFile})
