"""Streams, markers, copies, graphs and memory on one device."""

import pytest

from simperf.engine.device import Copy, Stream
from simperf.engine.items import GraphLaunch, Marker, WaitFor
from simperf.engine.kernel import Kernel
from simperf.engine.memory import DeviceMemory
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import CATEGORIES, Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import DeviceMemoryError, ProgramError
from simperf.hardware import build_topology


def simulation(**capacities):
    sim = Simulation(recorder=Recorder())
    sim.network = FlowNetwork(sim.env, capacities, recorder=None)
    return sim


def test_a_stream_waits_for_a_marker_of_another():
    sim = Simulation()
    gpu, mark = sim.device("gpu0"), Marker(sim.env)
    a, b = gpu.stream(0), gpu.stream(1)
    a.submit(Kernel("first", 1.0, demand=0.1))
    a.submit(mark)
    b.submit(WaitFor(mark))
    b.submit(Kernel("second", 1.0, demand=0.1))
    sim.run()
    assert sim.now == pytest.approx(2.0)
    assert b.path == pytest.approx(2.0), "the critical path crosses streams"


def test_a_wait_for_what_has_come_costs_nothing():
    sim = Simulation()
    stream, mark = sim.device("gpu0").stream(), Marker(sim.env)
    stream.submit(mark)
    sim.run()
    stream.submit(WaitFor(mark))
    stream.submit(Kernel("k", 1.0))
    sim.run()
    assert sim.now == pytest.approx(1.0)


def test_thousands_of_waits_are_over_at_once():
    sim = Simulation()
    gpu, marks = sim.device("gpu0"), [Marker(sim.env) for _ in range(5000)]
    first, second = gpu.stream(0), gpu.stream(1)
    for mark in marks:
        second.submit(WaitFor(mark))
    second.submit(Kernel("behind", 1.0))
    first.submit(Kernel("ahead", 2.0))
    for mark in reversed(marks):  # all but the first wait are over when the first one is
        first.submit(mark)
    sim.run()
    assert sim.now == pytest.approx(3.0)
    assert second.completed == len(marks) + 1


def test_what_waits_for_a_place_is_called_once_for_each_item_that_ends():
    sim = Simulation()
    gpu, marks, told = sim.device("gpu0"), [Marker(sim.env) for _ in range(4)], []
    first, second = gpu.stream(0), Stream(gpu, 1, depth=4)
    for mark in marks:
        second.submit(WaitFor(mark))
    for number in range(6):
        second.when_free(lambda _, number=number: told.append(number))
    for mark in reversed(marks):
        first.submit(mark)
    sim.run()
    assert told == [0, 1, 2, 3]


def test_copies_of_one_direction_queue_and_of_two_do_not():
    sim = simulation(up=1e9, down=1e9)
    gpu = sim.device("gpu0")

    def copy(direction, link):
        engine = gpu.copy_engine(direction)
        return Copy(direction, engine, (link,), 1e9, latency=0.5, cap=2e9, alone=1.5)

    for index, (direction, link) in enumerate([("h2d", "down"), ("h2d", "down"), ("d2h", "up")]):
        gpu.stream(index).submit(copy(direction, link))
    ends = {}
    for index in range(3):
        drained = gpu.stream(index).drained()
        drained.callbacks.append(lambda _, i=index: ends.setdefault(i, sim.now))
    sim.run()
    assert ends == pytest.approx({0: 1.5, 1: 3.0, 2: 1.5})


def test_kernels_run_beside_copies():
    sim = simulation(down=1e9)
    gpu = sim.device("gpu0")
    gpu.stream(1).submit(Copy("copy", gpu.copy_engine("h2d"), ("down",), 1e9, latency=0.0, cap=1e12, alone=1.0))
    gpu.stream(0).submit(Kernel("k", 1.0))
    sim.run()
    assert sim.now == pytest.approx(1.0)


def test_a_graph_runs_its_kernels_in_order_and_shows_them():
    sim = Simulation(recorder=Recorder())
    stream = sim.device("gpu0").stream()
    stream.submit(GraphLaunch("graph", (Kernel("a", 1.0), Kernel("b", 2.0)), gap=0.25))
    stream.submit(Kernel("after", 1.0))
    sim.run()
    assert sim.now == pytest.approx(4.5)
    assert [s.name for s in sim.recorder.spans] == ["a", "b", "after"]


def test_memory_is_held_from_launch_to_end_and_its_lack_names_the_operation():
    sim = Simulation(recorder=Recorder())
    gpu = sim.device("gpu0")
    gpu.memory.capacity = 250.0
    for _ in range(2):
        gpu.stream().submit(Kernel("layer", 1.0, holds=100.0))
    assert gpu.memory.held == 200.0
    with pytest.raises(
        DeviceMemoryError, match=r"gpu0 is out of memory .*'big' asks for 100\.0 B, 200\.0 B of 250\.0 B"
    ):
        gpu.stream().submit(Kernel("big", 1.0, holds=100.0))
    sim.run()
    assert gpu.memory.held == 0.0
    assert gpu.memory.peak == 200.0
    values = [s.value for s in sim.recorder.samples if s.name == "memory held"]
    assert values == [100.0, 200.0, 100.0, 0.0]


def test_an_unlimited_pool_never_refuses():
    sim = Simulation()
    pool = DeviceMemory(sim.env, "gpu0")
    pool.hold(1e18, "anything")
    assert pool.peak == 1e18


def test_the_machine_decides_which_devices_there_are():
    sim = Simulation(build_topology("star", 2, bandwidth=1e9))
    with pytest.raises(ProgramError, match="no device 'gpu7'"):
        sim.device("gpu7")
    with pytest.raises(ProgramError, match="no host 'cpu9'"):
        sim.host("cpu9")


def test_random_streams_depend_on_seed_and_name_only():
    one, two = Simulation(seed=1), Simulation(seed=1)
    two.random("other").random(5)
    assert one.random("jitter").random(3).tolist() == two.random("jitter").random(3).tolist()
    assert one.random("jitter").random() != Simulation(seed=2).random("jitter").random()
    assert len(set(CATEGORIES)) == len(CATEGORIES)
