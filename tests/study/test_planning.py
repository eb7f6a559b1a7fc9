"""Plans: the ranking, what is ruled out and why, failures, prices, and bad input."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf import run
from simperf.errors import InputError
from simperf.study.planning import load_request, make_request, plan
from simperf.study.planning.candidates import bound_of, choices, cluster_table
from simperf.study.planning.lifetime import lifetime
from simperf.study.planning.rounding import dollars_above, hours, hours_above
from simperf.units import parse

BASE = {
    "plan": {"model": "resnet18", "samples": 1_281_167, "epochs": 2, "deadline": "20 h"},
    "candidates": {
        "instances": ["p3-2xlarge", "p3-8xlarge", "g4dn-xlarge"],
        "nodes": [1, 2],
        "batch_per_gpu": [32, 64],
    },
}


def changed(**tables):
    data = {name: dict(table) for name, table in BASE.items()}
    for name, table in tables.items():
        data[name] = {**data.get(name, {}), **table}
    return {name: {key: value for key, value in table.items() if value is not None} for name, table in data.items()}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return plan(make_request(BASE), cache=False)


def test_every_candidate_is_ranked_or_ruled_out(found):
    assert len(found.ranked) + len(found.pruned) == 12
    feasible = [one for one in found.ranked if one.feasible]
    assert [one.cost for one in feasible] == sorted(one.cost for one in feasible)
    assert found.ranked[: len(feasible)] == tuple(feasible)
    assert [one.number for one in found.ranked] == list(range(1, len(found.ranked) + 1))
    assert all(one.reason for one in (*found.ranked, *found.pruned))
    assert "cheapest" in found.winner.reason


def test_a_candidate_is_what_its_scenario_gives(found):
    one = found.ranked[-1]
    result = run(found.scenario(one.number))
    rate = result.metrics["samples per second"].value
    assert one.rate == rate
    assert one.time == pytest.approx(2 * 1_281_167 / rate)
    price = found.request.prices.of(one.choice.instance) * one.choice.nodes
    assert one.cost == pytest.approx(price * one.time / 3600)


def test_none_is_beaten_that_bears_a_star(found):
    good = [one for one in found.ranked if one.feasible]
    for one in good:
        beaten = any(o.time <= one.time and o.cost <= one.cost and o is not one for o in good)
        assert one.best is not beaten


def test_bounds_hold_and_rule_out_what_could_not_win(found):
    for one in found.ranked:
        assert bound_of(found.request, one.choice).time <= one.time
    request = make_request(changed(plan={"deadline": "30 min"}))
    ruled = {choice.name: bound_of(request, choice).reason for choice in choices(request)}
    assert "at least" in ruled["1 x g4dn-xlarge, ddp, batch 64"]
    assert "deadline" in ruled["1 x g4dn-xlarge, ddp, batch 64"]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"candidates": {"batch_per_gpu": [4096]}}, "needs .* of 1"),
        ({"limits": {"gpus": 1}}, "2 GPUs, more than the limit of 1"),
        ({"limits": {"price": "1 USD/h"}}, "more than the limit"),
        ({"limits": {"batch": 32}}, "a batch of 64 in all"),
        ({"plan": {"budget": "0.5 USD"}}, "more than the budget"),
        ({"candidates": {"strategies": ["data-parallel"]}}, "one process"),
        ({"candidates": {"batch_per_gpu": None, "batch": 33}}, "does not divide"),
        ({"plan": {"precision": "bf16"}}, "no bf16"),
    ],
)
def test_reasons(tables, words):
    import re

    request = make_request(changed(**tables))
    assert any(re.search(words, bound_of(request, choice).reason) for choice in choices(request))


def test_failures_cost_time(found):
    calm = make_request(changed(failures={"node_mtbf": "100000 h", "checkpoint": "1 GB/s"}))
    rough = make_request(changed(failures={"node_mtbf": "20 h", "checkpoint": "10 MB/s", "restart": "10 min"}))
    work = 36000.0
    one, two = lifetime(calm, 4, "fp32", work), lifetime(rough, 4, "fp32", work)
    assert work <= one.low <= one.time <= one.high < two.low < two.high
    longer = lifetime(rough, 4, "fp32", 100 * work)
    assert longer.time == pytest.approx(100 * two.time, rel=0.2)
    assert (longer.high - longer.low) / longer.time < (two.high - two.low) / two.time
    ranked = plan(rough, cache=False).ranked
    assert all(0.5 < one.goodput <= 1 for one in ranked)
    assert any(one.time_interval for one in ranked)
    assert all(bool(one.time_interval) is not bool(one.spread.why_not) for one in ranked)
    assert min(one.goodput for one in ranked) < 0.99


def test_clusters_get_the_network_of_their_cards():
    request = make_request(changed(candidates={"instances": ["p3-16xlarge", "p4d-24xlarge", "p5-48xlarge"]}))
    tables = {c.instance: cluster_table(request, c) for c in choices(request) if c.nodes == 2}
    assert tables["p3-16xlarge"]["fabric"]["link"] == "ethernet-25g-jumbo"
    assert tables["p4d-24xlarge"]["fabric"] == {"type": "rail", "link": "efa-100g", "switch": "ethernet-switch"}
    assert tables["p5-48xlarge"]["fabric"]["count"] == 4


def test_prices_of_ones_own(tmp_path):
    (tmp_path / "prices.toml").write_text('date = "2026-01"\nsource = "a quote"\n[price]\np3-2xlarge = "1 USD/h"\n')
    text = """
