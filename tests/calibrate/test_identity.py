"""Whether a data set may be continued: the machine, the versions and the conditions that its parts have in common."""

import pytest

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.sessions import refuse_another
from simperf.errors import InputError

MACHINE = {"gpu": "Test GPU 1", "sms": 20, "memory": 1000.0}
VERSIONS = {"torch": "2.9.0", "driver": "1", "numpy": "2.0"}
OLD = Dataset("old", machine=MACHINE, versions=VERSIONS, made={"threads": 1})


def check(machine=MACHINE, versions=VERSIONS, conditions=None):
    refuse_another(OLD, "points.json", machine, versions, conditions=conditions or {"threads": 1})


def refused(*given, **named):
    """Keys that are refused, with what the file has and what is here."""
    with pytest.raises(InputError) as caught:
        check(*given, **named)
    told = caught.value.problems
    assert all(one.file == "points.json" and "--fresh" in one.expected for one in told)
    return {one.key: (one.value, one.expected.partition(",")[0]) for one in told}


def test_the_same_set_up_goes_on():
    check()


def test_memory_and_other_versions_may_differ():
    check(machine={**MACHINE, "memory": 999.0}, versions={**VERSIONS, "numpy": "2.1"})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"machine": {**MACHINE, "gpu": "Test GPU 2"}}, {"gpu": ("'Test GPU 1'", "'Test GPU 2'")}),
        ({"machine": {**MACHINE, "cpu": "one more fact"}}, {"cpu": ("None", "'one more fact'")}),
        ({"machine": {"gpu": "Test GPU 1"}}, {"sms": ("20", "None")}),
        ({"versions": {**VERSIONS, "driver": "2"}}, {"driver": ("'1'", "'2'")}),
        ({"conditions": {"threads": 2}}, {"threads": ("1", "2")}),
    ],
)
def test_whatever_differs_is_named(given, told):
    assert refused(**given) == told


def test_all_that_differs_is_told_at_once():
    assert set(refused({**MACHINE, "sms": 21}, {**VERSIONS, "torch": "2.8"}, {"threads": 4})) == {
        "sms",
        "torch",
        "threads",
    }
