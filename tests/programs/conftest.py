"""Programs played by name on a machine of the catalogue, and stack files of one's own."""

import pytest

from simperf.cost import CostSettings
from simperf.engine.simulation import Simulation
from simperf.execution import MODES
from simperf.execution.session import Session
from simperf.programs import PROGRAMS


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


@pytest.fixture
def mine(tmp_path, request):
    """mine(text) -> the folder of a stack file of one's own; without a text, that of the module's constant MINE."""

    def write(text=None):
        (tmp_path / "mine.toml").write_text(request.module.MINE if text is None else text, "utf-8")
        return tmp_path

    return write
