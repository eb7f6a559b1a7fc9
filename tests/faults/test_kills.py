"""Commands that are ended at a random moment by each signal; `python -m tests.faults.kills` does it more often."""

import os
import sys

import pytest

from tests.faults.kills import TARGETS, endure

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")


@pytest.mark.parametrize("name", ["sweep", "sweep-local", "plan"])
def test_nothing_is_lost_and_nothing_is_left(name):
    if lacks := TARGETS[name].missing():
        pytest.skip(lacks)
    endure(name, times=1, seed=int(os.environ.get("SIMPERF_TEST_SEED", "1")))
