"""Tables and pictures of collectives."""

import re

import pytest

from simperf.analysis.left_out import read_errors, spread
from simperf.analysis.questions import COLLECTIVES, size_class
from simperf.collectives.bench import Row, measure
from simperf.collectives.calls import Call
from simperf.hardware import build_topology
from simperf.report.collective_intervals import CollectiveIntervals
from simperf.report.collective_pictures import crossover_map, topology_picture
from simperf.report.collectives import (
    format_rows,
    format_winners,
    nccl_document,
    rows_csv,
    rows_document,
    size_text,
)
from simperf.report.style import save


def row(algorithm="ring", nbytes=1024.0, time=1e-3, load=0.9):
    return Row(algorithm, nbytes, time, nbytes / time, 2 * nbytes / time, time / 2, "r0>r1", load, "collapsed")


def test_a_link_binds_only_where_it_is_busy_most_of_the_time():
    text = format_rows([row(), row(load=0.2)], title="ring")
    assert text.splitlines()[-2].endswith("r0>r1")
    assert "latency, r0>r1" in text.splitlines()[-1]


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0"), (8, "8"), (1 << 10, "1K"), (3 << 20, "3M"), (1 << 40, "1024G"), (1500, "1500")]
)
def test_sizes_have_the_suffixes_of_nccl_tests(nbytes, text):
    assert size_text(nbytes) == text


def test_numbers_survive_the_way_into_data():
    rows = [row(), row("tree", 2048.0)]
    assert [each["time"] for each in rows_document(rows, CollectiveIntervals())] == [1e-3, 1e-3]
    assert rows_csv(rows).splitlines()[2].startswith("tree,2048,0.001,")
    assert "ring at 1K; tree at 2K" in format_winners(rows)
    document = nccl_document(rows, args=["x"], step=1024)
    assert document["config"]["step_bytes"] == 1024
    assert document["results"][1]["experiment_name"] == "tree"
    assert document["results"][0]["out_of_place"]["time"] == 1000.0


def test_the_map_has_a_cell_for_each_size_and_number_of_ranks(tmp_path):
    winners = {2: [row(), row("tree", 2048.0)], 4: [row("tree"), row("tree", 2048.0)]}
    made = crossover_map(winners, title="who wins")
    (axes,) = made.axes
    assert len(axes.patches) == 4
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {"ring", "tree"}
    save(made, tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size > 1000


@pytest.mark.parametrize(("kind", "n"), [("ring", 5), ("star", 5), ("star", 20), ("fully-connected", 4)])
def test_every_busy_link_of_a_wiring_is_drawn(kind, n):
    wiring = build_topology(kind, n, bandwidth=1e9, latency=1e-6)
    made = topology_picture(
        wiring.topology, measure(Call(wiring, "all-reduce", "ring", nbytes=1e6, ranks=wiring.gpus)), title="ring"
    )
    (axes,) = made.axes
    arrows = [text for text in axes.texts if text.get_text() == ""]
    drawn = min(n, 16)
    assert len(arrows) == {"ring": drawn, "star": 2 * drawn, "fully-connected": drawn}[kind]
    assert ("more nodes" in made.get_supxlabel()) == (n > 16)


def test_rows_of_nccl_have_intervals_by_size_and_idealised_ones_have_none():
    rows = [row(algorithm="nccl", nbytes=size) for size in (1024, 2048, 1e9)]
    intervals = CollectiveIntervals({"b200-sxm-180gb"}, 8)
    lines = intervals.lines(rows)
    assert [line.partition(": ")[0] for line in lines] == [
        "# 90 % interval, 8 KiB and below",
        "# 90 % interval, 64 MiB and above",
    ]
    (line,) = intervals.lines([row()])
    assert line.startswith("# no 90 % interval of idealised algorithms: ")
    assert intervals.ends(row()) is None
    assert "idealised" in intervals.reason(row())
    low, high = intervals.ends(rows[0])
    assert low < rows[0].time < high
    told, untold = rows_document([rows[0], row()], intervals)
    assert (told["time_interval"], told["no_interval"]) == ((low, high), "")
    assert (untold["time_interval"], untold["no_interval"]) == (None, intervals.reason(row()))


def test_where_published_collectives_say_nothing_the_reason_is_told_once():
    rows = [row(algorithm="nccl", nbytes=size) for size in (1024, 1e6, 1e9)]
    late = CollectiveIntervals({"b200-sxm-180gb"}, 8, "in published collectives no GPU is late")
    assert late.lines(rows) == ["# no 90 % interval: in published collectives no GPU is late"]
    (line,) = CollectiveIntervals({"b200-sxm-180gb"}, 10**9).lines(rows[1:2])
    assert re.search("are of at most [0-9,]+ GPUs, and it has 1,000,000,000", line)
    every = {one.gpu for one in read_errors(COLLECTIVES)}
    assert "too few collectives of other GPUs" in CollectiveIntervals(every, 8).reason(rows[0])


def test_a_published_figure_is_not_in_its_own_interval():
    """Of a machine whose collectives were published, only figures of other GPUs count."""
    errors = [one for one in read_errors(COLLECTIVES) if one.group == size_class(1e9)]
    others = [one for one in errors if one.gpu != "a100-sxm4-40gb"]
    assert len(others) < len(errors)
    intervals = CollectiveIntervals({"a100-sxm4-40gb"}, 8)
    (line,) = intervals.lines([row(algorithm="nccl", nbytes=1e9)])
    assert f"errors of {len(others)} published figures" in line
    low, high = intervals.ends(row(algorithm="nccl", nbytes=1e9))
    assert (low, high) == tuple(end * 1e-3 for end in spread(COLLECTIVES, others).factors())
