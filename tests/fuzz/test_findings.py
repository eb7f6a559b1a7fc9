"""Inputs that once ended in a traceback, without an end, or in a wrong answer: each is told by its place."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import tomli_w

from simperf.cli import main
from tests.fuzz import sources
from tests.fuzz.limits import play

BRACKETS = "[" * 200_000
#: readers of files, by the name of a file that they take
READERS = {
    "s.toml": ("check", "{}"),
    "plan.toml": ("plan", "{}"),
    "p.toml": ("check", "{}"),
    "r.json": ("show", "{}"),
    "m.json": ("zoo", "show", "{}"),
    "d.json": ("calibrate", "fit", "{}"),
    "b.json": ("calibrate", "cluster", "--replay", "{}"),
    "t.json": ("calibrate", "import", "{}"),
    "n.txt": ("calibrate", "import", "{}"),
    "sends.csv": ("calibrate", "fit", "{}"),
}


@pytest.fixture
def refused(here, capsys):
    """What is said of a command that is refused."""

    def run(*words):
        code = main(list(words))
        err = capsys.readouterr().err
        assert code == 2, err
        assert "defect" not in err, err
        assert "Traceback" not in err
        assert "not enough memory" not in err
        return err

    return run


def read(refused, name):
    return refused(*(name if word == "{}" else word for word in READERS[name]))


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith(".toml")])
@pytest.mark.parametrize("text", ["a." * 5000 + "b = 1", "x = " + BRACKETS], ids=["key", "brackets"])
def test_toml_of_endless_nesting(here, refused, name, text):
    (here / name).write_text(f'kind = "gpu"\n{text}\n')
    err = read(refused, name)
    assert f"{name}:2: " in err
    assert "depth of more than 64" in err


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith(".json") and name != "t.json"])
@pytest.mark.parametrize("text", [BRACKETS, '{"a":' * 200_000, "[" * 100 + "]" * 100])
def test_json_of_endless_nesting(here, refused, name, text):
    (here / name).write_text("\n" + text)
    err = read(refused, name)
    assert f"{name}:2: " in err
    assert "depth of more than 64" in err


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file(here, refused, name, kind):
    if kind == "pipe":
        os.mkfifo(here / name)
    elif kind == "device":
        (here / name).symlink_to("/dev/zero")
    else:
        (here / name).mkdir()
    found = {"pipe": "this is a pipe", "device": "this is a device", "folder": "this is a directory"}[kind]
    assert f"{name}: {found}, not a file" in read(refused, name)


@pytest.mark.parametrize("name", READERS)
def test_files_that_unpack_to_gigabytes(here, refused, name):
    part = gzip.compress(b" " * 2**26, 1)
    (here / name).write_bytes(part * 10)
    err = read(refused, name)
    assert f"{name}" in err
    assert "unpacks to more" in err or "not a text file" in err


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d["metrics"][next(iter(d["metrics"]))].update(value="abc"), "metrics."),
        (lambda d: d["metrics"][next(iter(d["metrics"]))].update(unit=3), "metrics."),
        (lambda d: d.update(time="1 s"), "time"),
        (lambda d: d.update(time=-1.0), "time"),
        (lambda d: d["spans"].__setitem__(0, d["spans"][0][:2]), "spans[0]"),
        (lambda d: d["spans"][0].__setitem__(2, "a"), "spans[0][2]"),
        (lambda d: d["resources"].update(x=3), "resources.x"),
        (lambda d: d.update({"spans[": d.pop("spans")}), "spans["),
        (lambda d: d["metrics"].update({"a[": {"value": "x"}}), "metrics.a[.value"),
        (lambda d: d["resources"].update(x={"kind": "x", "capacity": 1, "work": 1}), "resources.x.kind"),
    ],
)
def test_saved_results_with_something_else_in_a_place(here, refused, change, place):
    data = json.loads(sources.results()[0])
    change(data)
    (here / "r.json").write_text(json.dumps(data, indent=1))
    err = read(refused, "r.json")
    assert "r.json:" in err
    assert f"not a saved result: {place}" in err


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda d: d["ops"][0].__setitem__(1, "x"), "ops[0][1]"),
        (lambda d: d["ops"][0].__setitem__(1, []), "ops[0][1]"),
        (lambda d: d["ops"][0].__setitem__(3, [[]]), "ops[0][3]"),
        (lambda d: d["tensors"].__setitem__(0, "0"), "tensors[0]"),
        (lambda d: d["storages"][0].__setitem__(2, 99), "storages[0][2]"),
        (lambda d: d["parameters"][0].__setitem__(1, [10**12] * 4), "parameters"),
        (lambda d: d["gradients"][0].__setitem__(0, 10**8), "gradients[0]"),
        (lambda d: d.update(forward=[1]), "forward"),
    ],
)
@pytest.mark.parametrize("command", ["zoo show m.json", "run s.toml"])
def test_models_that_contradict_themselves(here, refused, change, place, command):
    (model, *_) = sources.sources()["model"]
    data = model.tree()
    change(data)
    (here / "m.json").write_text(json.dumps(data, indent=1))
    (here / "s.toml").write_text(model.beside["s.toml"])
    err = refused(*command.split())
    assert f": {place}" in err
    assert "m.json:" in err


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"value": float("nan")}, "constant.rate"),
        ({"value": -5e11}, "constant.rate"),
        ({"value": 0.0}, "constant.rate"),
        ({"value": 1e300}, "constant.rate"),
        ({"value": "fast"}, "constant.rate.value"),
        ({"draws": [-50.0]}, "constant.rate.draws[0]"),
        ({"draws": [0.0]}, "constant.rate"),
        ({"low": 2e12, "high": 1e12}, "constant.rate"),
        ({"stderr": -1.0}, "constant.rate.stderr"),
        ({"unit": "B"}, "constant.rate.unit"),
    ],
)
def test_profiles_of_numbers_that_cannot_be(here, refused, change, place):
    model = sources.PROFILE["model"]["kernel.elementwise-fp32"]
    changed = {**model, "constant": {**model["constant"], "rate": {**model["constant"]["rate"], **change}}}
    data = {**sources.PROFILE, "model": {**sources.PROFILE["model"], "kernel.elementwise-fp32": changed}}
    (here / "p.toml").write_text(tomli_w.dumps(data))
    (here / "k.toml").write_text(sources.PROFILED % "additions")
    for words in (("check", "p.toml"), ("run", "k.toml"), ("run", "k.toml", "--samples", "3")):
        err = refused(*words)
        assert "p.toml:" in err
        assert f"model.kernel.elementwise-fp32.{place}" in err


@pytest.mark.parametrize("key", ["overhead", "rate"])
def test_a_kernel_of_a_profile_has_a_fixed_time_and_a_rate(here, refused, key):
    model = sources.PROFILE["model"]["kernel.elementwise-fp32"]
    without = {name: one for name, one in model["constant"].items() if name != key}
    other = {**without, "odd": {**model["constant"][key], "unit": "1"}}
    (here / "k.toml").write_text(sources.PROFILED % "additions")
    for constant, told in ((without, f"constant: the constant {key} is missing"), (other, "constant.odd: no formula")):
        changed = {"kernel.elementwise-fp32": {**model, "constant": constant}}
        (here / "p.toml").write_text(tomli_w.dumps({**sources.PROFILE, "model": changed}))
        assert told in refused("check", "p.toml")
        assert told in refused("run", "k.toml")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda row: row["samples"].__setitem__(0, 0.0), "measurements[3]: samples are times above 0"),
        (lambda row: row["samples"].__setitem__(0, 1e300), "measurements[3]: samples are at most"),
        (lambda row: row["samples"].__setitem__(0, "1"), "measurements[3]: samples must be numbers"),
        (lambda row: row["at"].update(ranks=10**9), "measurements[3]: at.ranks"),
        (lambda row: row["at"].update(ranks=4.5e-4), "measurements[3]: at.ranks"),
        (lambda row: row["at"].update(burst=float("inf")), "measurements[3].at.burst: not a data set: a finite number"),
        (lambda row: row.update(series=3), "measurements[3]: series"),
    ],
)
def test_recordings_of_numbers_that_cannot_be(here, refused, change, place):
    data = sources.sources()["recording"][1].tree()
    change(data["measurements"][3])
    (here / "b.json").write_text(json.dumps(data, indent=1))
    for words in (("calibrate", "cluster", "--replay", "b.json"), ("calibrate", "fit", "b.json")):
        err = refused(*words)
        assert "b.json:" in err
        assert place in err


@pytest.mark.parametrize("name", ["t.csv", "sends.csv", "n.txt"])
@pytest.mark.parametrize("text", ["x" * 200_000, "\n" * 300_000], ids=["line", "lines"])
def test_logs_and_tables_without_an_end(here, refused, name, text):
    (source,) = [one for one in sources.sources()["log"] if one.name == name]
    (here / name).write_bytes(b"\n".join([*source.raw.splitlines()[:2], b'"' + text.encode()]))
    command = "fit" if name == "sends.csv" else "import"
    err = refused("calibrate", command, name)
    assert (f"{name}:3: a line of 200,001 characters" if "x" in text else f"{name}: 300,002 lines") in err


def test_sends_that_determine_nothing(here, refused):
    (here / "sends.csv").write_text("nbytes,seconds\n1,1e-9\n1000,1e300\n100000,1e-300\n")
    assert "sends.csv:3: seconds: a number is expected" in refused("calibrate", "fit", "sends.csv")


@pytest.mark.parametrize("name", ["t.json", "n.json", "n.txt", "t.csv"])
def test_numbers_of_thousands_of_digits_in_logs(here, refused, name):
    (source,) = [one for one in sources.sources()["log"] if one.name == name]
    end = source.raw.rindex(b"5") if name.endswith("json") else source.raw.rindex(b"1")
    (here / name).write_bytes(source.raw[:end] + b"9" * 5000 + source.raw[end:])
    assert "a number of 5,0" in refused("calibrate", "import", name)


def test_events_of_a_trace_that_are_none(here, capsys):
    data = json.loads(json.dumps(sources.KINETO))
    for change in ({"args": 3}, {"args": "x"}, {"dur": "x"}, {"ts": []}, {"dur": 1e300}, {"args": {"device": []}}):
        data["traceEvents"].append({**data["traceEvents"][2], **change})
    data["deviceProperties"] = 3
    (here / "t.json").write_text(json.dumps(data))
    assert main(["calibrate", "import", "t.json", "-o", "out.json"]) == 0
    assert "6 events without a time, a length or a stream were not read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("run", "training/overlap", "--set", "program.slowdown=1e18"), "--set: program.slowdown: "),
        (("run", "training/overlap", "--set", "program.states=-1"), "--set: program.states: "),
        (("run", "training/epoch-imagenet", "--set", "program.disk=nosuch"), "program.disk"),
        (("run", "d2l/async", "--set", "program.jitter=1e18"), "program.jitter"),
        (
            ("run", "training/jitter-stragglers", "--set", "program.jitter=lognormal", "--set", "program.cv=1e18"),
            "--set: program.cv: a number from 0 to 10",
        ),
        (("limits", "d2l/async", "--set", "program.n=20", "--vary", "speed.zzz=1..:3"), "--vary: speed.zzz"),
        (("sweep", "d2l/async", "--vary", "run.seed=1,2", "--design", "lhs", "--points", "9999999"), "--points"),
    ],
)
def test_numbers_of_scenarios_that_cannot_be(refused, words, place):
    assert place in refused(*words)


def test_whole_numbers_that_no_float_holds(here, refused):
    huge = "9" * 400
    (here / "s.toml").write_text(
        f'[program]\nuse = "async-chain"\n[expect]\ntime = {huge}\n[scenario]\ntitle = {huge}\n'
    )
    err = refused("check", "s.toml")
    assert "s.toml:4: expect.time: a whole number of at most 64 bits" in err
    assert "s.toml:6: scenario.title: a whole number of at most 64 bits" in err


def test_a_name_that_an_option_gives_is_blamed_on_it(refused):
    err = refused("sweep", "d2l/async", "--vary", "program.n=1,2", "--no-cache", "--engine", "abacus:3")
    assert "--engine: unknown engine 'abacus'" in err


def test_a_table_of_collectives_names_the_file(here, refused):
    (here / "t.csv").write_text("size [MiB],time [us],ranks\n1,50,x8\n")
    assert "t.csv: " in refused("collective", "all-reduce", "--server", "dgx-a100", "--measured", "t.csv")


def test_passes_that_take_no_time(here, capsys):
    (here / "s.toml").write_text(
        '[machine]\nuse = "dgx-1v"\n[program]\nuse = "train"\nbatch = 8\nsteps = 2\nforward = "0 s"\nbackward = "0 s"\n'
    )
    code = main(["run", "s.toml"])
    err = capsys.readouterr().err
    assert "defect" not in err
    assert "Traceback" not in err
    assert code == 0, err


def test_a_machine_is_named_by_use(here, refused):
    (here / "s.toml").write_text('[machine]\nserver = "dgx-h100"\n[program]\nuse = "async-chain"\n')
    err = refused("check", "s.toml")
    assert "s.toml:2: machine.server: a machine is named by `use`" in err
    assert 'use = "dgx-h100"' in err


def test_constants_of_another_kind_of_device(here, refused):
    (here / "d.json").write_bytes(sources.sources()["recording"][0].raw)
    (here / "p.toml").write_text(tomli_w.dumps(sources.PROFILE))
    assert "model.kernel.elementwise-fp32: the constants" in refused("calibrate", "validate", "p.toml", "d.json")


@pytest.mark.parametrize("delay", [0.02, 0.1, 0.3])
def test_ctrl_c_while_packages_are_imported(delay):
    code = "from simperf.cli import main; print(flush=True); raise SystemExit(main(['run', 'd2l/async']))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        err = process.communicate()[1]
    assert "defect" not in err
    assert "Traceback" not in err or process.returncode == -signal.SIGINT, err
    # Python ends itself by SIGINT where an interrupt has passed through its exec(), as in a dataclass's definition
    assert process.returncode in (0, 130, -signal.SIGINT), err


@pytest.mark.parametrize("option", ["--save", "--trace", "--plot", "--report"])
def test_a_name_that_is_too_long_is_told_by_its_option(refused, option):
    err = refused("run", "d2l/async", option, "x" * 5000)
    assert f"error: {option}: xxx" in err
    assert "File name too long" in err
    assert len(err) < 500


@pytest.mark.parametrize(
    ("change", "place"),
    [({"num_hidden_layers": True}, "num_hidden_layers: a whole number"), ({"vocab_size": -1}, "vocab_size: a whole")],
)
def test_a_configuration_is_blamed_by_its_own_keys_and_lines(here, refused, change, place):
    data = {**sources.CONFIG, **change}
    (here / "config.json").write_text(json.dumps(data, indent=1))
    (here / "s.toml").write_text(sources.MODEL % 'config = "config.json"')
    assert f"config.json:{2 + list(data).index(*change)}: {place}" in refused("run", "s.toml")


def test_a_key_without_a_name_is_shown(here, refused):
    (here / "s.toml").write_text('"" = 1\n[program]\nuse = "async-chain"\n')
    assert 's.toml:1: "": unknown table' in refused("check", "s.toml")


def test_check_and_show_run_no_code(here, capsys):
    ran, inner = here / "ran", here / "inner"
    inner.mkdir()
    code = f"from pathlib import Path\nPath({str(ran)!r}).touch()\ndef work(m):\n    yield m.sleep(1e-3)\n"
    (here / "outside.py").write_text(code)
    toml = inner / "s.toml"
    toml.write_text('[machine]\nuse = "p3-2xlarge"\n[program]\npython = "../outside.py:work"\n')
    saved = json.loads(sources.results()[0])
    saved["scenario"] = {"program": {"python": "../outside.py:work"}}
    (inner / "r.json").write_text(json.dumps(saved))
    for words in (["check", str(toml)], ["show", str(inner / "r.json")]):
        assert main(words) == 0, capsys.readouterr().err
        assert not ran.exists(), words
    capsys.readouterr()
    for words in (["run", str(toml)], ["check", "--run", str(toml)]):
        ran.unlink(missing_ok=True)
        main(words)
        assert ran.exists(), words
        assert "outside.py" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="limits of POSIX")
def test_the_fastest_of_many_ranks_is_answered_within_the_limits_of_a_case(here):
    words = ["broadcast", "--topology", "fully-connected", "--ranks", "50000", "--best", "-b", "1M", "-e", "1M"]
    outcome = play(lambda: main(["collective", *words]), here)
    assert outcome.code == 0, outcome
    assert "left out: ring" in outcome.err


def test_an_option_of_an_operation_without_a_name_is_told(here, capsys):
    (here / "s.toml").write_text(
        '[program]\nuse = "operations"\nops = [{ op = "cos", elements = 8, "" = 1 }]\n', "utf-8"
    )
    assert main(["run", "s.toml"]) == 2
    err = capsys.readouterr().err
    assert "s.toml:3: program.ops[0].: cos has" in err
    assert "has no parameter ''" in err
    assert "defect" not in err
