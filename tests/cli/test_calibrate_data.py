"""`simperf calibrate measure` and `import` as people type them; nothing here runs torch."""

import importlib.util
import json

import pytest

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.measure.task import FAMILIES
from simperf.cli import calibrate_import, calibrate_measure, main

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
    assert 'pip install "simperf[torch]"' in said
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
    assert "what this is cannot be told" in capsys.readouterr().err
    assert main(["calibrate", "import", str(tmp_path / "absent.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err


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
