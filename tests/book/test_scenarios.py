"""Every shipped scenario gives the numbers that it carries, the same bytes every time."""

import pytest

from simperf.run import run, run_variants
from simperf.scenario import check_comparison, check_error, check_expectations, load_scenario, shipped_scenarios
from tests.truth.runs import attempts

SHIPPED = shipped_scenarios()
ROWS = ("A1", "A2", "A3", "A4", "A5", "A6", "B1", "B2", "B3", "B4", "C1", "C2", "C3", "C4", "C5", "E1", "E2")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_scenario_meets_its_expectations(name):
    scenario = load_scenario(SHIPPED[name])
    results, checks = {}, 0
    for attempt in attempts(name) if name.startswith("measured/") else run_variants(scenario):
        if attempt.result is None:
            found = check_error(attempt.scenario, attempt.error)
            assert found, f"{attempt.name}: {attempt.error}"
        else:
            results[attempt.name] = attempt.result
            found = check_expectations(attempt.scenario, attempt.result)
        checks += len(found)
        assert not [str(check) for check in found if not check.ok], attempt.name
    if scenario.variants:
        found = check_comparison(scenario, results)
        assert not [str(check) for check in found if not check.ok]
    if name.startswith("measured/"):
        assert scenario.measurements or all(variant.measurements for variant in scenario.variants)
    else:
        assert checks >= max(1, len(scenario.variants)), "each variant carries a number"


def test_every_row_of_the_subject_has_a_scenario():
    covered = {row for name in SHIPPED if name.startswith("d2l/") for row in load_scenario(SHIPPED[name]).rows}
    assert set(ROWS) <= covered


@pytest.mark.parametrize("name", ["d2l/async", "d2l/disks", "d2l/sync-160mb", "d2l/ring-8-v100"])
def test_the_same_seed_gives_the_same_bytes(name):
    scenario = load_scenario(SHIPPED[name]).variants[-1]
    assert run(scenario).to_bytes() == run(scenario).to_bytes()


def test_no_result_is_below_its_floor_and_most_say_what_sets_it():
    for name in ("d2l/sync-160mb", "d2l/async", "d2l/streams"):
        for attempt in run_variants(load_scenario(SHIPPED[name])):
            assert 0 < attempt.result.floor[1] <= attempt.result.time * (1 + 1e-9)
