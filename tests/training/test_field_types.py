"""A job from Python with a value of another type: refused before it is played, all fields at once."""

import pytest

from simperf import DDP, Devices, Disturbances, Input, InputError, Job, LocalSGD, Servers, ServerUpdate
from simperf.training.replica import Layers

WORK = Layers(3, forward=1e-3, backward=1e-3, nbytes=1e7)

WRONG = {
    "strategy.bucket": {"strategy": DDP(bucket="10 MB")},
    "strategy.overlap": {"strategy": DDP(overlap=1)},
    "strategy.slowdown": {"strategy": DDP(slowdown="2")},
    "strategy.options": {"strategy": DDP(options=[1])},
    "strategy.every": {"strategy": LocalSGD(every=1.5)},
    "strategy.update.add": {"strategy": Servers(update=ServerUpdate(add=None))},
    "strategy.via_host": {"strategy": Servers(via_host="yes")},
    "strategy.placement": {"strategy": Servers(placement=[])},
    "strategy": {"strategy": "ddp"},
    "layout": {"layout": {"dp": 2}},
    "devices": {"devices": 2},
    "input.workers": {"input": Input(workers=True)},
    "steps": {"steps": "3"},
    "batch_per_gpu": {"batch_per_gpu": None},
}


@pytest.mark.parametrize("key", WRONG)
def test_a_field_of_another_type_is_refused(key):
    with pytest.raises(InputError) as error:
        Job(WORK, **WRONG[key])
    assert [problem.key for problem in error.value.problems] == [key]
    assert error.value.problems[0].expected


def test_all_are_told_at_once_and_right_ones_are_taken():
    with pytest.raises(InputError) as error:
        Job(WORK, DDP(bucket="10 MB", accumulate=2.5), steps=None)
    assert [problem.key for problem in error.value.problems] == ["strategy.bucket", "strategy.accumulate", "steps"]
    assert Job(WORK, DDP(bucket=10_000_000), devices=Devices(nodes=["gpu0"]), steps=1).strategy.bucket == 10e6


@pytest.mark.parametrize("value", [None, "1", 1.5, True, [1]], ids=repr)
def test_parts_of_a_job_refuse_them_by_themselves(value):
    with pytest.raises(InputError, match="gpus: a value of another type"):
        Devices(gpus=value)
    with pytest.raises(InputError, match="stragglers: a value of another type"):
        Disturbances(stragglers=value)
