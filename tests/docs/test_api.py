"""Every public name is on the pages of the Python API, in an example that is run."""

import importlib
import re
from pathlib import Path

import pytest

import simperf

DOCS = Path(__file__).parents[2] / "docs" / "reference"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PACKAGES = ("hardware", "workload", "workload.transformers", "memory", "layout", "schedules", "cost")
PACKAGES += ("collectives", "execution", "programs", "scenario", "teach")


def code(page):
    return "\n".join(BLOCK.findall((DOCS / page).read_text("utf-8")))


def used(name, text):
    """How often a name is used, imports not counted."""
    text = re.sub(r"^(from \S+ import \(.*?^\)|from \S+ import .*?$)", "", text, flags=re.MULTILINE | re.DOTALL)
    return len(re.findall(rf"(?<![\w.])(?:simperf\.)?{re.escape(name)}\b", text))


def test_every_name_of_the_top_is_described_and_used():
    page, text = (DOCS / "api.md").read_text("utf-8"), code("api.md")
    for name in simperf.__all__:
        if name == "__version__":
            continue
        assert used(name, text), f"{name} has no example"
        assert f":: simperf.{name}\n" in page or f"`{name}`" in page, f"{name} is not described"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_used_in_an_example(package):
    module, text = importlib.import_module(f"simperf.{package}"), code("packages.md")
    assert f"`simperf.{package}`" in (DOCS / "packages.md").read_text("utf-8")
    assert [name for name in module.__all__ if not used(name, text)] == []


def test_every_function_of_analysis_is_used_in_an_example():
    text = code("packages.md")
    for path in sorted((Path(simperf.__file__).parent / "analysis").glob("*.py")):
        module = importlib.import_module(f"simperf.analysis.{path.stem}") if path.stem != "__init__" else None
        if module is None or path.stem == "timeline":
            continue
        functions = [name for name in module.__all__ if name.islower()]
        assert [name for name in functions if not used(name, text)] == [], path.stem
