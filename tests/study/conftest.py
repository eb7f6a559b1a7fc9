"""Scenarios for studies, and a cache of their own."""

import pytest

PROGRAM = '''
import os
import signal
import time

from simperf import compute
from simperf.units import Ratio, Seconds


def work(m, *, n: int = 1, pause: Seconds = 1e-3, slow: float = 0.0, noise: Ratio = 0.0, log: str = "", kill: str = ""):
    """Work for `n` times `pause`; `kill` names a file without which the process is killed, once."""
    if kill and n == 7 and not os.path.exists(kill):
        open(kill, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    if n == 13:
        raise ValueError("13 is not liked")
    time.sleep(slow)
    yield compute(n * pause * (1 + noise * m.rng("noise").random()), "work")
    m.metric("rate", n / m.now, "1/s")
    if log:
        with open(log, "a") as stream:
            stream.write(f"{n}\\n")
'''


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMPERF_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def own(tmp_path):
    """A scenario with a program of its own that takes its time, fails at 13, and kills its process if asked."""
    (tmp_path / "work.py").write_text(PROGRAM)
    path = tmp_path / "own.toml"
    path.write_text('[scenario]\ntitle = "Own"\n[program]\npython = "work.py:work"\nnoise = 0.5\n')
    return path
