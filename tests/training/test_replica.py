"""Steps of replicas: from traced models and from layers in round numbers."""

import math
from dataclasses import replace

import pytest

from simperf.cost import CostSettings, Miss, Unseen
from simperf.engine.host import Host
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.training.driver import train
from simperf.training.replica import Traced, faster, training_step
from simperf.workload.zoo import load
from tests.training.strategies import CATALOG, job, layers, metric, run, session, star


@pytest.fixture(scope="module")
def resnet():
    return load("resnet50")


def test_a_traced_model_becomes_a_step(resnet):
    m = Session(Simulation(CATALOG.machine("p3-2xlarge")))
    step = training_step(m, resnet, m.gpu(0), batch=32)
    assert step.samples == 32
    assert step.nbytes_gradients == 4 * 25_557_032
    assert step.nbytes_output == 4 * 32 * 1000
    assert step.nbytes_input >= 4 * 32 * 3 * 224 * 224
    assert len(step.gradients) == 161
    assert step.gradients[0].name.startswith("22."), "the last layer comes first"
    assert step.gradients[-1].ready == len(step.backward) - 1
    assert step.memory["weights"] == 4 * 25_557_032


def test_the_step_time_is_that_of_its_kernels(resnet):
    machine = CATALOG.machine("p3-2xlarge")
    m = run(machine, Traced(resnet), batch=64, steps=3)
    step = training_step(session(machine), resnet, session(machine).gpu(0), batch=64)
    copy = step.nbytes_input / machine.route("cpu0", "gpu0").bandwidth
    assert metric(m, "time per step") == pytest.approx(step.compute_time + copy, rel=1e-3)


def test_a_model_that_does_not_fit_says_what_would(resnet):
    machine = CATALOG.machine("p3-2xlarge")
    with pytest.raises(Exception, match=r"out of memory: 4096 samples need .* at most \d+ samples fit"):
        run(machine, Traced(resnet), batch=4096)


def test_a_faster_device_takes_less_for_every_kernel():
    step = layers(forward=1e-3).step(session(star(1)), None, 4)
    assert faster(step, 2.0).compute_time == pytest.approx(step.compute_time / 2)
    assert faster(step, 1.0) is step
    with pytest.raises(InputError, match="speed"):
        faster(step, 0.0)


def test_a_draw_of_an_unseen_gpu_makes_every_kernel_of_a_step_longer_and_no_other(resnet):
    unseen = Unseen(draw=0, misses={}, steps={"fp32": Miss(0.0, 0.0, math.log(2.0))})
    costs = CostSettings(), CostSettings(unseen=unseen)
    plain, drawn = (Session(Simulation(CATALOG.machine("p3-2xlarge")), cost=cost) for cost in costs)
    for precision, longer in (("fp32", 2.0), ("fp16", 1.0)):
        one, other = (training_step(m, resnet, m.gpu(0), batch=8, precision=precision) for m in (plain, drawn))
        for within in ("forward", "backward", "update"):
            times = [longer * kernel.time for kernel in getattr(one, within)]
            assert [kernel.time for kernel in getattr(other, within)] == pytest.approx(times)
        assert other.gradients == one.gradients
    op = resnet.at(8).forward[0]
    assert drawn.kernel(op).time == plain.kernel(op).time


def test_layers_grow_with_the_samples():
    work = layers(forward=1e-3, backward=2e-3, fixed=5e-3, nbytes_input=7.0, nbytes_output=3.0, activations=11.0)
    one, four = (work.step(session(star(1)), None, samples) for samples in (1, 4))
    assert four.compute_time - one.compute_time == pytest.approx(9e-3)
    assert (four.nbytes_input, four.nbytes_output, four.memory["activations"]) == (28.0, 12.0, 44.0)


def test_a_launch_in_a_step_takes_longer_than_in_a_loop(resnet):
    machine, front = CATALOG.machine("p3-2xlarge"), CATALOG.frontend("pytorch")
    free, paid = (Session(Simulation(machine), **each) for each in ({}, {"profile": front}))
    step = training_step(free, resnet, free.gpu(0), batch=2)
    assert {kernel.launch for kernel in (*step.forward, *step.backward)} == {None}
    step = training_step(paid, resnet, paid.gpu(0), batch=2)
    assert {kernel.launch for kernel in (*step.forward, *step.backward)} == {front.launch * front.in_step}
    assert {kernel.launch for kernel in step.update} == {None}


def test_the_launch_thread_is_busy_with_the_launches_of_a_step(resnet):
    machine, front = CATALOG.machine("p3-2xlarge"), CATALOG.frontend("pytorch")
    paid = Session(Simulation(machine), profile=front)
    step = training_step(paid, resnet, paid.gpu(0), batch=64)
    passes, update = len(step.forward) + len(step.backward), len(step.update)
    paid.play(train(paid, job(Traced(resnet), machine.gpus[:1], batch=64, steps=3)))
    share = 3 * front.launch * (front.in_step * passes + update) / paid.now
    assert metric(paid, "launch thread busy, max over ranks") == pytest.approx(share, rel=0.01)
    free = run(machine, Traced(resnet), batch=64)
    assert "launch thread busy, max over ranks" not in free.metrics, "launches take no time"


def test_a_factor_of_launches_in_a_step_multiplies_calls_that_were_measured_too(resnet):
    front = replace(CATALOG.frontend("pytorch"), calls={"conv2d": 2.0})
    paid = Session(Simulation(CATALOG.machine("p3-2xlarge")), profile=front)
    step = training_step(paid, resnet, paid.gpu(0), batch=2)
    assert max(kernel.launch for kernel in step.forward) == 2.0 * front.launch * front.in_step
    assert "pytorch: in_step" in paid.sources


def test_threads_of_one_process_count_as_its_launches(resnet):
    machine, front = CATALOG.machine("p3-2xlarge"), CATALOG.frontend("pytorch")
    shares = []
    for strategy in ("ddp", "data-parallel"):
        paid = Session(Simulation(machine), profile=front)
        paid.play(train(paid, job(Traced(resnet), machine.gpus[:1], batch=8, steps=3, strategy=strategy)))
        shares.append(metric(paid, "launch thread busy, max over ranks"))
    assert 0.6 * shares[0] < shares[1] < shares[0], "autograd's thread is no Python"


def test_processes_that_share_a_core_launch_for_longer(resnet):
    machine, shares = CATALOG.machine("p3-8xlarge"), []
    for cores in (4.0, 1.0):
        simulation = Simulation(machine)
        simulation.hosts.update({name: Host(simulation.env, name, cores) for name in machine.ids("cpu")})
        paid = Session(simulation, profile=CATALOG.frontend("pytorch"))
        paid.play(train(paid, job(Traced(resnet), machine.gpus[:4], batch=8, steps=2)))
        shares.append(metric(paid, "launch thread busy, max over ranks"))
    assert min(shares) > 0.8
    assert max(shares) <= 1.0
