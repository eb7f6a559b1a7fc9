"""The network of a server's cards: that of the catalogue's clusters, and of every server that has a card."""

import pytest

from simperf.errors import InputError
from simperf.hardware import Catalog, build_cluster
from simperf.hardware.devices import NicPart
from simperf.hardware.server_fabric import fabric_of

CATALOG = Catalog.load()
#: clusters on another network than their servers' cards are for: a textbook's and a published one
OTHER = {"pcie-4gpu-x4", "llama3-24k"}
CLUSTERS = [name for name in CATALOG.names("cluster") if "server" in CATALOG.file("cluster", name).data]
CARDS = [
    name
    for name in CATALOG.names("server")
    if any(isinstance(node.part, NicPart) for node in CATALOG.machine(name).nodes.values())
]


@pytest.mark.parametrize("name", CLUSTERS)
def test_links_and_switches_of_a_cluster_are_those_of_its_cards(name):
    data = CATALOG.file("cluster", name).data
    found, entered = fabric_of(CATALOG, data["server"]), data["fabric"]
    same = all(found.get(key) == entered.get(key) for key in ("link", "switch", "count"))
    assert same is (name not in OTHER)


@pytest.mark.parametrize("name", CARDS)
def test_a_server_has_a_network_as_fast_as_its_cards(name):
    options = fabric_of(CATALOG, name)
    kind, cables = options.pop("type"), options.pop("count", 1)
    machine = build_cluster(name, 2, fabric=kind, cables=cables, **options)
    ports = machine.servers[0].ports
    cards = [node.part for node in CATALOG.machine(name).nodes.values() if isinstance(node.part, NicPart)]
    assert len(ports) == len(cards)
    assert kind == ("rail" if len(cards) > 1 else "star")
    for port in ports:
        assert 0.9 * cards[0].bandwidth < port.bandwidth
        assert CATALOG.link(port.part).technology == (
            "infiniband" if cards[0].technology == "infiniband" else "ethernet"
        )


def test_a_server_without_a_card_has_no_network():
    with pytest.raises(InputError, match="the server has no NIC"):
        fabric_of(CATALOG, "book-8v100")
