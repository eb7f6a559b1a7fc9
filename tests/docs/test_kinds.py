"""Each page of the docs keeps to its kind: its length, and what a page of that kind has to have."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"^```.*?^```$|^    .*$", re.DOTALL | re.MULTILINE)
#: words of prose, tables included, that a page of a kind may have
LIMITS = {"tutorials": 900, "how-to": 600, "explanation": 4000}
#: the tutorials of the three kinds of users; other pages of the folder are parts that these lead to
TUTORIALS = {"planner": "nvl72", "engineer": "which-layout", "teacher": "teacher"}
#: how-tos that must be there
ASKED = ("nccl-tests-log", "what-if", "slow-host", "add-a-server", "my-model-on-my-cluster", "trace-a-model")
FIXTURES = sorted((ROOT / "tests" / "goldens" / "fixtures").rglob("*.json"))


def pages(kind):
    """Pages of a kind; an index, and the page that is one table of all mechanisms, have no text to limit."""
    return sorted(path for path in (DOCS / kind).glob("*.md") if path.stem not in ("index", "mechanisms"))


def words(path):
    return len(CODE.sub("", path.read_text("utf-8")).split())


@pytest.mark.parametrize("kind", LIMITS)
def test_no_page_is_longer_than_its_kind_may_be(kind):
    assert {path.name: words(path) for path in pages(kind) if words(path) > LIMITS[kind]} == {}


@pytest.mark.parametrize("user", TUTORIALS)
def test_each_user_has_a_tutorial_that_ends_in_a_decision(user):
    text = (DOCS / "tutorials" / f"{TUTORIALS[user]}.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert "The decision" in headings[-2:], headings
    for front in ("index.md", "../README.md", "../README.zh.md"):
        assert f"tutorials/{TUTORIALS[user]}.md" in (DOCS / front).read_text("utf-8"), front


@pytest.mark.parametrize("name", ASKED)
def test_a_how_to_that_users_ask_for_is_there(name):
    assert f"how-to/{name}.md" in (ROOT / "README.md").read_text("utf-8") or name in (
        DOCS / "how-to" / "index.md"
    ).read_text("utf-8")
    assert (DOCS / "how-to" / f"{name}.md").is_file()


@pytest.mark.parametrize("path", pages("how-to"), ids=lambda path: path.stem)
def test_a_how_to_shows_a_command_or_code(path):
    assert re.search(r"^```|^    simperf ", path.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", pages("explanation"), ids=lambda path: path.stem)
def test_an_explanation_has_no_log_of_measurements(path):
    log = ("Against measurements", "Validation", "Validity", "How far this holds", "Sessions", "Errors in short")
    headings = re.findall(r"^## (.*)$", path.read_text("utf-8"), re.MULTILINE)
    assert [heading for heading in headings if heading in log] == []


def test_validation_is_headed_by_the_accuracy_page():
    index = (DOCS / "validation" / "index.md").read_text("utf-8")
    listed = re.findall(r"^(?:[^<\n]*<)?(\S+?)>?$", index[index.index("{toctree}") :], re.MULTILINE)
    assert next(name for name in listed if "/" in name) == "../accuracy"
    assert {path.stem for path in pages("validation")} <= set(listed)


def test_every_metric_of_a_shipped_scenario_is_defined():
    page = (DOCS / "reference" / "metrics.md").read_text("utf-8")
    defined = {
        name
        for line in page.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    found = set()
    for path in FIXTURES:
        for variant in json.loads(path.read_text("utf-8"))["variants"].values():
            found |= {re.sub(r"\d+", "N", name) for name in variant.get("metrics", {})}
    assert len(found) > 100
    assert sorted(found - defined) == []


def test_every_term_is_in_a_table_with_its_meaning():
    page = (DOCS / "reference" / "terms.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    assert all(len(row) == 2 and all(cell.strip() for cell in row) for row in rows)
