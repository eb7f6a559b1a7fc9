"""Programs with parameter servers say what a person might not expect."""

import pytest

from simperf.errors import InputError
from simperf.run import run
from simperf.scenario import load_scenario


def test_servers_that_share_a_node_are_told():
    scenario = load_scenario("training/ps-servers", ["program.servers=20"])
    assert run(scenario).notes == ("20 servers live on 16 nodes and share their ports",)


def test_what_would_not_be_used_or_has_no_meaning_is_refused():
    with pytest.raises(InputError, match=r"program\.jitter: it cannot be negative"):
        load_scenario("training/ps-servers", ["program.jitter=-0.5"])
    settings = ["program.batch=0", "program.bound=2"]
    with pytest.raises(InputError) as caught:
        run(load_scenario("training/ps-servers", settings))
    assert [problem.key for problem in caught.value.problems] == ["batch", "bound"]
    assert "mode is 'synchronous', a bound is of 'bounded'" in str(caught.value)


def test_servers_and_ring_tell_what_each_run_took_for_granted():
    """Of the machines with servers one is simulated; the ring says how GPUs were scaled."""
    plan = ["machine.count=4", "program.servers=2", "program.batch=8", "program.steps=2", "program.precision=fp32"]
    result = run(load_scenario("measured/byteps-bert-large-256", [*plan, "program.model=d2l-resnet18"]))
    assert "with servers: 2 machines do the same at the same time: one is simulated for all" in result.notes
    ring, servers = (result.metrics[f"{way}: scaling efficiency"].value for way in ("ring", "servers"))
    gain = result.metrics["speed-up of servers"].value
    assert 0 < servers <= 1
    assert servers / ring == pytest.approx(1 + gain)
