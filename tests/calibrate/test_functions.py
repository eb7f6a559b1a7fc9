"""`simperf.calibrate` from Python: functions that call what the commands call, loaded when they are used."""

import inspect
import subprocess
import sys
import tomllib

import pytest

import simperf
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fitting import HOLD_OUT
from simperf.cli import calibrate_fit
from simperf.errors import InputError
from tests.calibrate.synthetic import gpu_dataset


@pytest.fixture
def few(tmp_path):
    """Copies only, so that a fit is quick."""
    whole = gpu_dataset()
    path = tmp_path / "few.json"
    Dataset("copies", machine=dict(whole.machine), measurements=tuple(whole.select("copy/h2d-pinned"))).save(path)
    return path


def test_a_fit_is_that_of_the_command_and_is_validated(few, tmp_path):
    pytest.importorskip("scipy")
    found = simperf.calibrate.fit(few, output=tmp_path / "p.toml", hold_out=2)
    assert (tmp_path / "p.toml").read_text("utf-8") == found.text
    written = tomllib.loads(found.text)
    assert written["format"] == 1
    assert written["made"]["command"] == "simperf calibrate fit few.json -o p.toml --hold-out 2 --seed 0"
    assert set(written["model"]) == set(found.models) == {"copy.h2d-pinned"}
    assert "copy.h2d-pinned" in found.summary
    assert "copy.h2d-pinned" in found._repr_html_()
    assert [path.suffix for path in found.plot(tmp_path / "pictures")] == [".svg"]
    checked = simperf.calibrate.validate(tmp_path / "p.toml", [few])
    assert checked.held_out.mape < 0.2
    assert checked.plot(tmp_path / "v.svg").axes
    assert checked._repr_html_().count("<tr>") > 2
    assert simperf.calibrate.validate(simperf.Catalog.load().profile(str(tmp_path / "p.toml")), few) == checked


def test_constants_and_points_are_data_frames(few, tmp_path):
    pytest.importorskip("scipy")
    pytest.importorskip("pandas")
    found = simperf.calibrate.fit([few], output=tmp_path / "p.toml")
    frame = found.to_pandas().set_index("constant")
    assert frame.value["bandwidth"] == found.models["copy.h2d-pinned"].constant["bandwidth"].value
    checked = simperf.calibrate.validate(str(tmp_path / "p.toml"), few)
    assert len(checked.to_pandas()) == len(checked.points)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: simperf.calibrate.fit(3), r"data: files of measurements are expected \(read: 3\)"),
        (lambda: simperf.calibrate.fit([]), "files of measurements are expected"),
        (lambda: simperf.calibrate.fit("nothing.json"), r"nothing\.json"),
        (lambda: simperf.calibrate.validate(3, "x.json"), "a profile is expected, not int"),
        (lambda: simperf.calibrate.validate("mine.toml", "x.json"), r"mine\.toml: no such file"),
        (lambda: simperf.calibrate.measure("x.txt"), "must end in .json"),
        (lambda: simperf.calibrate.measure("x.json", only="copy"), r"a list of families is expected"),
        (lambda: simperf.calibrate.measure("x.json", only=["cpoy"]), "cpoy"),
    ],
)
def test_what_is_wrong_is_told(call, told):
    with pytest.raises(InputError if "cpoy" not in told else simperf.SimperfError, match=told):
        call()


def test_the_package_is_offered_and_loads_nothing_heavy():
    code = (
        "import simperf, sys; simperf.calibrate.measure, simperf.calibrate.fit, simperf.calibrate.validate;"
        "print([name for name in ('torch', 'scipy', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "code",
    [
        "import simperf.calibrate.fit.solve, simperf.calibrate.measure.task, simperf.calibrate.validate",
        "from simperf.calibrate.fit import fit_dataset; from simperf.calibrate.validate import Validation",
        "from simperf.calibrate import fit, measure, validate; import simperf.calibrate.fit.sets",
    ],
)
def test_functions_stay_functions_whatever_is_imported(code):
    check = f"{code}; import simperf; c = simperf.calibrate; assert all(map(callable, (c.fit, c.measure, c.validate)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_the_command_keeps_as_many_points_out_as_the_function():
    command, function = (
        inspect.signature(one).parameters["hold_out"] for one in (calibrate_fit.fit, simperf.calibrate.fit)
    )
    assert command.default is function.default is None
    assert f"; {HOLD_OUT} if left out" in command.annotation


def test_a_name_that_is_not_there_is_told():
    with pytest.raises(AttributeError, match="has no name 'measrue'; did you mean 'measure'"):
        simperf.calibrate.measrue  # noqa: B018
