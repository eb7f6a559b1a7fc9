"""Scenarios of recorded steps: where they run, and what is refused."""

import pytest

from simperf.errors import InputError
from simperf.scenario.replay import replay_scenario


def test_as_recorded_there_is_no_machine():
    made = replay_scenario(["a/trace.json"], options={"step": 2})
    assert made["scenario"] == {"title": "trace.json", "answer": {"metric": "time per step"}}
    assert made["program"]["step"] == 2
    assert made["program"]["trace"][0].endswith("trace.json")
    assert "machine" not in made


def test_a_gpu_stands_in_a_machine_of_as_many_and_a_server_is_used_as_it_is():
    one, two = (replay_scenario([f"{index}.json" for index in range(count)], "a100-sxm4-40gb") for count in (1, 2))
    assert [node["id"] for node in one["machine"]["node"]] == ["gpu0", "cpu0"]
    assert [node["id"] for node in two["machine"]["node"]] == ["gpu{0..1}", "cpu0"]
    assert "collectives" not in one["program"]
    assert two["program"]["collectives"] == "recorded"
    assert replay_scenario(["0.json"], "dgx-a100")["machine"] == {"use": "dgx-a100"}


@pytest.mark.parametrize("on", ["", "a100-sxm4-40gb"])
def test_collectives_without_a_network_are_refused(on):
    with pytest.raises(InputError, match="has no network of its own") as caught:
        replay_scenario(["0.json"], on, {"collectives": "network"})
    (problem,) = caught.value.problems
    assert problem.key == "collectives"
