"""Jobs: what is refused as they are made, and layouts that are plain data parallelism."""

import inspect
from dataclasses import fields, is_dataclass

import pytest

from simperf.errors import InputError
from simperf.layout import Layout
from simperf.training import job as job_module
from simperf.training import stack as stack_module
from simperf.training import strategies as strategies_module
from simperf.training.driver import train
from simperf.training.job import Devices, Disturbances, Input, Job, SlowLink
from simperf.training.stack import ServerTransport, Stack
from simperf.training.strategies import DDP, Servers
from tests.training.strategies import job, layers, metric, run, session, star


@pytest.mark.parametrize("module", [job_module, stack_module, strategies_module])
def test_types_are_small_and_frozen(module):
    for kind in vars(module).values():
        if is_dataclass(kind) and kind.__module__ == module.__name__:
            assert len(fields(kind)) <= 12, kind.__name__
            assert kind.__dataclass_params__.frozen
            described = inspect.getdoc(kind)
            assert all(f"\n{one.name} : " in described for one in fields(kind)), kind.__name__


def test_a_layout_of_data_parallelism_is_a_number_of_gpus():
    layout = run(star(4), layers(), layout=Layout(dp=4), batch=8)
    assert layout.now == run(star(4), layers(), n=4, batch=8).now


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"layout": Layout(tp=2)}, "layout: this strategy gives every device the whole model"),
        ({"layout": Layout(dp=2, sharding="zero-1")}, "layout: this strategy gives"),
        ({"layout": Layout(dp=2), "devices": Devices(gpus=4)}, "gpus: the layout has another number of ranks"),
        ({"steps": 0}, "steps"),
        ({"stack": Stack(strategy="servers")}, "stack: this stack is of strategy servers, and has nothing for DDP"),
        ({"stack": Stack(transport=ServerTransport(window=2))}, "stack: this stack is of strategy servers"),
        ({"stack": Stack(strategy="ddp"), "strategy": Servers()}, "stack: .* has nothing for Servers"),
        ({"total": 2}, "total: 3 steps are simulated"),
        ({"batch": 3, "batch_per_gpu": 3}, "batch_per_gpu stands for it"),
    ],
)
def test_what_has_no_meaning_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        Job(layers(), **given)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"input": Input(decode=1e-3)}, "input.decode"),
        ({"input": Input(loop=1e-3)}, "input.loop"),
        ({"devices": Devices(split="proportional")}, "devices.split"),
        ({"devices": Devices(speeds=(0.5,))}, "devices.speeds"),
    ],
)
def test_what_workers_of_servers_have_no_use_for_is_refused(given, key):
    m = session(star(2))
    with pytest.raises(InputError, match=key):
        m.play(train(m, Job(layers(), Servers(), batch_per_gpu=1, **given)))


def test_a_batch_in_all_is_shared_evenly_by_the_workers_of_servers():
    ends = []
    for batch in ({"batch": 8}, {"batch_per_gpu": 4}):
        m = session(star(2))
        m.play(train(m, Job(layers(forward=1e-3), Servers(), **batch)))
        ends.append(m.now)
    assert ends[0] == ends[1]
    m = session(star(2))
    with pytest.raises(InputError, match="batch: workers share it evenly"):
        m.play(train(m, Job(layers(), Servers(), batch=3)))


def test_devices_are_named_or_counted():
    m = session(star(2))
    with pytest.raises(InputError, match="gpus: the devices are named"):
        m.play(train(m, Job(layers(), devices=Devices(gpus=2, nodes=("gpu0", "gpu1")))))


@pytest.mark.parametrize(
    ("kind", "given", "words"),
    [
        (Devices, {"split": "odd"}, "split: not one of the choices"),
        (Devices, {"exact": "maybe"}, "expected: auto, yes, no"),
        (Devices, {"gpus": -1}, "gpus: a number of GPUs is expected, or 0 for all"),
        (Disturbances, {"stragglers": -1}, "stragglers: a number of 0 or more"),
        (Disturbances, {"stragglers": 1, "slowdown": 0.0}, "slowdown: a factor above 0"),
        (Disturbances, {"stragglers": 1, "slowdown": float("nan")}, "slowdown: a factor above 0"),
    ],
)
def test_devices_and_disturbances_check_themselves(kind, given, words):
    with pytest.raises(InputError, match=words):
        kind(**given)


def test_stragglers_of_data_parallelism_are_slow_devices():
    """As if the last device were so much slower; the efficiency is still held against one that is not."""
    even = run(star(4), layers(forward=1e-3))
    slow = run(star(4), layers(forward=1e-3), disturbances=Disturbances(stragglers=1, slowdown=2.0))
    known = run(star(4), layers(forward=1e-3), speeds=(1.0, 1.0, 1.0, 0.5))
    assert slow.now == pytest.approx(known.now, rel=1e-12)
    assert slow.now > 1.5 * even.now
    assert metric(slow, "scaling efficiency") == pytest.approx(metric(known, "scaling efficiency"), rel=1e-12)


def test_a_run_of_more_steps_takes_the_mean_of_the_simulated_ones():
    m = run(star(2), layers(), steps=3, total=100)
    assert metric(m, "run time") == pytest.approx(m.now + 97 * metric(m, "time per step"), rel=1e-12)


def test_a_link_that_is_slow_has_a_name_and_comes_back():
    assert SlowLink().changes == ()
    with pytest.raises(InputError, match="never delivers"):
        SlowLink("gpu0>hub")
    assert job(layers(), strategy="ddp").strategy == DDP()
