"""Exit codes, streams and messages of the command line as a whole."""

import os
import signal
import subprocess
import sys
import time

import pytest
import typer

import simperf.cli
from simperf.cli import app, main
from simperf.errors import DeviceMemoryError, InputError, Problem


def raising(monkeypatch, error):
    def invoke(words):
        raise error

    monkeypatch.setattr(simperf.cli, "_invoke", invoke)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(3), 3, ""),
        (DeviceMemoryError("gpu0 is full"), 2, "error: gpu0 is full\n"),
        (InputError([Problem("a"), Problem("b", file="f", line=3)]), 2, "error: a\nerror: f:3: b\n"),
        (PermissionError(13, "Permission denied", "out.json"), 2, "error: out.json: Permission denied\n"),
        (MemoryError(), 2, "error: this computer has not enough memory"),
        (ZeroDivisionError("division by zero"), 2, "error: ZeroDivisionError: division by zero\nThis is a defect"),
    ],
)
def test_exceptions_become_codes_and_words(monkeypatch, capsys, error, code, text):
    raising(monkeypatch, error)
    assert main([]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == text or (text and err.startswith(text))


def test_debug_shows_the_traceback(monkeypatch, capsys):
    raising(monkeypatch, ZeroDivisionError("x"))
    for words, environment in ((["run", "--debug"], ""), ([], "1")):
        monkeypatch.setenv("SIMPERF_DEBUG", environment)
        assert main(words) == 2
        assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("SIMPERF_DEBUG", "0")
    assert main([]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_without_arguments_it_says_what_it_is_and_what_to_try(simperf):
    code, out, err = simperf()
    assert (code, err) == (0, "")
    assert len([line for line in out.splitlines() if line.startswith("  simperf ")]) == 5


def test_what_it_says_to_try_works_in_an_empty_folder(simperf, tmp_path):
    import shlex

    for line in simperf()[1].splitlines():
        if line.startswith("  simperf "):
            words = shlex.split(line.split("   ")[0])[1:]
            code, out, err = simperf(*words)
            assert code == 0, err
            assert out
    assert [path.name for path in tmp_path.iterdir()] == ["overlap.json.gz"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["rn"], "did you mean 'run'"),
        (["scenarios", "lst"], "did you mean 'list'"),
        (["run"], "Missing argument 'FILE'"),
        (["run", "a", "b"], "unexpected extra argument"),
        (["run", "d2l/async", "--fromat", "json"], "--format"),
        (["run", "d2l/async", "--format", "xml"], "'table', 'json', 'csv'"),
        (["run", "d2l/async", "--seed", "x"], "--seed"),
        (["check"], "name a file"),
        (["scenarios"], "list"),
        (["catalog"], "show"),
    ],
)
def test_wrong_command_lines_exit_2_and_say_what_is_right(simperf, words, text):
    code, out, err = simperf(*words)
    assert (code, out) == (2, "")
    assert text.lower() in err.lower()
    assert "simperf" in err


def test_help_and_version(simperf):
    from simperf import __version__

    code, out, err = simperf("--help")
    assert (code, err) == (0, "")
    for command in ("run", "compare", "check", "show", "schema", "scenarios", "catalog", "topo", "collective"):
        assert f"\n  {command} " in out
    assert simperf("--version") == (0, f"simperf {__version__}\n", "")


def test_every_command_has_a_help_text(simperf):
    root = app.command()
    for name, command in root.commands.items():
        for words in [[name], *([name, sub] for sub in getattr(command, "commands", {}))]:
            code, out, _ = simperf(*words, "--help")
            assert code == 0
            assert "Usage" in out


def process(*words, **options):
    command = [sys.executable, "-c", "import sys; from simperf.cli import main; sys.exit(main())", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_as_a_process_it_gives_codes_and_streams(tmp_path):
    good, bad = process("run", "d2l/async", cwd=tmp_path), process("run", "nothing", cwd=tmp_path)
    out, _ = good.communicate(timeout=60)
    assert good.returncode == 0
    assert "200.0 ms" in out
    out, err = bad.communicate(timeout=60)
    assert (bad.returncode, out) == (2, "")
    assert err.startswith("error: nothing: no such file")


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    with process("schema", cwd=tmp_path) as child:
        child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == ""
        assert child.wait(timeout=60) == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_is_quiet_and_leaves_no_half_written_file(tmp_path):
    words = ("run", "d2l/async", "--set", "program.n=100_000_000", "--force", "--save", "out.json")
    with process(*words, cwd=tmp_path) as child:
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        try:
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()  # it would fill the memory
    assert (child.returncode, out, err) == (130, "", "")
    assert list(tmp_path.iterdir()) == []


OWN = """
import os, signal, sys
from simperf import compute
from simperf.files import atomic_writer


def killed(m):
    with atomic_writer("half.txt") as stream:
        stream.write(b"half")
        os.kill(os.getpid(), signal.SIGTERM)
        yield compute(1.0)


def leaves(m):
    yield compute(1.0)
    sys.exit(3)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_termination_leaves_no_half_written_file(simperf, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "s.toml").write_text('[program]\npython = "own.py:killed"\n')
    assert simperf("run", "s.toml") == (143, "", "runs the code of own.py, which the scenario names\n")
    assert {path.name for path in tmp_path.iterdir()} == {"own.py", "s.toml"}
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_code_of_ones_own_cannot_end_python(simperf, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "s.toml").write_text('[program]\npython = "own.py:leaves"\n')
    code, out, err = simperf("run", "s.toml")
    assert (code, out) == (2, "")
    assert "sys.exit(3)" in err
    (tmp_path / "own.py").write_text("import sys\n\nsys.exit(0)\n")
    code, out, err = simperf("run", "s.toml")
    assert (code, out) == (2, "")
    assert "own.py:3: SystemExit while it was loaded" in err


def test_two_outputs_are_two_files(simperf):
    code, out, err = simperf("run", "d2l/async", "--save", "a.json", "--trace", "a.json")
    assert (code, out) == (2, "")
    assert "--save: a.json: --trace writes the same file" in err


def test_as_a_module_it_is_the_same_command(tmp_path):
    words = [sys.executable, "-m", "simperf", "--version"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.startswith("simperf ")
