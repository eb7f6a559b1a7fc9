"""Play a program by name on a machine of the catalogue."""

import pytest

from simperf.cost import CostSettings
from simperf.engine.simulation import Simulation
from simperf.execution import MODES
from simperf.execution.session import Session
from simperf.hardware import Catalog
from simperf.programs import PROGRAMS


@pytest.fixture(scope="session")
def catalog():
    return Catalog.load()


@pytest.fixture
def play(catalog):
    """play(machine, program, mode=..., frontend=..., **parameters) -> the session after the run."""

    def run(machine, name, *, mode="eager", frontend="", sharp=True, seed=0, **parameters):
        wired = catalog.machine(machine) if machine else None
        options = {"profile": catalog.frontend(frontend)} if frontend else {}
        session = Session(Simulation(wired, seed=seed), mode=MODES[mode], cost=CostSettings(sharp=sharp), **options)
        session.play(PROGRAMS[name].function(session, **parameters))
        return session

    return run
