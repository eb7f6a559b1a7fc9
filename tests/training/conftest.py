"""Stars of GPUs and servers, and a parameter server to train on them."""

import pytest

from simperf.cost import CostSettings
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.hardware import build_machine
from simperf.programs import PROGRAMS


@pytest.fixture(scope="session")
def star(catalog):
    """star(workers, servers): GPUs and CPUs with a port each on one switch that forwards at full bandwidth."""

    def build(workers, servers=1, *, bandwidth="50 GB/s", latency="250 ns", hub=True):
        ends = [f"gpu{{0..{workers - 1}}}", f"cpu{{0..{servers - 1}}}"]
        link = {"b": "hub", "bandwidth": bandwidth, "latency": latency}
        table = {
            "node": [
                {"id": ends[0], "gpu": "v100-pcie-16gb"},
                {"id": ends[1], "cpu": "xeon-e5-2698v4"},
                {"id": "hub", "kind": "switch"},
            ],
            "link": [{"a": end, **link} for end in ends],
        }
        return build_machine(table, catalog)

    return build


@pytest.fixture
def with_servers():
    """with_servers(machine, **parameters) -> session after the program parameter-server; servers' work is free."""

    def play(machine, *, seed=0, **parameters):
        session = Session(Simulation(machine, seed=seed), cost=CostSettings(sharp=True))
        given = {**({} if "model" in parameters else {"layers": 1}), "add": 0.0, "apply": 0.0, "batch": 1, **parameters}
        session.play(PROGRAMS["parameter-server"].function(session, **given))
        return session

    return play
