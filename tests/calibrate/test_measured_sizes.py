"""Measured times of a collective as they are read for a comparison: logs, tables, sizes."""

import pytest

from simperf.calibrate.importers import import_file
from simperf.calibrate.measured_sizes import SizeRow, read_measured, spread_sizes, summary
from simperf.errors import InputError
from simperf.report.collectives import format_measured, measured_rows
from tests.calibrate.nccl_logs import nccl_log

TIMES = {1024: 2e-5, 2**20: 5e-5, 2**30: 1e-2}


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "mine.log"
    file.write_text(nccl_log(TIMES, 8))
    return file


def test_a_log_is_read_out_of_place(log):
    found = read_measured(log, "all-reduce")
    assert found.ranks == 8
    assert found.times == pytest.approx(TIMES)


def test_what_is_not_of_it_is_refused(log):
    with pytest.raises(InputError, match="times of another collective"):
        read_measured(log, "all-gather")


def test_tables_of_benchmarks_are_read(tmp_path):
    apart = tmp_path / "a100_n4.csv"
    apart.write_text(
        "size(B),count,type,time(ns),busbw(GB/s),time(ns),busbw(GB/s)\n1048576,262144,float,51400,30.60,52740,29.82\n"
    )
    assert read_measured(apart, "all-reduce", ranks=4).times == pytest.approx({2**20: 51.4e-6})
    with pytest.raises(InputError, match="among how many ranks"):
        read_measured(apart, "all-reduce")
    many = tmp_path / "h100.csv"
    many.write_text("n,size (B),min (ms),median (ms),mean (ms)\n2,2048,0.006,0.007,0.019\n4,2048,0.008,0.009,0.02\n")
    assert read_measured(many, "all-reduce", ranks=4).times == pytest.approx({2048: 9e-6})
    with pytest.raises(InputError, match="times among 2, 4 ranks"):
        read_measured(many, "all-reduce")
    with pytest.raises(InputError, match="times among 2, 4 ranks"):
        read_measured(many, "all-reduce", ranks=8)
    dataset = import_file(many, collective="all-reduce").dataset
    assert dataset.series == ("all-reduce/nccl",)
    assert {point.at["ranks"] for point in dataset} == {2, 4}
    with pytest.raises(InputError, match="no such collective"):
        import_file(many, collective="all-ready")


def test_many_sizes_are_thinned_evenly():
    sizes = [index << 20 for index in range(1, 1025)]
    found = spread_sizes(sizes, most=20)
    assert found[0] == sizes[0]
    assert found[-1] == sizes[-1]
    assert set(found) <= set(sizes)
    assert 10 <= len(found) <= 20


def test_rows_say_how_far_each_prediction_is_off():
    rows = [SizeRow(1024.0, 2e-5, 1e-5, 2.04e-5), SizeRow(2048.0, 2e-5, 3.2e-5, 2e-5)]
    assert [row.error for row in rows] == pytest.approx([-0.5, 0.6])
    assert summary(rows) == (
        "predicted: mean 55.0%, median 55.0%, worst +60.0%; with the profile: mean 1.0%, median 1.0%, worst +2.0%"
    )
    text = format_measured(rows, title="all-reduce")
    assert "-50.0%" in text
    assert "+2.0%" in text
    assert "profile" not in format_measured([SizeRow(1024.0, 2e-5, 1e-5)], title="all-reduce")
    assert measured_rows(rows)[0]["profile_error"] == pytest.approx(0.02)
