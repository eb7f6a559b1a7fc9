"""Programs in people's own files: found beside the scenario, run, and blamed by line."""

import pytest

from simperf.cli import main
from simperf.errors import InputError, SimperfError
from simperf.run import run
from simperf.scenario import load_scenario
from simperf.scenario.python_program import failure, load_program

PROGRAM = '''\
"""Mine."""
from __future__ import annotations

from dataclasses import dataclass

from helper import PAUSE
from simperf import compute
from simperf.units import Seconds


@dataclass
class Step:
    time: float


def steps(m, *, n: int = 3, t: Seconds = 1e-3):
    """Spend time n times.

    Parameters
    ----------
    n : int
        how often
    t : float
        how long
    """
    for _ in range(n):
        yield compute(Step(t).time, "step")
    m.metric("pause", PAUSE, "s")
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("PAUSE = 2.0\n")
    (tmp_path / "s.toml").write_text('[program]\npython = "mine.py:steps"\nn = 4\nt = "2 ms"\n')
    return tmp_path


def test_it_runs_wherever_one_stands(folder, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    scenario = load_scenario(folder / "s.toml")
    assert scenario.program.title == "Spend time n times."
    assert scenario.program.parameters["t"].doc == "how long"
    result = run(scenario)
    assert result.time == pytest.approx(8e-3)
    assert result.metrics["pause"].value == 2.0


def test_an_edited_file_is_read_again(folder):
    assert run(load_scenario(folder / "s.toml")).metrics["pause"].value == 2.0
    (folder / "mine.py").write_text(PROGRAM.replace("PAUSE, ", "3.0, "))
    assert run(load_scenario(folder / "s.toml")).metrics["pause"].value == 3.0


@pytest.mark.parametrize("reference", ["mine.py", "mine.py:", ":steps", "mine.py:1", "mine.py:a.b"])
def test_references(folder, reference):
    with pytest.raises(InputError, match="names no function"):
        load_program(reference, folder)


@pytest.mark.parametrize(
    ("source", "line", "word"),
    [
        ("def steps(m)\n    yield 1\n", 1, "not valid Python"),
        ("import nowhere_to_be_found\n", 1, "ModuleNotFoundError"),
        ("x = 1\ny = x / 0\n", 2, "ZeroDivisionError"),
        ("x = 1\n\ndef steps(m):\n    return 1\n", 3, "no generator function"),
        ("def steps(m, n=1):\n    yield 1\n", 1, "needs an annotation and a default"),
        ("def steps(m, *, n: Nothing = 1):\n    yield 1\n", 1, "Nothing"),
        ("x = '\0'\n", 0, "not valid Python"),
    ],
)
def test_code_that_is_wrong_is_blamed_by_line(folder, source, line, word):
    (folder / "mine.py").write_text(source)
    with pytest.raises(InputError, match=word) as caught:
        load_program("mine.py:steps", folder)
    (problem,) = caught.value.problems
    assert problem.file.endswith("mine.py")
    assert problem.line in (line, 1)


def test_a_function_that_is_not_there_and_a_file_that_is_not_there(folder):
    with pytest.raises(InputError, match=r"no function 'stps'; did you mean 'steps'"):
        load_program("mine.py:stps", folder)
    with pytest.raises(InputError, match=r"no Python file .*; did you mean 'mine\.py'"):
        load_program("mien.py:steps", folder)
    (folder / "d.py").mkdir()
    with pytest.raises(InputError, match="this is a directory"):
        load_program("d.py:steps", folder)


def test_what_a_program_raises_is_placed_in_its_own_code(folder):
    (folder / "mine.py").write_text("def steps(m, *, n: int = 1):\n    x = {}\n    yield x['y']\n")
    spec = load_program("mine.py:steps", folder)
    with pytest.raises(KeyError) as caught:
        next(spec.function(None))
    (problem,) = failure(caught.value, spec).problems
    assert (problem.line, problem.value) == (3, "yield x['y']")
    assert problem.file.endswith("mine.py")


TRAP = """
import pathlib
from simperf.units import Seconds

pathlib.Path({trace!r}).write_text("run")
print("run")


def steps(m, *, n: int = 3, t: Seconds = 1e-3, c: Unknown = pathlib.Path()):
    \"\"\"Spend time.\"\"\"
    yield m
"""


def test_a_file_that_is_checked_is_read_and_not_run(tmp_path, capsys):
    trace = tmp_path / "trace"
    (tmp_path / "s").mkdir()
    (tmp_path / "trap.py").write_text(TRAP.format(trace=str(trace)))
    toml = tmp_path / "s" / "s.toml"
    toml.write_text('[program]\npython = "../trap.py:steps"\nn = 4\nt = "2 ms"\nc = 3\n')
    assert main(["check", str(toml)]) == 0
    assert not trace.exists()
    scenario = load_scenario(toml, code=False)
    assert scenario.parameters == {"n": 4, "t": 2e-3, "c": 3}
    assert scenario.program.title == "Spend time."
    with pytest.raises(SimperfError, match="read, not run"):
        run(scenario)
    capsys.readouterr()
    main(["run", str(toml)])
    assert trace.exists()
    assert f"runs the code of {tmp_path / 's' / '../trap.py'}, which the scenario names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "given", "said"),
    [
        ("def steps(m, *, n: int = 3):\n    yield m\n", "n = 'x'", "program.n: a value of another type"),
        ("def steps(m, *, n: int = 3):\n    yield m\n", "k = 1", "has no parameter 'k'"),
        ("def steps(m, *, n: int = 3):\n    return m\n", "", "no generator function"),
        ("def steps(m, *, n=3):\n    yield m\n", "", "needs an annotation and a default"),
        ("def step(m):\n    yield m\n", "", "did you mean 'step'"),
        ("def steps(m\n", "", "own.py:1: not valid Python"),
    ],
)
def test_what_is_wrong_is_told_without_running_it(tmp_path, source, given, said):
    (tmp_path / "own.py").write_text(f"raise SystemExit\n{source}" if "(m\n" not in source else source)
    (tmp_path / "s.toml").write_text(f'[program]\npython = "own.py:steps"\n{given}\n')
    with pytest.raises(InputError, match=said):
        load_scenario(tmp_path / "s.toml", code=False)


@pytest.mark.parametrize(
    "source",
    [
        "from elsewhere import steps\n",
        "steps = make()\n",
        "@wrapped\ndef steps(m):\n    yield m\n",
        "def steps(m, options: Own):\n    yield m\n",
    ],
)
def test_parameters_that_only_running_would_tell_are_taken_as_they_are(tmp_path, source):
    (tmp_path / "own.py").write_text(source)
    (tmp_path / "s.toml").write_text('[program]\npython = "own.py:steps"\nk = 1\n')
    assert load_scenario(tmp_path / "s.toml", code=False).parameters == {"k": 1}
