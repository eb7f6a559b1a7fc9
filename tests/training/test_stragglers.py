"""Slow ranks and links that change while they are in use."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, UnknownNameError
from simperf.hardware import Catalog
from simperf.training.jitter import Constant, Exponential
from simperf.training.stragglers import LinkChange, Straggler, change_links, finish_time, flap


@pytest.fixture
def simulation():
    """Four GPUs on a switch, 16 GB/s each way."""
    return Simulation(Catalog.load().machine("book-4gpu"), recorder=Recorder())


def sent(simulation, nbytes=160e9):
    route = simulation.machine.route("gpu0", "gpu1")
    return simulation.run(simulation.network.transfer(route.resources, nbytes))


def link(simulation):
    return simulation.machine.route("gpu0", "gpu1").resources[0]


def test_a_straggler_is_slow_while_its_window_is_open():
    slow = [Straggler(1, 3.0, start=10.0, end=16.0)]
    assert finish_time(slow, 0, 0.0, 20.0) == 20.0
    assert finish_time(slow, 1, 0.0, 20.0) == 24.0, "2 s of work in the window's 6 s, 4 s later than the others"
    assert finish_time(slow, 1, 11.0, 1.0) == 14.0
    assert finish_time(slow, 1, 16.0, 5.0) == 21.0
    assert finish_time([*slow, Straggler(1, 2.0)], 1, 10.0, 1.0) == 16.0, "two windows multiply"


@given(st.floats(0, 50), st.floats(0, 50), st.floats(1, 10), st.floats(0, 30), st.floats(0.1, 30))
def test_a_straggler_takes_between_once_and_factor_times_as_long(start, work, factor, opens, length):
    end = finish_time([Straggler(0, factor, opens, opens + length)], 0, start, work)
    assert work - 1e-9 <= end - start <= work * factor + 1e-9
    assert end - start <= work + length * (1 - 1 / factor) + 1e-9


def test_a_slow_link_and_a_link_that_is_down_for_a_while(simulation):
    name = link(simulation)
    change_links(simulation, [LinkChange(name, 7.0, 1.0), LinkChange(name, 2.0, 0.5), LinkChange(name, 4.0, 0.0)])
    # 2 s at full speed, 2 s at half, 3 s not at all, the other 7 s' worth at full speed
    assert sent(simulation) == pytest.approx(14.0, rel=1e-9)
    seen = [(s.time, s.value) for s in simulation.recorder.samples if s.name == "capacity"]
    assert seen == [(2.0, 8e9), (4.0, 0.0), (7.0, 16e9)]


def test_a_link_that_flaps_regularly(simulation):
    flap(simulation, link(simulation), up=Constant(3.0), down=Constant(1.0))
    assert sent(simulation) == pytest.approx(10.0 + 3 * 1.0, rel=1e-9)


def test_a_link_that_flaps_at_random_loses_its_time_down():
    ends = []
    for seed in (1, 1, 2):
        simulation = Simulation(Catalog.load().machine("book-4gpu"), seed=seed)
        flap(simulation, link(simulation), up=Exponential(0.9), down=Exponential(0.1))
        ends.append(sent(simulation, 16e9 * 900))
    assert ends[0] == ends[1] != ends[2]
    assert ends[0] == pytest.approx(1000.0, rel=0.05)


def test_what_cannot_be(simulation):
    with pytest.raises(InputError, match=r"(?s)rank.*factor.*end"):
        Straggler(-1, 0.5, start=5.0, end=4.0)
    with pytest.raises(InputError, match=r"(?s)time.*share"):
        LinkChange("x", math.inf, 1.5)
    with pytest.raises(UnknownNameError, match="resource"):
        change_links(simulation, [LinkChange("gpu9>switch", 1.0, 0.5)])
    with pytest.raises(UnknownNameError, match="resource"):
        flap(simulation, "gpu9", up=Constant(1.0), down=Constant(1.0))
    with pytest.raises(InputError, match="above 0"):
        flap(simulation, link(simulation), up=Constant(0.0), down=Constant(1.0))
