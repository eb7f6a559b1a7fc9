"""Saved results, tables, streams and studies that once gave a traceback, a wrong answer, or none at all."""

import json
import os
import subprocess
import sys

import pytest

import simperf
from simperf.cli import main
from tests.fuzz import sources

PYTHON = (sys.executable, "-m", "simperf")


@pytest.fixture
def saved(tmp_path):
    """Writes a saved result that is changed."""

    def write(change):
        data = json.loads(sources.results()[0])
        change(data)
        path = tmp_path / "r.json"
        path.write_text(json.dumps(data, indent=1))
        return str(path)

    return write


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d["spans"][1].__setitem__(3, 1e300), "spans[1]: a span from"),
        (lambda d: d["spans"][1].__setitem__(2, d["spans"][1][3] + 1.0), "spans[1]: a span from"),
        (lambda d: d["samples"].append(["a", "b", 1e300, 1.0]), "at 1e+300 s"),
        (lambda d: d["floors"].update(x=d["time"] * 2), "below the floor of"),
    ],
)
def test_results_that_contradict_themselves(saved, tmp_path, capsys, change, place):
    assert main(["show", saved(change), "--trace", str(tmp_path / "t.json")]) == 2
    err = capsys.readouterr().err
    assert "r.json:" in err
    assert place in err.replace(": no saved result", "")
    assert "defect" not in err
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("redirection", "told"),
    [
        (">&-", "error: standard output is closed"),
        (">/dev/full", "error: standard output: No space left on device"),
    ],
)
def test_output_that_nobody_can_read(tmp_path, redirection, told):
    line = f'"$@" run d2l/async --set program.n=100 {redirection}'
    done = subprocess.run(["bash", "-c", line, "x", *PYTHON], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr


def test_errors_that_nobody_can_read_change_no_result(tmp_path):
    for words, redirection, code in (
        ("run d2l/async --set program.n=100", "2>&- >o", 0),
        ("run nothing", "2>&- >o", 2),
        ("run nothing", "2>/dev/full >o", 2),
    ):
        line = f'"$@" {words} {redirection}'
        done = subprocess.run(["bash", "-c", line, "x", *PYTHON], cwd=tmp_path, check=False)
        assert done.returncode == code, (words, redirection)
        assert ("time" in (tmp_path / "o").read_text()) == (code == 0)
        assert "defect" not in (tmp_path / "o").read_text()


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("-1,2,5", "nbytes is -1.04858e+06 B"),
        ("1,0,5", "ranks is 0"),
        ("1,1.5,5", "ranks is 1.5"),
        ("1,1000000000,5", "ranks is 1e+09"),
        ("1,2,0", "time is 0 s"),
        ("1,2,1e300", "time is 1e+294 s"),
    ],
)
def test_tables_of_what_nobody_measured(tmp_path, capsys, row, told):
    path = tmp_path / "t.csv"
    path.write_text(f"size [MiB],ranks,time [us]\n1,2,5\n{row}\n")
    main(["calibrate", "import", str(path)])
    assert f"t.csv:3: not read: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "d2l/async", "--vary", "program.n=700000..790000:90001"),
        ("run", "d2l/async", "--samples", "10000", "--set", "program.n=700000"),
    ],
)
def test_studies_of_too_many_events_together(capsys, words):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "runs of about 1." in err
    assert "--force" in err


def test_titles_that_a_terminal_would_obey(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text('[scenario]\ntitle = "\\u001b[2Jx"\n[program]\nuse = "async-chain"\n')
    assert main(["run", str(path)]) == 2
    told = capsys.readouterr()
    assert "s.toml:2: scenario.title: a text with the control character U+001B" in told.err
    assert "\x1b" not in told.out + told.err


def test_a_folder_that_is_gone(tmp_path):
    line = f'mkdir {tmp_path}/x && cd {tmp_path}/x && rmdir ../x && "$@" sweep d2l/async --vary program.n=1,2'
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(simperf.__file__))}
    done = subprocess.run(
        ["bash", "-c", line, "x", *PYTHON], capture_output=True, text=True, env=environment, check=False
    )
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
    assert done.returncode in (0, 2), done.stderr


@pytest.mark.parametrize("folder", ["/", "/usr"])
def test_a_folder_of_parts_that_is_the_file_system(tmp_path, capsys, folder):
    path = tmp_path / "s.toml"
    path.write_text(f'[machine]\nfolder = "{folder}"\nuse = "dgx-1v"\n[program]\nuse = "all-reduce"\n')
    assert main(["check", str(path)]) == 2
    err = capsys.readouterr().err
    assert "s.toml:2: machine.folder: the folder's parts cannot be read" in err
    assert f"error: {folder}: the folder and those in it hold more than 10,000 files" in err


@pytest.mark.filterwarnings("error")
def test_recordings_of_times_that_are_none(tmp_path, capsys):
    path = tmp_path / "d.json"
    row = {"series": "gemm", "at": {"m": 512, "n": 512, "k": 512}, "samples": [5e-324] * 4}
    data = {"schema": "simperf-dataset/1", "title": "t", "measurements": [row]}
    path.write_text(json.dumps(data, indent=1))
    assert main(["calibrate", "fit", str(path)]) == 2
    err = capsys.readouterr().err
    assert "d.json:" in err
    assert "at least 1e-15 s" in err
    assert "defect" not in err
