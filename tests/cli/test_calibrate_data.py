"""`simperf calibrate measure` and `import` as people type them; nothing here runs torch."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.measure.task import FAMILIES
from simperf.calibrate.measure.training import FAMILIES as TRAINING
from simperf.cli import calibrate_import, calibrate_measure, main

ROOT = Path(__file__).parents[2]
TABLE = "size [MiB],ranks,time [us]\n1,4,62.5\n2,4,broken\n4,4,171\n"


def test_families_are_listed_without_torch(capsys):
    assert main(["calibrate", "measure", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(FAMILIES)


def test_measuring_needs_a_file(capsys):
    assert main(["calibrate", "measure", "--quick"]) == 2
    assert "--output: minutes of readings need a file\n    expected: -o machine.json" in capsys.readouterr().err


def test_a_wrong_family_is_refused_with_the_nearest(capsys):
    assert main(["calibrate", "measure", "-o", "x.json", "--only", "gem"]) == 2
    assert "did you mean 'gemm'" in capsys.readouterr().err


def test_a_file_that_could_not_be_written_is_refused_before_anything_is_measured(capsys, tmp_path):
    assert main(["calibrate", "measure", "-o", str(tmp_path / "no" / "x.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed here")
def test_without_torch_it_says_what_to_install(capsys, tmp_path):
    assert main(["calibrate", "measure", "-o", str(tmp_path / "x.json")]) == 2
    said = capsys.readouterr().err
    assert "pip install torch" in said
    assert "Traceback" not in said


def test_a_table_becomes_a_data_set_and_what_was_not_read_is_named(capsys, tmp_path):
    source, target = tmp_path / "ring.csv", tmp_path / "data.json"
    source.write_text(TABLE)
    assert main(["calibrate", "import", str(source), "-o", str(target), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)
    assert (row["series"], row["points"], row["readings"]) == ("ring", 2, 2)
    assert "ring.csv:3" in err
    assert "next: simperf calibrate fit" in err
    data = Dataset.load(target)
    assert [point.median for point in data] == pytest.approx([62.5e-6, 171e-6])
    assert "ring.csv:3" in data.notes[0]


def test_a_file_that_is_not_there_does_not_stop_the_others_but_is_bad_input(capsys, tmp_path):
    source, missing, target = tmp_path / "ring.csv", tmp_path / "rign.csv", tmp_path / "data.json"
    source.write_text(TABLE)
    assert main(["calibrate", "import", str(source), str(missing), "-o", str(target)]) == 2
    err = capsys.readouterr().err
    assert f"nothing was read of {missing}" in err
    assert len(Dataset.load(target)) == 2
    assert "rign.csv" in Dataset.load(target).notes[-1]
    assert main(["calibrate", "import", str(source), str(missing)]) == 2
    assert f"nothing was read of {missing}" in capsys.readouterr().err


def test_nothing_that_can_be_read_is_an_error(capsys, tmp_path):
    source = tmp_path / "x.log"
    source.write_text("hello\n")
    assert main(["calibrate", "import", str(source)]) == 2
    assert "what this is cannot be determined" in capsys.readouterr().err
    assert main(["calibrate", "import", str(tmp_path / "absent.csv")]) == 2
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("good", [0, 1])
def test_of_many_problems_the_first_are_named_and_the_others_counted(capsys, tmp_path, good):
    source, target = tmp_path / "ring.csv", tmp_path / "data.json"
    source.write_text("size [B],time [us]\n" + "1,2\n" * good + "1,broken\n" * 500)
    assert main(["calibrate", "import", str(source), "-o", str(target)]) == (0 if good else 2)
    said = capsys.readouterr().err
    assert "480 problems more" in said
    assert len(said.splitlines()) < 25
    if good:
        notes = Dataset.load(target).notes
        assert notes[0].startswith("ring.csv:3")  # the file alone: folders may have a user's name in them
        assert notes[-1].startswith("480 more problems")


def test_each_verb_is_the_first_name_of_its_module():
    assert calibrate_measure.__all__[0] == "measure"
    assert calibrate_import.__all__[0] == "import_"


def test_families_of_the_set_training_are_listed_without_torch(capsys):
    assert main(["calibrate", "measure", "--set", "training", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(TRAINING)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "training", "--only", "product"], "did you mean 'products'"),
        (["--set", "trainign"], "--set"),
        (["--set", "training", "--quick"], "--quick: says nothing of the set training"),
        (["--minutes", "0"], "--minutes: must be above 0 (read: 0.0)"),
        (["--minutes", "nan"], "--minutes: must be above 0"),
        (["--minutes", "soon"], "--minutes"),
    ],
)
def test_wrong_options_of_a_session_are_refused_before_torch_is_loaded(capsys, tmp_path, words, said):
    code = main(["calibrate", "measure", "-o", str(tmp_path / "x.json"), *words])
    told = capsys.readouterr().err
    assert (code, said in told) == (2, True), told
    assert not list(tmp_path.iterdir())


#: refuses every package but those of the standard library, torch's, and the ones named
ALONE = """
import sys

class Alone:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_") or top in {allowed!r}:
            return None
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Alone())
{code}
"""


def alone(code, allowed, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", ALONE.format(code=code, allowed=("simperf", *allowed))]
    return subprocess.run(words, capture_output=True, text=True, env=environment, cwd=folder, timeout=120, check=False)


def test_measuring_imports_nothing_but_torch(tmp_path):
    code = (
        "import simperf.calibrate.measuring, simperf.calibrate.measure.session, simperf.workload.trace.recorder\n"
        "from importlib import import_module\n"
        "from simperf.calibrate.measure import task, facts\n"
        "from simperf.calibrate.measure.training import order\n"
        "for name in task.FAMILIES.values(): import_module('simperf.calibrate.measure.' + name)\n"
        "for name, _ in order.FAMILIES.values(): import_module('simperf.calibrate.measure.training.' + name)\n"
        "print(facts.version_facts()['simperf'])"
    )
    done = alone(code, (), tmp_path)
    assert done.returncode == 0, done.stderr


def test_packages_that_are_not_there_are_named_in_one_message(tmp_path):
    code = "from simperf.cli import main; sys.exit(main(['calibrate', 'measure', '--set', 'training']))"
    done = alone(code, (), tmp_path)
    assert done.returncode == 2
    assert "error: this Python lacks typer, simpy, numpy" in done.stderr
    assert "pip install typer simpy numpy" in done.stderr
    assert "torch alone measures" in done.stderr
    assert "defect" not in done.stderr
