"""Files of measurements: what was read of them, what was not, and why."""

import gzip
import json

import pytest

from simperf.calibrate.importers.files import import_file, import_files
from simperf.calibrate.importers.imported import KINDS, Points, kind_of, read_measurements
from simperf.errors import InputError, UnknownNameError

TABLE = "series,nbytes [KiB],time [us]\nsend,4,10\nsend,8,12\n"
TRACE = json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "ts": 5, "dur": 3}]})


def test_readings_of_equal_conditions_come_together_in_their_order():
    points = Points()
    points.add("send", {"nbytes": 4, "ranks": 2}, [2.0], warnings=("unsteady",))
    points.add("send", {"nbytes": 8, "ranks": 2}, [9.0])
    points.add("send", {"ranks": 2, "nbytes": 4}, [1.0, 3.0], warnings=("unsteady", "few"))
    small, large = points.all()
    assert small.samples == (2.0, 1.0, 3.0)
    assert small.warnings == ("unsteady", "few")
    assert large.samples == (9.0,)


def test_a_point_without_readings_is_none():
    points = Points()
    points.add("send", {"nbytes": 4}, [])
    assert points.all() == ()


def test_what_cannot_be_read_is_said_with_the_file(tmp_path):
    empty, binary, broken = (tmp_path / name for name in ("empty.log", "core.bin", "cut.json.gz"))
    empty.write_text(" \n")
    binary.write_bytes(b"\x7fELF\0\0\0")
    broken.write_bytes(b"\x1f\x8b\x08\x00garbage that is no deflate stream")
    for path, reason in (
        (tmp_path / "absent.csv", "no such file"),
        (empty, "the file is empty"),
        (binary, "not a text file"),
        (broken, "the file is damaged"),
    ):
        with pytest.raises(InputError, match=reason) as caught:
            read_measurements(path)
        assert caught.value.problems[0].file == str(path)


def test_a_gzipped_file_that_was_cut_off_is_read_up_to_there(tmp_path):
    text = "\n".join(f"line {i} of many" for i in range(5000))
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(text.encode())[:-2000])
    kept = read_measurements(path)
    assert 1000 < len(kept) < len(text)
    assert text.startswith(kept)


def test_what_a_file_is_follows_from_how_it_begins():
    assert kind_of(TRACE) == "kineto"
    assert kind_of('[{"ph": "X"}]') == "kineto"
    assert kind_of('{"results": [], "bus_bw": 1}') == "nccl-tests"
    assert kind_of('{"something": "else"}') == ""
    assert kind_of("# a comment\n" + TABLE) == "csv"
    assert kind_of("a;b\n1;2\n") == "csv"
    assert kind_of("prose, with a comma and busbw\n1") == "csv"
    assert kind_of("prose") == ""


def test_a_kind_that_is_none_and_a_file_of_no_kind(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("just words")
    with pytest.raises(UnknownNameError, match="did you mean 'csv'"):
        import_file(path, kind="csw")
    with pytest.raises(InputError) as caught:
        import_file(path)
    assert caught.value.problems[0].key == "--kind"
    assert all(kind in str(caught.value) for kind in KINDS)


def test_a_file_of_which_nothing_can_be_read_is_an_error_with_its_reasons(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"traceEvents": []}')
    with pytest.raises(InputError, match="no events of torch's profiler"):
        import_file(path)


def test_files_of_several_kinds_become_one_data_set(tmp_path):
    table, trace, bad = (tmp_path / name for name in ("sizes.csv", "trace.json", "bad.json"))
    table.write_text(TABLE)
    trace.write_text(TRACE)
    bad.write_text("{")
    found = import_files([bad, table, trace])
    assert {point.series for point in found.dataset} == {"send", "host/op", "trace/length"}
    assert [point.median for point in found.dataset.select("send")] == pytest.approx([10e-6, 12e-6])
    assert found.dataset.made["source"] == "sizes.csv, trace.json"
    (problem,) = found.problems
    assert problem.file == str(bad)
    assert found.dataset.notes == (str(problem).replace(f"{tmp_path}/", ""),)
    with pytest.raises(InputError):
        import_files([bad, bad])


@pytest.mark.parametrize(
    ("name", "text", "given"),
    [
        ("t.json", TRACE, {"ranks": 8}),
        ("t.json", TRACE, {"collective": "all-reduce"}),
        ("t.json", TRACE, {"series": "send"}),
        ("t.csv", TABLE, {"series": "sent"}),
        ("t.csv", TABLE, {"ranks": 8}),
        ("t.csv", "nbytes [KiB],ranks,time [us]\n4,2,10\n", {"ranks": 8, "collective": "all-reduce"}),
        ("t.csv", "nbytes [KiB],ranks,time [us]\n4,2,10\n", {"series": "send", "collective": "all-reduce"}),
    ],
)
def test_what_is_said_of_files_without_effect_is_refused(tmp_path, name, text, given):
    (tmp_path / name).write_text(text)
    (without, _), *_ = given.items()
    with pytest.raises(InputError, match=f"--{without}: has no effect on these files"):
        import_files([tmp_path / name], **given)
    other = tmp_path / "other.csv"
    other.write_text("nbytes [KiB],time [us]\n4,10\n")
    if without == "series" and len(given) == 1:  # it has one on another file
        assert len(import_files([tmp_path / name, other], **given).dataset) >= 2