[plan]
model = "resnet18"
samples = 1000
[candidates]
instances = ["p3-2xlarge", "dgx-1v", "p3-8xlarge"]
nodes = 1
batch_per_gpu = 32
[prices]
file = "prices.toml"
own = { dgx-1v = "20 USD/h" }
"""
    (tmp_path / "plan.toml").write_text(text)
    prices = load_request(tmp_path / "plan.toml").prices
    assert prices.of("p3-2xlarge") == 1
    assert prices.sources["p3-2xlarge"] == "a quote, 2026-01"
    assert prices.of("dgx-1v") == 20
    assert prices.of("p3-8xlarge") == pytest.approx(12.24)
    assert "2026-01-21" in prices.sources["p3-8xlarge"]


def test_all_that_is_wrong_comes_at_once_with_its_lines(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        '[plan]\nmodel = "resnet5"\nepochs = 3\ndeadline = "-1 h"\nbudjet = 3\n[candidates]\n'
        'instances = ["p3-16xlarg", "dgx-1v"]\nnodes = [4, 8]\nbatch_per_gpu = 64\nbatch = 128\n'
        '[limits]\nnodes = 2\nprice = "9 USD/h"\n[prises]\n'
    )
    with pytest.raises(InputError) as caught:
        plan(path)
    text = str(caught.value)
    for line, words in (
        (1, "how much is to be trained"), (2, "did you mean 'resnet50'"), (4, "above 0"), (5, "'budget'"),
        (7, "unknown instance 'p3-16xlarg'"), (7, "no price for 'dgx-1v'"), (10, "both there"),
        (12, "leaves no candidate"), (14, "unknown table"),
    ):  # fmt: skip
        assert any(f"plan.toml:{line}: " in row and words in row for row in text.splitlines()), words


@pytest.mark.parametrize(
    ("head", "keys"),
    [
        ({"deadline": "2 h", "budget": "0.6 USD"}, {"budget"}),
        ({"deadline": "6 min"}, {"deadline"}),  # one that was simulated is too late
        ({"deadline": "1 s"}, {"deadline"}),  # bounds rule all out
        ({"deadline": None, "budget": "1e-6 USD"}, {"budget"}),
        ({"deadline": "10 s", "budget": "0.01 USD"}, {"deadline", "budget"}),
    ],
)
@pytest.mark.parametrize("samples", [1000, 1_281_167, 1e9])
def test_limits_that_a_refusal_proposes_are_met(head, keys, samples):
    head = {"samples": samples, **{key: value and scaled(value, samples / 1_281_167) for key, value in head.items()}}
    failures = {"node_mtbf": "2000 h", "checkpoint": "500 MB/s", "restart": "5 min"}
    with pytest.raises(InputError) as caught:
        plan(make_request(changed(plan=head, failures=failures)))
    (problem,) = caught.value.problems
    assert "the nearest of" in problem.message
    proposed = tomllib.loads(problem.expected.replace(" and ", "\n"))
    assert set(proposed) == keys
    assert problem.key == f"plan.{next(iter(proposed))}"
    again = plan(make_request(changed(plan={**head, **proposed}, failures=failures)))
    assert again.winner.feasible
    assert again.winner.choice.name in problem.message


def scaled(quantity, factor):
    number, unit = quantity.split()
    return f"{float(number) * factor!r} {unit}"


@given(st.floats(1e-9, 1e12))
def test_what_is_proposed_is_read_as_enough_and_as_little_more(value):
    assert value <= parse(hours_above(value), "s") <= 1.0101 * value
    assert value <= parse(dollars_above(value), "USD") <= 1.0101 * value
    assert parse(hours(value), "s") == pytest.approx(value, rel=0.00501)


def test_neither_deadline_nor_budget_is_proposed_where_something_else_rules_all_out():
    for candidates in ({"batch_per_gpu": [100_000]}, {"strategies": "data-parallel", "nodes": 2}):
        with pytest.raises(InputError, match="no candidate can be run") as caught:
            plan(make_request(changed(candidates=candidates, plan={"deadline": "1 s", "budget": "1 USD"})))
        (problem,) = caught.value.problems
        assert problem.key == "candidates"


def test_tokens_are_samples_of_sequences():
    data = changed(
        plan={"model": "gpt2", "samples": None, "epochs": None, "tokens": 1024e6, "deadline": None},
        candidates={"batch_per_gpu": 2},
    )
    assert make_request(data).samples == 1e6
    with pytest.raises(InputError, match="has no tokens"):
        make_request(changed(plan={"samples": None, "tokens": 1e9}))


def test_the_command(simperf_plan):
    code, out, err = simperf_plan()
    assert code == 0, err
    assert "1*" in out
    assert "instances.vantage.sh as of 2026-01-21" in " ".join(out.split())
    code, out, _ = simperf_plan("--format", "json")
    document = json.loads(out)
    assert document["ranked"][0]["number"] == 1
    code, out, _ = simperf_plan("--explain", "1", "--plot", "plan.svg")
    assert code == 0
    assert "If one resource were faster" in out
    assert "Critical path" in out
    assert simperf_plan("--explain", "99")[0] == 2


@pytest.fixture
def simperf_plan(tmp_path, monkeypatch, capsys):
    from simperf.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(
        '[plan]\nmodel = "resnet18"\nsamples = 1000000\nbudget = "100 USD"\n[candidates]\n'
        'instances = ["p3-2xlarge", "g4dn-xlarge"]\nnodes = 1\nbatch_per_gpu = [32, 64]\n'
    )

    def command(*words):
        capsys.readouterr()
        code = main(["plan", "plan.toml", *words])
        return code, *capsys.readouterr()

    return command


def test_a_plan_shows_itself_in_a_notebook(found):
    assert "<table>" in found._repr_html_()
    assert "simulated" in repr(found)
