"""Which tests one process runs, where several share the work."""

import re
from pathlib import Path

import pytest

from tests.conftest import TOGETHER, scope

ROOT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(ROOT.glob("tests/**/test_*.py"))}


def test_a_file_is_one_piece_of_work():
    assert scope("tests/engine/test_share.py::test_a[b::c]") == scope("tests/engine/test_share.py::test_d")
    assert scope("tests/truth/test_layers.py::test_x[a]") == "tests/truth/test_layers.py"


def test_shipped_scenarios_are_played_by_the_process_that_keeps_their_runs():
    """Each is played once a process, which takes minutes for all of them."""
    measured, others = "runs of measured scenarios", "runs of all other scenarios"
    line = re.compile(r"^from tests\.(truth\.runs import .*attempts|goldens\.scenario_runs)", re.MULTILINE)
    users = [name for name, text in FILES.items() if line.search(text)]
    assert len(users) >= 5
    for name in users:
        every = "/truth/" not in name
        assert scope(f"{name}::test_x[measured/x]" if every else f"{name}::test_x") == measured, name
        if every:
            assert scope(f"{name}::test_x[d2l/x]") == others, name


@pytest.mark.parametrize("name", TOGETHER)
def test_what_belongs_together_exists(name):
    ends = ("::test_x", "::test_x[measured/x]", "::test_x[fits]")
    assert len({file for file in FILES for end in ends if scope(file + end) == name}) >= 2
