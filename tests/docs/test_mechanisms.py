"""Every mechanism has a page or a row: equation, assumptions, source, what holds it, and its one file of physics."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for kind in ("explanation", "validation") for page in (ROOT / "docs" / kind).glob("*.md"))
TABLES = ROOT / "docs" / "explanation" / "mechanisms.md"
#: packages whose every module is a mechanism
PACKAGES = ("engine", "cost", "layout", "memory", "execution")
PACKAGES += (
    "training",
    "training/data",
    "training/servers",
    "training/failures",
    "training/sharded",
    "training/pipelined",
)
PACKAGES += ("collectives", "collectives/plans", "schedules", "schedules/plans", "analysis", "study")
PACKAGES += (
    "workload/transformers",
    "study/planning",
    "study/collective",
    "calibrate/fit",
    "accuracy",
    "accuracy/fits",
    "accuracy/leave_out",
)
#: modules of other packages that are
WORK = ("op", "graph", "builders", "precision", "fusion", "model", "traced", "step", "lowering", "mixed", "optimizers")
MORE = tuple(f"workload/{name}.py" for name in (*WORK, "footprint"))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def links(page):
    return {(page.parent / target).resolve() for target in LINK.findall(page.read_text("utf-8")) if "://" not in target}


def rows():
    """Cells of each row of each table of mechanisms."""
    found = []
    for line in TABLES.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip()[1:-1].split("|")]
        if line.startswith("|") and not line.startswith(("| mechanism", "|---")):
            found.append(cells)
    return found


def test_every_module_of_a_mechanism_is_reached_from_some_page():
    reached = set().union(*(links(page) for page in PAGES))
    modules = [path for package in PACKAGES for path in sorted((ROOT / "simperf" / package).glob("*.py"))]
    modules = [path for path in modules if path.name != "__init__.py"]
    modules += [ROOT / "simperf" / name for name in MORE]
    assert len(modules) > 120
    assert [path.relative_to(ROOT).as_posix() for path in modules if path not in reached] == []


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0].partition(":")[0])
def test_every_row_has_rule_assumptions_source_and_what_holds_it(cells):
    assert len(cells) == 5, cells
    assert all(cells), cells
    assert "simperf/" in cells[0]
    assert "../../tests/" in cells[4]


def test_the_table_is_not_empty():
    assert len(rows()) > 60


def test_no_other_package_is_forgotten():
    packages = {path.name for path in (ROOT / "simperf").iterdir() if path.is_dir() and not path.name.startswith("_")}
    other = {"hardware", "workload", "programs", "scenario", "report", "teach", "cli", "calibrate", "frameworks"}
    assert packages == {package.partition("/")[0] for package in PACKAGES} | other


def test_the_architecture_page_lists_every_package():
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    listed = re.findall(r"^      (\w+)/ ", page, flags=re.MULTILINE)
    there = {path.parent.name for path in (ROOT / "simperf").glob("*/__init__.py")}
    assert sorted(listed) == sorted(there)
