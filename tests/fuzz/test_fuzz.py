"""Mutated files and options: nothing ends in a traceback, without an end, or in a number that cannot be."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.cases import SHARES, make_case
from tests.fuzz.findings import finding
from tests.fuzz.limits import Outcome

ROOT = Path(__file__).parents[2]
CASES = 150


def test_mutated_files_and_options_are_told_or_played():
    command = [sys.executable, "-m", "tests.fuzz", "--cases", str(CASES), "--seed", "fixed"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_is_the_same_each_time_and_every_kind_is_met():
    cases = [make_case("here", number) for number in range(60)]
    assert cases == [make_case("here", number) for number in range(60)]
    assert cases != [make_case("there", number) for number in range(60)]
    kinds = {case.changed.partition(":")[0] for case in cases}
    assert len(kinds) >= len(SHARES) - 3
    assert sum(bool(case.special) for case in cases) < 10


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Outcome(0, "fine", "", 1.0), ""),
        (Outcome(0, '{"time": 1e-3, "value": 2}', "", 1.0), ""),
        (Outcome(0, '{"time": NaN}', "", 1.0), "number"),
        (Outcome(0, '{"a": {"time": -1.0}}', "", 1.0), "number"),
        (Outcome(0, '{"a": {"value": -1.0, "unit": "B"}}', "", 1.0), "number"),
        (Outcome(0, "time  nan s", "", 1.0), "number"),
        (Outcome(2, "", "error: s.toml:3: machine.use: unknown\n", 1.0), ""),
        (Outcome(2, "", "error: it does not work\n", 1.0), "no place"),
        (Outcome(2, "", "", 1.0), "no message"),
        (Outcome(2, "", "error: TypeError: x\nThis is a defect of simperf, please report it", 1.0), "caught traceback"),
        (Outcome(1, "", "Traceback (most recent call last):\n  x\nTypeError", 1.0), "traceback"),
        (Outcome(2, "", "error: this computer has not enough memory for the simulation", 1.0), "memory"),
        (Outcome(-24, "", "", 20.0), "no end"),
        (Outcome(70, "", "", 1.0), "exit code"),
    ],
)
def test_what_must_not_happen_is_found(outcome, kind):
    assert finding(outcome, make_case("here", 0))[0] == kind


def test_a_case_is_ended_at_its_limits(tmp_path):
    code = "import sys; sys.path.insert(0, sys.argv[1]); from tests.fuzz import limits; limits.SECONDS = 1; "
    code += "from pathlib import Path; here = Path(sys.argv[2]); "
    loops = {"while True: pass": -24, "x = bytearray(3 * 10**9)": 1, "return 3": 3, "import time; time.sleep(60)": -14}
    for index, (body, expected) in enumerate(loops.items()):
        folder = tmp_path / str(index)
        folder.mkdir()
        own = f"{code}\ndef work():\n    {body}\nprint(limits.play(work, here).code)"
        done = subprocess.run(
            [sys.executable, "-c", own, str(ROOT), str(folder)], capture_output=True, text=True, timeout=300, check=True
        )
        assert int(done.stdout) == expected, body
