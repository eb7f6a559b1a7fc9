"""Every strategy, and every way of running it, has a scenario that carries a number."""

import re
from pathlib import Path
from typing import get_args

import pytest

from simperf.scenario import load_scenario, shipped_scenarios
from simperf.training.servers.compression import CODECS
from simperf.training.servers.multi_machine import Reduction
from simperf.training.servers.placement import Placement, Where
from simperf.training.servers.staleness import MODES
from simperf.training.strategies import REPLICATED, has_option


@pytest.fixture(scope="module")
def shown():
    """Program, parameter and value of each variant of scenarios/training that expects something."""
    found = set()
    for name, path in shipped_scenarios().items():
        if not name.startswith("training/"):
            continue
        scenario = load_scenario(path)
        for variant in scenario.variants or (scenario,):
            if variant.expectations or scenario.expectations:
                found |= {(variant.program.name, key, str(value)) for key, value in variant.parameters.items()}
    return found


@pytest.mark.parametrize("strategy", REPLICATED)
def test_strategies_of_data_parallelism(shown, strategy):
    assert ("train", "strategy", strategy) in shown


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        ("mode", MODES),
        ("where", get_args(Where)),
        ("placement", get_args(Placement)),
        ("reduction", get_args(Reduction)),
        ("compression", sorted(CODECS)),
        ("priority", ("True", "False")),
        ("overlap", ("True", "False")),
        ("barrier", ("True", "False")),
    ],
)
def test_ways_of_parameter_servers(shown, parameter, values):
    assert [value for value in values if ("parameter-server", parameter, value) not in shown] == []


@pytest.mark.parametrize(
    "option", ["bucket", "overlap", "slowdown", "accumulate", "every", "broadcast", "algorithm", "watched"]
)
def test_options_of_strategies(shown, option):
    values = {value for program, key, value in shown if (program, key) == ("train", option)}
    assert len(values) > 1, f"no scenario shows what {option} changes"
    assert any(has_option(strategy, option) for strategy in REPLICATED)


@pytest.mark.parametrize("split", ["even", "proportional"])
def test_splits(shown, split):
    assert ("train", "split", split) in shown


@pytest.mark.parametrize(
    "program",
    ["recommender", "failing-job", "server-loss", "checkpointed-training", "epoch", "link-flaps", "stragglers"],
)
def test_programs(shown, program):
    assert any(name == program for name, _, _ in shown)


def test_the_table_of_strategies_names_scenarios_that_are_there():
    """Each row: how to ask for a strategy, which of its scenarios shows it, and the bound."""
    text = (Path(__file__).parents[2] / "docs/explanation/training.md").read_text("utf-8")
    table = text.partition("## Strategies at a glance")[2].partition("## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 15
    for what, how, scenarios, bound in rows:
        assert what
        assert how
        assert bound
        for name in re.findall("`([^`]+)`", scenarios):
            assert f"training/{name}" in shipped_scenarios()
    asked = " ".join(row[1] for row in rows)
    assert all(f'strategy = "{strategy}"' in asked for strategy in REPLICATED)
    assert all(f'mode = "{mode}"' in asked for mode in MODES if mode != "synchronous")
