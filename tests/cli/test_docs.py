"""The reference pages name every command, option, table and key, and their examples work."""

import re
from pathlib import Path

import pytest

from simperf.analysis.breakdown import IDLE, PRIORITY
from simperf.analysis.regime import REGIMES
from simperf.cli.app import command
from simperf.execution import MODES
from simperf.hardware.kinds import MODELS
from simperf.scenario.load import TABLES
from simperf.scenario.schema import HeadTable

DOCS = Path(__file__).parents[2] / "docs" / "reference"
CLI, SCENARIO = (DOCS / "cli.md").read_text("utf-8"), (DOCS / "scenario.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", SCENARIO, re.DOTALL)


def test_every_command_and_option_is_in_the_page():
    root = command()
    for name, one in root.commands.items():
        assert f"`simperf {name}" in CLI
        for sub in getattr(one, "commands", {}):
            assert f"simperf {name} {sub}" in CLI
        for each in getattr(one, "commands", {name: one}).values():
            for option in each.params:
                names = [text for text in (*option.opts, *option.secondary_opts) if text.startswith("--")]
                assert not names or any(re.search(rf"`{text}(?![a-z-])", CLI) for text in names), (name, names)


def test_every_table_and_word_is_in_the_page():
    for table in TABLES:
        assert f"### `[{table}]`" in SCENARIO or f"### `[[{table}]]`" in SCENARIO
    frontend = set(MODELS["frontend"].model_fields) - {"kind", "title", "source"}
    for word in (*HeadTable.model_fields, *MODES, *REGIMES, *PRIORITY, IDLE, *frontend):
        assert word in SCENARIO, word


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "toml"])
def test_the_examples_work(simperf, tmp_path, text):
    (tmp_path / "parts").mkdir()
    (tmp_path / "s.toml").write_text(text)
    code, out, err = simperf("check", "--run", "s.toml")
    assert (code, err) == (0, ""), out


def test_the_program_of_ones_own_works(simperf, tmp_path):
    (program,) = (text for kind, text in BLOCKS if kind == "python")
    (tmp_path / "mine.py").write_text(program)
    (tmp_path / "s.toml").write_text(
        '[program]\npython = "mine.py:steps"\nn = 5\n[expect]\nkind = "regression"\ntime = "5 ms"\n'
    )
    assert simperf("run", "s.toml")[0] == 0
