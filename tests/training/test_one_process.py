"""Strategies in which one process drives all GPUs: by hand (naive) and DataParallel (data_parallel)."""

import pytest

from simperf.collectives.nccl import Tuner
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.training.data.data_parallel import interpreter
from simperf.training.driver import train
from tests.training.strategies import CATALOG, job, layers, metric, run, star


def test_by_hand_every_gradient_goes_to_gpu_0_and_back():
    """Four gradients of 25 MB over 50 GB/s to GPU 0 and back, and an addition each, in order."""
    m = run(star(2), layers(4, nbytes=100e6), strategy="naive", steps=1)
    adds = sum(use.count * use.cost.time for use in m.operations.values()) / 4 * 4
    wire = 4 * 2 * (25e6 / 50e9 + 500e-9)
    assert m.now == pytest.approx(5e-3 + wire + adds, rel=1e-3)


def test_by_hand_one_link_into_gpu_0_is_the_bottleneck():
    """All others send to GPU 0, so that the time of the exchange grows with their number."""
    base = run(star(2), layers(), n=1, steps=1).now
    two, four, eight = (run(star(8), layers(), n=n, strategy="naive", steps=1).now - base for n in (2, 4, 8))
    assert two < four < eight
    assert eight > 0.9 * 7 * 100 * 2**20 / 50e9


@pytest.mark.parametrize("strategy", ["naive", "data-parallel"])
def test_small_kernels_gain_nothing_from_a_second_gpu(strategy):
    """The chapter's LeNet: launching, not computing, is what takes the time."""
    work = layers(20, forward=1e-6, backward=2e-6, nbytes=1e6, launch=20e-6)
    one = run(star(2), work, n=1, batch=64, steps=2)
    two = run(star(2), work, batch=64, steps=2, strategy=strategy)
    assert metric(two, "time per step") >= metric(one, "time per step") * (1 - 1e-9)


def test_data_parallel_is_no_faster_than_ddp_and_its_devices_are_not_equally_busy():
    machine = CATALOG.machine("dgx-1v")
    work = layers(20, forward=1e-4, backward=2e-4, update=1e-3, nbytes=100e6, nbytes_output=4e3, nbytes_input=6e5)
    dp, ddp = (run(machine, work, batch=256, strategy=strategy) for strategy in ("data-parallel", "ddp"))
    assert metric(dp, "time per step") > metric(ddp, "time per step")
    assert metric(dp, "device busy, max over ranks") > metric(dp, "device busy, min over ranks")
    held = [device.memory.held for device in dp.gpus]
    assert held[0] > held[1] == held[7], "GPU 0 holds the whole batch and all outputs"


def test_data_parallel_on_one_gpu_is_a_single_gpu():
    work = layers(forward=1e-3, nbytes_input=1e6)
    one = run(star(1), work, batch=8, steps=2)
    dp = run(star(1), work, batch=8, steps=2, strategy="data-parallel")
    assert dp.now == pytest.approx(one.now, rel=1e-9)


def test_threads_take_turns_in_the_interpreter():
    """Half of a launch holds the lock: two threads run at full speed, eight at a quarter."""
    m = Session(Simulation(CATALOG.machine("dgx-1v")), profile=CATALOG.frontend("pytorch"))
    assert interpreter(m).cores == pytest.approx(2.0)
    work = layers(100, forward=1e-9, backward=0.0, nbytes=1.0, launch=None)
    times = {}
    for gpus in (1, 2, 8):
        m = Session(Simulation(CATALOG.machine("dgx-1v")), profile=CATALOG.frontend("pytorch"))
        nodes = m.machine.gpus[:gpus]
        m.play(train(m, job(work, nodes, batch=gpus, steps=1, strategy="data-parallel")))
        times[gpus] = m.now
    launches = 100 * m.profile.launch
    assert times[8] - times[2] > 2.5 * launches, "eight threads wait for the interpreter"


def test_by_hand_the_whole_exchange_is_exposed():
    m = run(star(4), layers(4, nbytes=100e6), strategy="naive", steps=2)
    wire = 4 * 2 * 3 * 25e6 / 50e9
    assert metric(m, "exposed communication") >= wire
    assert metric(m, "exposed communication") <= metric(m, "time per step") - 5e-3 + 1e-9


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_data_parallel_is_the_sum_of_its_parts(n):
    """Nothing hides: batch to GPU 0 and out, weights out, forward, outputs in, gradients out, backward, sum, update."""
    parts = {"forward": 1e-3, "backward": 2e-3, "update": 3e-3, "nbytes_input": 10e6, "nbytes_output": 1e6}
    machine = star(n)
    m = run(machine, layers(nbytes=100e6, **parts), batch=n, steps=1, strategy="data-parallel")
    port, host, others = 50e9, 16e9, n - 1
    batch = n * 10e6 / host + others * 10e6 / port
    both = [Tuner(machine, machine.gpus, collective=name) for name in ("broadcast", "reduce")] if others else []
    weights = sum(tuner.best(100e6).time for tuner in both)
    floor = batch + weights + 2 * others * 1e6 / port + 6e-3
    assert floor < m.now < 1.01 * floor
