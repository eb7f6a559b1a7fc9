"""Changes of a scenario whose effect on the result is known: none, twice as long, or never slower."""

import json
import math
import re
import tomllib
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import simperf
from simperf.cli import main
from simperf.scenario import load_scenario, make_scenario, shipped_scenarios
from simperf.study.virtual import resources, speed_up
from simperf.units import DIMENSIONS, format_quantity, parse

#: scenarios that are played in well under a second
QUICK = [
    *("d2l/async", "d2l/blocking", "d2l/caches", "d2l/copy-overlap", "d2l/dependencies", "d2l/disks", "d2l/fusion"),
    *("d2l/input-pipeline", "d2l/links", "d2l/packets", "d2l/regimes", "d2l/ring-8-v100", "d2l/round-trip"),
    *("d2l/run-ahead", "d2l/servers", "d2l/streams", "d2l/sync-160mb", "d2l/timers", "d2l/two-devices"),
    *("training/buckets", "training/checkpoint-by-hand", "training/epoch-imagenet", "training/fail-server"),
    *("training/jitter-link-flap", "training/jitter-stragglers", "training/lenet-by-hand", "training/overlap"),
    *("training/ps-overlap", "training/ps-where", "training/slowed-kernels", "training/straggler"),
]


def _data(name):
    """What a shipped file says, without what is expected of it."""
    data = tomllib.loads(shipped_scenarios()[name].read_text("utf-8"))
    return {key: value for key, value in data.items() if key not in ("expect", "compare", "measured")}


def _numbers(scenario, **options):
    """All that a run says in numbers."""
    result = simperf.run(scenario, record=False, **options)
    return {"time": result.time, **{name: metric.value for name, metric in result.metrics.items()}}


def _folder(name):
    return shipped_scenarios()[name].parent


def _quantities(table, path=()):
    """Key paths, numbers and units of the quantities of a table."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        if isinstance(value, dict | list):
            yield from _quantities(value, (*path, key))
        elif isinstance(value, str):
            match = re.fullmatch(r"([\d.]+) ([A-Za-z/]+)", value)
            for dimension in ("s", "B", "B/s") if match else ():
                try:
                    yield (*path, key), parse(value, dimension), dimension
                    break
                except simperf.SimperfError:
                    continue


def _changed(data, path, value):
    """A copy of a table with another value at a key path."""
    if not path:
        return value
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[path[0]] = _changed(data[path[0]], path[1:], value)
    return copy


def test_most_scenarios_have_quantities_of_each_kind():
    """The next test would hold of files without any."""
    found = {name: [one[2] for one in _quantities(_data(name))] for name in QUICK}
    assert sum(map(bool, found.values())) > 0.8 * len(QUICK)
    assert {unit for units in found.values() for unit in units} == {"s", "B", "B/s"}


@pytest.mark.parametrize("name", QUICK)
def test_another_unit_changes_nothing(name):
    """Each quantity of the file in units that it was not written in."""
    data = _data(name)
    others = {"s": ("ns", "min"), "B": ("bit", "kB"), "B/s": ("bit/s", "kB/s")}
    written = data
    for number, (path, value, dimension) in enumerate(_quantities(data)):
        unit = others[dimension][number % 2]
        factor = parse(f"1 {unit}", dimension)
        written = _changed(written, path, f"{value / factor!r} {unit}")
    before = _numbers(make_scenario(data, folder=_folder(name)))
    after = _numbers(make_scenario(written, folder=_folder(name)))
    assert after == pytest.approx(before, rel=1e-9, abs=1e-15, nan_ok=True)


def _reversed(value):
    if isinstance(value, dict):
        return {key: _reversed(one) for key, one in reversed(list(value.items()))}
    return [_reversed(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", QUICK)
def test_the_order_of_keys_and_a_value_that_is_set_to_itself_change_nothing(name):
    data = _data(name)
    before = _numbers(make_scenario(data, folder=_folder(name)))
    assert _numbers(make_scenario(_reversed(data), folder=_folder(name))) == before
    same = {f"program.{key}": value for key, value in data["program"].items()}
    assert _numbers(make_scenario(data, folder=_folder(name)), set=same) == before


@settings(suppress_health_check=[HealthCheck.too_slow])  # of drawing, on a computer that has other work
@given(
    nbytes=st.floats(1e3, 1e9),
    n=st.integers(1, 20),
    in_flight=st.integers(1, 4),
    rates=st.lists(st.floats(1e6, 1e12), min_size=2, max_size=4),
    latency=st.floats(0, 1e-3),
)
def test_a_faster_link_that_nobody_shares_is_never_slower(nbytes, n, in_flight, rates, latency):
    def time(rate):
        link = {"a": "gpu0", "b": "gpu1", "bandwidth": f"{rate!r} B/s", "latency": f"{latency!r} s"}
        nodes = [{"id": f"gpu{i}", "gpu": "v100-sxm2-16gb"} for i in range(2)]
        nodes.append({"id": "cpu0", "cpu": "xeon-8168"})
        to_host = [{"a": "cpu0", "b": f"gpu{i}", "part": "pcie3-x16"} for i in range(2)]
        machine = {"node": nodes, "link": [link, *to_host]}
        program = {"use": "sends", "nbytes": f"{nbytes!r} B", "n": n, "in_flight": in_flight}
        return simperf.run(make_scenario({"machine": machine, "program": program}), record=False).time

    times = [time(rate) for rate in sorted(rates)]
    assert all(slow >= fast * (1 - 1e-9) for slow, fast in pairwise(times))


#: links whose speed makes a shipped scenario slower: flows that share other links then meet at other times
ANOMALIES: dict[tuple[str, str], str] = {}


@pytest.mark.parametrize("name", QUICK)
def test_a_link_twice_as_fast_is_not_slower_but_where_that_is_explained(name):
    scenario = load_scenario(shipped_scenarios()[name])
    before = simperf.run(scenario, record=False, unused="tell").time
    slower = set()
    for one in resources(scenario):
        if one.kind == "link":
            after = simperf.run(speed_up(scenario, {one.name: 2.0}), record=False, unused="tell").time
            slower |= {(name, one.name)} if after > before * (1 + 1e-9) else set()
    assert slower == {key for key in ANOMALIES if key[0] == name}


@pytest.mark.parametrize("name", [name for name in QUICK if name != "training/epoch-imagenet"])
def test_times_that_are_all_twice_as_long_give_twice_the_time(name):
    scenario = load_scenario(shipped_scenarios()[name])
    found = {one.name: 0.5 for one in resources(scenario)}
    before = simperf.run(scenario, record=False, unused="tell").time
    after = simperf.run(speed_up(scenario, found), record=False, unused="tell").time
    assert after == pytest.approx(2.0 * before, rel=1e-6)


@pytest.mark.parametrize("name", QUICK)
def test_what_is_printed_is_what_json_says(name, capsys):
    assert main(["run", name, "--format", "json"]) in (0, 1)
    text = capsys.readouterr().out
    data = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert main(["run", name, "--verbose"]) in (0, 1)
    table = capsys.readouterr().out
    assert format_quantity(data["time"], "s") in table
    for metric, told in data["metrics"].items():
        value, unit = told["value"], told["unit"]
        assert value is None or math.isfinite(value)
        if value is not None and unit in DIMENSIONS:
            shown = [line for line in table.splitlines() if re.match(rf"\s+{re.escape(metric)}\s", line)]
            assert any(format_quantity(value, unit) in line for line in shown), (metric, value)
