"""Rows for tables and JSON say everything once."""

import json
from dataclasses import replace

from simperf.hardware import Catalog
from simperf.hardware.check import blueprint_problems
from simperf.hardware.view import link_rows, machine_document, node_rows, part_rows, part_words, tree_rows

CATALOG = Catalog.load()


def test_rows_of_a_part_have_unit_and_source():
    rows = {row["field"]: row for row in part_rows(CATALOG.gpu("v100-sxm2-16gb"))}
    assert rows["memory_bandwidth"] == {
        "field": "memory_bandwidth",
        "value": 900e9,
        "unit": "B/s",
        "text": "900.0 GB/s",
        "source": "NVIDIA V100 datasheet, January 2020",
    }
    assert rows["memory_capacity"]["text"] == "16 GiB"
    sold = replace(CATALOG.gpu("v100-sxm2-16gb"), memory_capacity=120e9)
    assert {row["field"]: row["text"] for row in part_rows(sold)}["memory_capacity"] == "120.0 GB"
    assert rows["sms"]["text"] == "80"
    assert all(row["source"] for row in rows.values())
    assert part_words(CATALOG.cpu("epyc-7742"))["memory"] == "ddr4-3200"
    assert "L3.capacity" in {row["field"] for row in part_rows(CATALOG.cpu("epyc-7742"))}
    assert part_rows(CATALOG.link("pcie3-x16"))[-1]["field"] == "bandwidth"


def test_every_connection_of_a_server_is_one_row():
    machine = CATALOG.machine("dgx-1v")
    rows = link_rows(machine)
    assert len(rows) == len(machine.edges) / 2
    assert len({frozenset((row["a"], row["b"])) for row in rows}) == len(rows)
    assert sum(row["count"] for row in node_rows(machine)) == len(machine.nodes)


def test_a_cluster_shows_its_server_and_its_fabric():
    machine = CATALOG.machine("dgx-h100-x128")
    assert {row["in"] for row in node_rows(machine)} == {"dgx-h100", "fabric"}
    rows = link_rows(machine)
    assert any(row["b"] == "leaf0" for row in rows)
    assert any(row["a"].startswith("leaf") for row in rows)


def test_json_has_si_numbers():
    spec = CATALOG.file("server", "p3-16xlarge").data
    document = json.loads(json.dumps(machine_document(CATALOG.machine("p3-16xlarge"), spec)))
    assert document["price"] == 24.48
    assert document["price_as_quoted"]["date"]
    edge = next(edge for edge in document["edges"] if edge["id"] == "gpu0>gpu3")
    assert (edge["bandwidth"], edge["count"]) == (40e9, 2)
    assert machine_document(CATALOG.machine("dgx-1v-x4"), {})["servers"] == 4


def test_the_tree_holds_every_node_once_parents_first():
    for name in ("dgx-1v", "dgx-2", "book-4gpu", "mi300x-8gpu"):
        seen = {""}
        for parent, node, _ in tree_rows(CATALOG.machine(name)):
            assert parent in seen
            assert node not in seen
            seen.add(node)
        assert seen - {""} == set(CATALOG.machine(name).nodes)


def test_servers_of_the_catalog_have_no_problem():
    for name in CATALOG.names("server"):
        assert blueprint_problems(CATALOG.machine(name).servers[0].blueprint) == []
