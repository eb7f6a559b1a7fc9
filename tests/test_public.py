"""The public names: all there, loaded when asked for, `run` always the function."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import simperf


def test_every_name_is_there():
    assert sorted(simperf.__all__) == dir(simperf)
    for name in simperf.__all__:
        assert getattr(simperf, name) is not None
    assert {"run", "load_scenario", "Scenario", "Result", "Catalog", "Machine", "Simulation", "Session"} <= set(
        simperf.__all__
    )


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="did you mean 'load_scenario'"):
        simperf.load_scenarios  # noqa: B018


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    assert simperf.__version__ == project["project"]["version"]


@pytest.mark.parametrize(
    "code",
    [
        "import simperf; simperf.run",
        "import simperf.run; import simperf",
        "from simperf.run import run; import simperf",
        "from simperf import run; import simperf",
        "import simperf; simperf.run; import simperf.run",
    ],
)
def test_run_is_the_function_whatever_was_imported_first(code):
    check = f"{code}; assert callable(simperf.run), simperf.run; from simperf.run import Attempt"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_imports_nothing_else():
    code = "import sys; before = set(sys.modules); import simperf; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "'numpy'" not in done.stdout
    assert "simperf." not in done.stdout


def test_the_example_of_the_package():
    result = simperf.run(simperf.load_scenario("d2l/sync-160mb"))
    assert result.time == pytest.approx(0.06, rel=1e-9)


def test_what_a_notebook_shows_is_short():
    scenario = simperf.load_scenario("d2l/sync-160mb")
    shown = repr(scenario), repr(simperf.run(scenario)), repr(simperf.Catalog.load()), repr(simperf.PROGRAMS)
    assert shown[0] == "<Scenario 'Where to add up 160 MB of gradients': all-reduce on book-4gpu, 3 variants>"
    assert shown[1] == "<Result 'Where to add up 160 MB of gradients': 60.00 ms, 2 metrics>"
    assert shown[2].startswith("<Catalog of ")
    assert shown[3].endswith(" programs>")
