"""A lesson from nothing: a new environment, `pip install .[teach]`, `simperf lesson open`, and its first picture.

pytest tests/benchmarks/test_lesson.py --benchmark-enable --benchmark-columns=min

The goal is a minute. It needs a package index (or pip's cache of one) and Chromium.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.browser import chromium
from tests.teach.lesson_page import LessonPage, served

ROOT = Path(__file__).parents[2]


def test_from_cold_to_the_first_picture(benchmark, request, tmp_path):
    if not request.config.getoption("benchmark_enable"):
        pytest.skip("it installs packages: only with --benchmark-enable")
    python = tmp_path / "venv" / "bin" / "python"

    def learn():
        subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
        source = tmp_path / "simperf"
        shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".git", "__pycache__", "__marimo__", ".*_cache"))
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", ".[teach]"]
        done = subprocess.run(install, cwd=source, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"pip could not install it: {done.stderr.strip().splitlines()[-1:]}")
        with chromium() as browser, served(["-m", "simperf", "lesson", "open", "hybrid"], python=python) as address:
            return LessonPage(browser, address).headline()

    assert benchmark.pedantic(learn, rounds=1).startswith("Time of twenty passes: ")
    load = f"a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    assert benchmark.stats.stats.max < 60, load
