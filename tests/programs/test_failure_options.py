"""Keys of failures: what they make, what has no effect, and under which names that is told."""

import pytest

from simperf.errors import InputError
from simperf.programs.failure_options import FAILURES, FAILURES_PARAMETER, failure_rules, failures_of
from simperf.training.failures.options import Failures


def told(table):
    """Keys of what is refused."""
    with pytest.raises(InputError) as caught:
        failures_of({"failures": table})
    return [one.key for one in caught.value.problems]


def test_no_table_is_no_failures():
    assert failures_of({"failures": {}}) is None
    assert FAILURES_PARAMETER.default == {}


def test_keys_make_the_type():
    found = failures_of({"failures": {"node_mtbf": 1e6, "runs": 7}})
    assert isinstance(found, Failures)
    assert (found.times.node_mtbf, found.runs) == (1e6, 7)
    assert FAILURES.made({}) == Failures()


@pytest.mark.parametrize(
    ("without", "key", "value"),
    [
        ({"law": "exponential"}, "shape", 0.5),
        ({"size": 0.0}, "storage", 1e9),
        ({"size": 1e9, "asynchronous": False}, "to_host", 1e9),
        ({"without_spare": "wait"}, "least", 2),
    ],
)
def test_what_has_no_effect_beside_the_others_is_refused_by_its_key(without, key, value):
    assert told({"node_mtbf": 1e6, **without, key: value}) == [f"failures.{key}"]


def test_each_rule_says_what_would_give_an_effect():
    defaults = {name: one.default for name, one in FAILURES.parameters.items()}
    rules = {name: rule for rule in failure_rules(defaults) for name in rule.names}
    assert not any(rule.used for rule in rules.values())
    assert set(rules) <= set(defaults)
    used = failure_rules(
        {**defaults, "law": "weibull", "counts": (1,), "size": 1.0, "asynchronous": True, "without_spare": "shrink"}
    )
    assert all(rule.used for rule in used)


def test_a_value_without_meaning_is_told_by_its_key():
    assert told({"node_mtbf": 1e6, "search": True, "runs": 0}) == ["failures.runs"]
