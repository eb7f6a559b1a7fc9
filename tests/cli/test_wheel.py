"""What somebody sees first: the wheel alone, in an empty folder, without a network."""

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: runs when Python starts: whoever asks for a network gets an error that no test could miss
OFFLINE = """
import socket

def refuse(*_, **__):
    raise RuntimeError("asked for the network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel's content in a folder of its own."""
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = folder.glob("*.whl")
    zipfile.ZipFile(file).extractall(folder / "site")
    (folder / "site" / "sitecustomize.py").write_text(OFFLINE)
    return folder / "site"


@pytest.fixture
def run(wheel, tmp_path):
    def call(*words):
        environment = {**os.environ, "PYTHONPATH": str(wheel), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
        folder = tmp_path / "empty"
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "simperf", *words]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return call


def test_the_five_commands_work_from_the_wheel_offline_in_an_empty_folder(run, wheel, tmp_path):
    first = run()
    assert first.returncode == 0, first.stderr
    assert "predicts how long deep-learning work takes" in first.stdout
    commands = [line.split("   ")[0].strip() for line in first.stdout.splitlines() if line.startswith("  simperf ")]
    assert len(commands) == 5
    for line in commands:
        done = run(*shlex.split(line)[1:])
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout
    where = subprocess.run(
        [sys.executable, "-c", "import simperf; print(simperf.__file__)"],
        env={**os.environ, "PYTHONPATH": str(wheel)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.strip().startswith(str(wheel)), "the wheel was not what ran"


def test_lessons_and_reports_are_in_the_wheel(run, tmp_path):
    assert "regimes" in run("lesson", "list").stdout
    done = run("run", "d2l/copy-overlap", "--report", "overlap.html")
    assert done.returncode == 0, done.stderr
    assert "</html>" in (tmp_path / "empty" / "overlap.html").read_text("utf-8")
