"""The pages on parts of people's own: files are read, commands work, every key is named."""

import re
import shlex
from pathlib import Path

import pytest

from simperf.cli import main
from simperf.hardware.kinds import MODELS
from simperf.hardware.wiring import ClusterSpec, FabricSpec, GroupSpec, LinkSpec, NodeSpec, PriceSpec, ServerSpec

DOCS = Path(__file__).parents[2] / "docs"
HOW_TO = (DOCS / "how-to" / "parts-of-your-own.md").read_text("utf-8")
PARTS = (DOCS / "reference" / "parts.md").read_text("utf-8")
#: a file, with its name as caption
FILE = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch, own_collectives):
    """All files of the page."""
    for name, text in FILE.findall(HOW_TO):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_page_work(folder, capsys):
    commands = re.findall(r"^    (simperf .*)$", HOW_TO, re.MULTILINE)
    assert len(commands) >= 7
    for line in commands:
        assert main(shlex.split(line)[1:]) == 0, (line, capsys.readouterr().err)
    out = capsys.readouterr().out
    assert "time is as expected: 20.02 ms" in out
    assert (folder / "work.png").stat().st_size > 10_000
    own, ring = re.split(r"^# ring.*\n", re.split(r"^# my-ring.*\n", out, flags=re.MULTILINE)[-1], flags=re.MULTILINE)
    own_rows, rows = ([line.split()[:2] for line in text.splitlines() if line[:1] != "#"] for text in (own, ring))
    assert len(rows) == 3
    assert own_rows == rows


def test_the_parts_of_the_page_can_exist_and_its_collective_is_right(folder):
    from simperf.testing import check_collective, check_part

    check_part(folder / "parts" / "my-gpu.toml")
    check_part(folder / "parts" / "my-link.toml")
    exec((folder / "my_ring.py").read_text(), {})
    test = (folder / "test_my_ring.py").read_text().replace("import my_ring", "")
    space = {}
    exec(test, space)
    space["test_every_contribution_arrives_once"]()
    wrong = (folder / "my_ring.py").read_text().replace("steps=2 * rounds", "steps=rounds").replace("my-ring", "wrong")
    exec(wrong, {})
    with pytest.raises(AssertionError, match="the plan claims 1"):
        check_collective("all-reduce/wrong")


def test_every_key_of_every_kind_is_named():
    tables = (ServerSpec, NodeSpec, LinkSpec, PriceSpec, ClusterSpec, GroupSpec, FabricSpec)
    kinds = {kind: model for kind, model in MODELS.items() if kind != "profile"}
    for kind in (*kinds, "server", "cluster"):
        assert f"`{kind}`" in PARTS
    for model in (*kinds.values(), *tables):
        for key, entry in model.model_fields.items():
            assert f"`{key}`" in PARTS, (model, key)
            if model not in tables and entry.is_required() and key not in ("kind", "title"):
                assert f"**`{key}`**" in PARTS, (model, key)
