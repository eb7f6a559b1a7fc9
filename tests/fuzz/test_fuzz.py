"""Mutated files and options: nothing ends in a traceback, without an end, or in a number that cannot be."""

import subprocess
import sys
from pathlib import Path

from tests.fuzz.cases import SHARES, make_case

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
