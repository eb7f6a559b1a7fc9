"""Profiles of half of the sizes of tables of collectives, played at the others (simperf.accuracy.fits.collectives)."""

import math

import pytest

import simperf
from simperf.accuracy.fits.collectives import collective_rows

pytest.importorskip("scipy")

#: a server of eight H100 whose set-up is known
KNOWN = "nccl-h100x8-p5-awsbatch"
SIZES = [2**power for power in range(12, 31)]


def case(name, times, kind="allreduce"):
    table = {"columns": ["size_B", "time_us_out_of_place"], "unit": {}, "table": [[s, t * 1e6] for s, t in times]}
    return {"id": name, "kind": kind, "measured": table, "source": {"repo": "a/b"}}


def straight(size):
    """A time that is a power of the size, which a line over the logarithms meets everywhere."""
    return 1e-4 * (size / SIZES[0]) ** 0.5


def test_a_table_without_jumps_is_met_by_half_of_its_sizes(tmp_path):
    (row,) = collective_rows(tmp_path, [case(KNOWN, [(size, straight(size)) for size in SIZES])])
    assert (row.points, row.predicted, row.note) == (10, 9, "2 sizes in the profile")
    assert row.inside < 1e-9
    assert row.outside < 1e-9
    assert row.plain > 0.05
    assert math.isnan(row.coverage)


def test_what_is_graded_is_what_a_run_plays(tmp_path):
    """The jump of one held-out size is missed by as much as `simperf.collective` with the profile of the others."""
    jump = SIZES[7]
    times = [(size, straight(size) * (2.0 if size == jump else 1.0)) for size in SIZES]
    (row,) = collective_rows(tmp_path, [case(KNOWN, times)])
    assert row.worst == pytest.approx(-0.5, abs=1e-9)
    assert row.outside == pytest.approx(0.5 / 9, rel=1e-6)
    (alone,) = simperf.collective("all-reduce", on="dgx-h100", sizes=[jump])
    assert alone.time != pytest.approx(straight(jump), rel=0.01), "without the profile it is another time"


def test_a_time_below_the_bound_of_the_links_is_a_row_with_its_reason(tmp_path):
    (row,) = collective_rows(tmp_path, [case(KNOWN, [(size, 1e-7) for size in SIZES])])
    assert (row.points, row.predicted, row.what) == (0, 0, "not fitted")
    assert "below the bound of the links" in row.note


def test_what_no_run_plays_is_left_out_with_its_reason(tmp_path):
    rows = list(
        collective_rows(
            tmp_path,
            [
                case("nccl-h100x16-2node-alpha", [(size, 1e-3) for size in SIZES]),
                case("nccl-a100x8-alltoall-superbench", [(size, 1e-3) for size in SIZES], "alltoall"),
                case(KNOWN, [(size, straight(size)) for size in SIZES[:4]]),
            ],
        )
    )
    assert [row.note for row in rows] == [
        "the network between the two servers is not stated",
        "a run takes no measured times of all-to-all",
        "4 sizes are too few to hold half of them out",
    ]


def test_large_tables_are_read_from_their_folder(tmp_path):
    (tmp_path / "nccl").mkdir()
    lines = [f"{size},{size // 4},float,{straight(size) * 1e9},1,1,1" for size in SIZES]
    header = "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)"
    (tmp_path / "nccl" / "a100_all_reduce_n4.csv").write_text("\n".join([header, *lines]) + "\n")
    (row,) = collective_rows(tmp_path, [])
    assert row.name == "A100 with NVSwitch, 4 ranks"
    assert row.outside < 1e-6
