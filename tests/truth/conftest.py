"""Where the measured data lies: never in the repository, so tests that need it skip without it."""

import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def truth() -> Path:
    """Folder of measured data: the environment variable SIMPERF_TRUTH, or ../shared/truth beside the checkout."""
    named = os.environ.get("SIMPERF_TRUTH")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "truth"
    if not (folder / "cases.json").is_file():
        pytest.skip(f"no measured data: {folder / 'cases.json'} does not exist; set SIMPERF_TRUTH to its folder")
    return folder


@pytest.fixture(scope="session")
def cases(truth: Path) -> dict:
    """Cases by name."""
    found = json.loads((truth / "cases.json").read_text("utf-8"))
    return {case["id"]: case for case in (found["cases"] if isinstance(found, dict) else found)}
