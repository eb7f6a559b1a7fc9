"""Programs with parameter servers say what a person might not expect."""

from simperf.run import run
from simperf.scenario import load_scenario


def test_servers_that_share_a_node_are_told():
    scenario = load_scenario("training/ps-servers", ["program.servers=20"])
    assert run(scenario).notes == ("20 servers live on 16 nodes and share their ports",)
