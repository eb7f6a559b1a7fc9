"""Saved results, tables, streams and studies that once gave a traceback, a wrong answer, or none at all."""

import json
import math
import os
import subprocess
import sys
import time

import pytest

import simperf
from simperf.cli import main
from simperf.engine.recorder import Span
from simperf.errors import InputError
from simperf.report.lanes import allocate
from simperf.study.rows import row_problem
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
        (lambda d: d["spans"][1].__setitem__(3, d["time"] * 1.01), "no later than the result's"),
        (lambda d: d["samples"].append(["a", "b", d["time"] * 2, 1.0]), "no later than the result's"),
        (lambda d: d.update(time=1e13), "too long"),
        (lambda d: d.update(name="a\x1b[2J"), "name: a text with the control character U+001B"),
        (lambda d: d["scenario"].update({"\x9b2J": 1}), "a text with the control character U+009B"),
        (lambda d: d["floors"].update(x=d["time"] * 2), "below the lower bound of"),
        (lambda d: d["floors"].update(x=-1.0), "floors.x: -1 s"),
        (lambda d: next(iter(d["metrics"].values())).update(value=-1.0, unit="s"), "-1 s"),
    ],
)
def test_results_that_contradict_themselves(saved, tmp_path, capsys, change, place):
    assert main(["show", saved(change), "--trace", str(tmp_path / "t.json")]) == 2
    err = capsys.readouterr().err
    assert "r.json:" in err
    assert place in err.replace(": not a saved result", "")
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
        ("compare", "d2l/async", "--samples", "10000", "--set", "program.n=700000"),
        ("compare", "d2l/async", "--set", "program.n=700000"),
    ],
)
def test_studies_of_too_many_events_together(capsys, words):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert "runs of about 1." in err or "4 runs would simulate about 5.6e+06 events" in err
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


def test_a_comparison_of_too_many_events_in_python():
    variants = {"program": {"use": "async-chain", "n": 1_400_000}}
    with pytest.raises(InputError, match=r"3 runs would simulate about 8\.4e"):
        simperf.compare(*[simperf.make_scenario(variants)] * 3)


def test_many_variants_are_read_soon(tmp_path):
    path = tmp_path / "s.toml"
    head = '[program]\nuse = "async-chain"\n'
    path.write_text(
        head + "".join(f'[[compare]]\nname = "{n}"\nset = {{ "program.n" = {n} }}\n' for n in range(1, 1501))
    )
    began = time.process_time()
    assert len(simperf.load_scenario(path).variants) == 1500
    assert time.process_time() - began < 5.0


def test_many_spans_at_once_are_laid_out_soon():
    spans = [Span("gpu0/stream0", "k", 0.0, 1.0, "compute")] * 20_000
    began = time.process_time()
    lanes = allocate([*spans, *(Span("gpu0/stream0", "k", 1.0, 2.0, "compute") for _ in range(100))])
    assert len(lanes) == 20_000
    assert sum(len(lane) for lane in lanes) == 20_100
    assert time.process_time() - began < 5.0


_LOSS = '[machine]\nuse = "dgx-1v"\n[program]\nuse = "server-loss"\nservers = ["gpu0", "gpu1"]\n'


