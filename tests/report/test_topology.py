"""Pictures of machines: the same bytes every time, everything on them, and errors in words."""

import re
from itertools import pairwise

import pytest

from simperf.errors import InputError
from simperf.hardware import Catalog, build_cluster, build_machine
from simperf.report.topology import draw_topology, save_topology

CATALOG = Catalog.load()


def texts(figure):
    found = {text.get_text() for text in figure.axes[0].texts}
    return found | {text.get_text() for text in figure.legends[0].get_texts()}


@pytest.mark.parametrize("name", ["dgx-1v", "pcie-4gpu", "dgx-h100", "desktop-1gpu"])
def test_every_node_and_link_of_a_server_is_on_it(name):
    machine = CATALOG.machine(name)
    figure = draw_topology(machine)
    assert set(machine.nodes) <= texts(figure)
    assert len(figure.axes[0].texts) == len(machine.nodes) + len(machine.edges) / 2
    assert any("GB/s a direction" in text for text in texts(figure))


def test_nodes_do_not_lie_on_each_other():
    for name in ("dgx-1v", "dgx-2", "p2-16xlarge", "mi300x-8gpu"):
        boxes = [
            patch.get_bbox()
            for patch in draw_topology(CATALOG.machine(name)).axes[0].patches
            if hasattr(patch, "get_bbox")
        ]
        spots = sorted((round(box.y0, 3), box.x0, box.x1) for box in boxes)
        for (row, _, right), (other, left, _) in pairwise(spots):
            assert row != other or right <= left, name


def test_a_cluster_shows_some_servers_and_says_how_many_more():
    figure = draw_topology(CATALOG.machine("dgx-h100-x128"))
    assert "120 more servers are connected in the same way and not drawn" in texts(figure)
    assert {"leaf0", "leaf3", "spine0"} <= texts(figure)
    assert {"rail0", "rail7"} <= texts(
        draw_topology(build_cluster("dgx-h100", 2, fabric="rail", link="infiniband-ndr"))
    )


def test_load_of_the_busier_direction_is_written_in_place_of_bandwidth():
    load = {"plx0>gpu0": 0.25, "plx0>cpu0": 0.5, "cpu0>plx0": 0.75, "gpu1>plx0": 0.6, "plx0>gpu1": 0.1}
    figure = draw_topology(CATALOG.machine("pcie-4gpu"), load=load)
    assert {"25 %", "75 %", "60 %"} <= texts(figure)
    assert not {"12.5", "50 %", "10 %"} & texts(figure)


def test_every_link_of_a_ring_is_seen_in_use():
    machine = CATALOG.machine("dgx-1v")
    ring = (0, 3, 2, 1, 5, 6, 7, 4)
    load = {f"gpu{a}>gpu{b}": 0.99 for a, b in zip(ring, ring[1:] + ring[:1], strict=True)}
    figure = draw_topology(machine, load=load)
    assert [text.get_text() for text in figure.axes[0].texts].count("99 %") == 8


def test_the_busiest_cable_of_a_server_and_both_ways_to_the_spine():
    machine = build_cluster("dgx-a100", 4, link="infiniband-hdr", fabric="fat-tree", servers_per_leaf=2)
    figure = draw_topology(machine, load={"leaf0>n0/nic5": 0.4, "spine0>leaf1": 0.7})
    assert {"40 %", "70 %", "0 %"} <= texts(figure)


def test_machines_without_cpu_are_drawn_too():
    ring = {"a": "gpu{0..4}", "b": "gpu{1,2,3,4,0}", "bandwidth": "50 GB/s"}
    machine = build_machine({"node": [{"id": "gpu{0..4}", "kind": "gpu"}], "link": [ring]}, CATALOG)
    assert {"gpu0", "gpu4", "50"} <= texts(draw_topology(machine))


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_files_are_whole_and_the_same_every_time(tmp_path, suffix):
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    save_topology(CATALOG.machine("desktop-1gpu"), first)
    save_topology(CATALOG.machine("desktop-1gpu"), second)
    assert first.read_bytes() == second.read_bytes()
    if suffix == ".svg":
        assert re.search(r">\s*gpu0\s*<", first.read_text())


@pytest.mark.parametrize("name", ["x.txt", "x", "nowhere/x.svg"])
def test_what_cannot_be_written(tmp_path, name):
    with pytest.raises(InputError):
        save_topology(CATALOG.machine("desktop-1gpu"), tmp_path / name)


@pytest.mark.parametrize("name", ["p3-2xlarge", "desktop-1gpu", "dgx-1v", "dgx-a100-x4"])
def test_the_legend_lies_on_the_picture(name):
    machine = CATALOG.machine(name)
    for load in (None, {}):
        figure = draw_topology(machine, load=load)
        figure.draw_without_rendering()
        (legend,) = figure.legends
        assert legend.get_window_extent().x1 <= figure.bbox.x1, load
