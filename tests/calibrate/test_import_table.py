"""Tables with units in their header."""

import pytest

from simperf.calibrate.importers import import_file, import_table
from simperf.calibrate.importers.table import column_of
from simperf.errors import InputError, UnitError


def test_units_of_the_header_hold_for_every_row_and_equal_conditions_are_one_point():
    text = "# taken by hand\nsize [MiB],ranks,note,time [us]\n1,4,a,100\n2,4,a,150.5\n1,4,a,110\n"
    data = import_table(text, "ring.csv").dataset
    assert data.series == ("ring",)
    first, second = data
    assert dict(first.at) == {"nbytes": 1048576.0, "ranks": 4, "note": "a"}
    assert first.samples == pytest.approx((100e-6, 110e-6))
    assert second.samples == pytest.approx((150.5e-6,))


def test_a_column_names_the_series_and_rates_can_be_readings():
    text = "series;size (kB);speed (Gbit/s)\ncopy/host;1;80\ncopy/fresh;1;8\n"
    data = import_table(text, "x.csv", series="ignored").dataset
    assert [(p.series, p.unit, p.median, p.at["nbytes"]) for p in data] == [
        ("copy/host", "B/s", pytest.approx(1e10), 1000.0),
        ("copy/fresh", "B/s", pytest.approx(1e9), 1000.0),
    ]
    assert import_table("n,time [ms]\n1,2\n", "t.csv", series="sgd").dataset.series == ("sgd",)


def test_two_columns_of_one_name_are_told_apart():
    (point,) = import_table("size(B),time(ns),time(ns)\n8,10,20\n", "t.csv").dataset
    assert (point.median, point.at["time 2"]) == (pytest.approx(10e-9), pytest.approx(20e-9))


def test_bad_rows_are_named_by_line_and_the_others_read():
    text = 'size [B],time [us]\n1,10\n2\n3,abc\n\n4,-1\n5,"50"\n'
    found = import_table(text, "t.csv")
    assert [p.at["nbytes"] for p in found.dataset] == [1.0, 5.0]
    assert [(problem.line, problem.message.split(":")[1].split()[0]) for problem in found.problems] == [
        (3, "1"),
        (4, "a"),
        (6, "time"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size [Gb],time [us]\n1,1\n", "bits or bytes"),
        ("size [B],ranks\n1,1\n", "no column says"),
        ("size [B],time [us]\n", "no rows under the header"),
        ("# nothing\n", "no header"),
    ],
)
def test_what_cannot_be_read_at_all_is_refused(text, words, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        import_file(path, kind="csv")


def test_headers():
    assert column_of("time [ms]").dimension == "s"
    assert column_of("rate [MiB/s]").dimension == "B/s"
    assert column_of("Bytes (B)").name == "nbytes"
    assert column_of("memory [GiB]").name == "memory"
    assert column_of(" n ").name == "n"
    with pytest.raises(UnitError, match="column 'x'"):
        column_of("x [furlong]")
