"""Every shipped scenario gives the numbers that it carries, the same bytes every time."""

import pytest

from simperf.run import run, run_variants
from simperf.scenario import load_scenario, shipped_scenarios
from tests.goldens.scenario_runs import marked, played

SHIPPED = shipped_scenarios()
ROWS = ("A1", "A2", "A3", "A4", "A5", "A6", "B1", "B2", "B3", "B4", "C1", "C2", "C3", "C4", "C5", "E1", "E2")


@pytest.mark.parametrize("name", marked(SHIPPED))
def test_a_scenario_meets_its_expectations(name):
    scenario = load_scenario(SHIPPED[name])
    found = played(name).checks
    assert played(name).ranking.refusal == "", "variants that do different amounts of work need an answer"
    for variant, checks in found.items():
        assert not [str(check) for check in checks if not check.ok], variant
    if name.startswith("measured/"):
        assert scenario.measurements or all(variant.measurements for variant in scenario.variants)
    else:
        carried = sum(len(checks) for variant, checks in found.items() if variant)
        assert carried >= max(1, len(scenario.variants)), "each variant carries a number"


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