def test_a_worker_that_is_named_twice(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(_LOSS + 'workers = ["gpu2", "gpu2"]\n')
    assert main(["run", str(path)]) == 2
    assert "s.toml:6: program.workers: the worker 'gpu2' is named twice" in capsys.readouterr().err


def test_no_workers_are_every_gpu(tmp_path):
    path, times = tmp_path / "s.toml", []
    for workers in ("", "workers = []\n", "workers = [" + ", ".join(f'"gpu{n}"' for n in range(8)) + "]\n"):
        path.write_text(_LOSS + workers)
        times.append(simperf.run(path).time)
    assert times == [times[0]] * 3


_PLAN = """[plan]
model = "resnet50"
samples = 1_281_167
epochs = {epochs}
deadline = "24 h"
[candidates]
instances = ["p3-8xlarge"]
nodes = {nodes}
batch_per_gpu = [64]
"""


@pytest.mark.parametrize(
    ("epochs", "nodes", "told"),
    [
        (90, 10**9, ":8: candidates.nodes: whole numbers of at most 20,000 are expected"),
        (90, list(range(1, 3000)), ":6: candidates: 2,999 candidates would be simulated, more than 2,500"),
        (90, list(range(19_000, 19_003)), ":8: candidates.nodes: 57,003 nodes would be simulated, of 3 candidates"),
        (9 * 10**18, 1, ":4: plan.epochs: a number above 0 and below 1e+18 is expected"),
    ],
)
def test_plans_that_nobody_waits_for(tmp_path, capsys, epochs, nodes, told):
    path = tmp_path / "plan.toml"
    path.write_text(_PLAN.format(epochs=epochs, nodes=nodes))
    assert main(["plan", str(path)]) == 2
    assert told in capsys.readouterr().err


def test_tables_whose_column_stands_twice(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("size [MiB],size [MiB],time [us]\n1,2,5\n")
    assert main(["calibrate", "import", str(path)]) == 2
    assert "t.csv:1: the column stands twice (read: size [MiB])" in capsys.readouterr().err


def test_codes_of_a_terminal_in_logs_and_parts(tmp_path, capsys):
    log, part, model = tmp_path / "t.csv", tmp_path / "p.toml", tmp_path / "m.json"
    log.write_text("size [MiB],time [us]\n1,\x1b[2J5\n1,5\n")
    part.write_text('kind = "link"\nname = "a\\u001b[2J"\n')
    model.write_text('{"format": "simperf-model-1", "name": "\\u001b[2J"}')
    for words, told in (
        (["calibrate", "import", str(log)], "t.csv:2: not read"),
        (["check", str(part)], "p.toml:2: name: a text with the control character U+001B"),
        (["check", str(model)], "m.json:1: name: "),
    ):
        main(words)
        found = capsys.readouterr()
        assert told in found.err
        assert "\x1b" not in found.out + found.err


@pytest.mark.parametrize(
    ("norm", "told"),
    [
        ("", "model: about 1.08e+07 events would be simulated, more than 3e+06 (read: 10,000 layers)"),
        ('norm = "layer"\npositions = "learned"\nactivation = "gelu"\nbias = true\n', "(read: 9)"),
    ],
)
def test_models_whose_steps_are_too_long(tmp_path, capsys, norm, told):
    path = tmp_path / "s.toml"
    model = f"[model]\nlayers = 10000\nhidden = 64\nheads = 4\nffn = 128\nvocabulary = 1000\nsequence = 64\n{norm}"
    program = '[program]\nuse = "train"\nbatch_per_gpu = 1\nsteps = 9\n'
    path.write_text(f'[machine]\nuse = "dgx-a100"\n{model}{program}')
    assert main(["run", str(path)]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert "layers; or --force" in err or "expected: steps of at most " in err


def test_a_size_without_a_number_is_not_taken_from_the_cache():
    row = {"point": 0, "set": {}, "seed": 0, "error": None, "time": 1.0, "floor": 0.0, "regime": "", "limited_by": ""}
    task, row = {"point": 0, "set": {}, "seed": 0, "samples": 0}, {**row, "work": {}}
    assert not row_problem({**row, "metrics": {"memory: weights": (3.0, "B")}}, task)
    assert row_problem({**row, "metrics": {"memory: weights": (None, "B")}}, task).startswith("metrics.memory")


def test_a_letter_that_no_font_has_is_drawn_without_a_warning(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "d2l/sync-160mb", "--set", "scenario.title=\U00010fff", "--plot", "p.svg"]) == 0
    assert not [one for one in recwarn if "Glyph" in str(one.message)]


def test_an_amount_of_work_below_0_is_not_taken_from_the_cache():
    task = {"point": 0, "set": {}, "seed": 0, "samples": 0}
    row = {"point": 0, "set": {}, "seed": 0, "error": None, "time": 1.0, "floor": 0.0, "regime": "", "limited_by": ""}
    assert not row_problem({**row, "metrics": {}, "work": {"operations": (3, "1")}}, task)
    for amount in (-math.inf, -1, math.nan):
        assert row_problem({**row, "metrics": {}, "work": {"operations": (amount, "1")}}, task).startswith("work.")


def test_a_resource_that_reads_as_a_number_is_not_taken_from_the_cache():
    task = {"point": 0, "set": {}, "seed": 0, "samples": 0}
    row = {"point": 0, "set": {}, "seed": 0, "error": None, "time": 1.0, "floor": 0.0, "regime": "", "metrics": {}}
    for name in ("", "gpu0", "n3/gpu0", "gpu0>hub", "gpu0 copies"):
        assert not row_problem({**row, "work": {}, "limited_by": name}, task)
    for name in ("-0 MB", "-1", " ", "+1 s"):
        assert row_problem({**row, "work": {}, "limited_by": name}, task).startswith("limited_by")
