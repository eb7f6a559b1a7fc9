"""Tests of measuring do not ask whether the host of this machine disturbs them: what is disturbed is measured again."""

import pytest

from simperf.calibrate.cluster import measure as cluster
from simperf.calibrate.measure import session


class Calm:
    """No time is taken away, whatever the machine's own count says."""

    def lap(self):
        return 0.0


@pytest.fixture(autouse=True)
def _calm(monkeypatch):
    for module in (session, cluster):
        monkeypatch.setattr(module, "Stolen", Calm)
