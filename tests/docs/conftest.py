"""The documentation, built once for all tests that look at it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simperf.collectives.algorithms import ALGORITHMS

ROOT = Path(__file__).parents[2]


def copied(folder):
    """A copy of the docs, so that nothing generated is left in the tree; links lead to files beside it."""
    for name in ("simperf", "scenarios", "calibration", "tests", "README.md", "CONTRIBUTING.md"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build"))
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The pages' folder and how the build ended, in which every warning is an error."""
    pytest.importorskip("myst_parser", reason="sphinx and myst-parser are not installed")
    pytest.importorskip("pydata_sphinx_theme", reason="the theme of the documentation is not installed")
    folder = copied(tmp_path_factory.mktemp("docs"))
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "html"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return folder / "html", done


@pytest.fixture
def own_collectives():
    """Collectives that a page registers, until the end of its test."""
    with ALGORITHMS.temporary_entries():
        yield
