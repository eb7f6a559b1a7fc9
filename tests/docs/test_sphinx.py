"""The documentation builds, with warnings as errors."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def copied(folder):
    """A copy of the docs, so that nothing generated is left in the tree; links lead to files beside it."""
    for name in ("simperf", "scenarios", "calibration", "tests", "README.md", "CONTRIBUTING.md"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build"))
    return folder


def test_the_documentation_builds_without_a_warning(tmp_path):
    pytest.importorskip("myst_parser", reason="sphinx and myst-parser are not installed")
    pytest.importorskip("pydata_sphinx_theme", reason="the theme of the documentation is not installed")
    copied(tmp_path)
    words = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    done = subprocess.run([*words, "docs", "html"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "60 ms" in (tmp_path / "html" / "reference" / "scenario.html").read_text("utf-8")
