"""Start of the command line, beside a bare interpreter.

pytest tests/benchmarks/test_startup.py --benchmark-enable --benchmark-columns=median

The goals, on one core of an ordinary server: `simperf --help` in 0.4 s, `simperf run` of a
book scenario in 1 s, both as whole processes.
"""

import subprocess
import sys

import pytest

MAIN = "import sys; from simperf.cli import main; sys.exit(main())"


@pytest.mark.parametrize(
    "words",
    [None, ["--help"], ["run", "d2l/sync-160mb"], ["compare", "d2l/sync-160mb"], ["run", "d2l/async"]],
    ids=lambda words: "python -c pass" if words is None else "simperf " + " ".join(words),
)
def test_start(benchmark, words, tmp_path):
    command = [sys.executable, "-c", "pass"] if words is None else [sys.executable, "-c", MAIN, *words]

    def start():
        return subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60, check=False).returncode

    assert benchmark.pedantic(start, rounds=5, warmup_rounds=1) == 0
