"""The code on every page runs, and its links lead somewhere."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "calibration").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: a file that a page shows whole, with its name as caption
FILE = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def name(page):
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text("utf-8"))], ids=name)
def test_code_blocks_run_one_after_the_other(page, monkeypatch, tmp_path, capsys):
    if re.search(r"(import|from) torch\b", page.read_text("utf-8")) and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed, which the code on this page needs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for file, text in FILE.findall(page.read_text("utf-8")):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, "utf-8")
    space = {"__name__": "page"}
    for block in BLOCK.findall(page.read_text("utf-8")):
        exec(compile(block, str(page), "exec"), space)
    if page.name == "README.md" and page.parent == ROOT:
        assert capsys.readouterr().out == "200.02 ms\n", "the README shows this output"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_inside_the_repository_lead_somewhere(page):
    targets = [target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_link_that_shows_a_file_leads_to_that_file(page):
    shown = re.findall(r"\[`?([\w/]+\.(?:py|toml|md))`?\]\(([^)#\s]+)", page.read_text("utf-8"))
    assert [(text, target) for text, target in shown if not f"/{target}".endswith(f"/{text}")] == []
