"""Measurements of the set ``training`` that are killed: on the CPU, and on a pretended GPU.

`python -m tests.faults.kills measure-training` does it by every signal and to the end.
"""

import json
import os
import random
import signal
import sys
import time

import pytest

from tests.faults.processes import Command
from tests.polling import wait_until

pytest.importorskip("torch", reason="measuring runs torch, which is not installed")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are found in /proc")

COMMANDS = {
    "cpu": ("simperf", "calibrate", "measure", "--set", "training", "--device", "cpu", "-o", "recording.json"),
    "pretended GPU": ("tests.faults.pretended_gpu", "recording.json"),
}


def points(folder):
    """Keys of the points that are kept; a file that is not whole is an error."""
    path = folder / "recording.json"
    found = json.loads(path.read_text("utf-8"))["measurements"] if path.exists() else []
    return {json.dumps([point["series"], point["at"]], sort_keys=True) for point in found}


@pytest.mark.parametrize("device", [pytest.param("cpu", marks=pytest.mark.long), "pretended GPU"])
def test_no_finished_point_is_lost_and_the_next_command_goes_on(device, tmp_path):
    rng, kept = random.Random(os.environ.get("SIMPERF_TEST_SEED", "1")), set()
    for _ in range(3):
        command = Command(("-m", *COMMANDS[device]), tmp_path)

        def more(command=command, before=frozenset(kept)):
            return points(tmp_path) > before or command.process.poll() is not None

        try:
            wait_until(more, "no new point", within=300.0)
            time.sleep(rng.uniform(0.0, 0.5))
            command.process.kill()
            code, _, err = command.end()
        finally:
            command.clear()
        assert code in (0, -signal.SIGKILL), err[-2000:]
        now = points(tmp_path)
        assert now > kept, "each command adds to what is there"
        kept = now
