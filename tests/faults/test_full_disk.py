"""A disk that is full: the message names the file, and nothing half-written stays."""

import errno
import json
import os

import pytest

from simperf.cli import main
from simperf.errors import InputError
from simperf.files import atomic_writer, write_bytes
from simperf.study.journal import Journal

resource = pytest.importorskip("resource", reason="limits of POSIX")
MOST = 2000


@pytest.fixture
def small_files():
    """No file may be larger than 2000 B, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_cannot_be_written_whole_is_named_and_the_old_one_stays(tmp_path, small_files):
    target = tmp_path / "result.json"
    write_bytes(target, b"old")
    with pytest.raises(InputError, match=r"result\.json: cannot be written: File too large"):
        write_bytes(target, b"x" * 100_000)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_device_that_is_full_is_named(capsys):
    for option in ("--trace", "--plot"):
        assert main(["run", "d2l/async", option, "/dev/full", *(["--format", "json"] * (option == "--trace"))]) == 2
        assert "/dev/full" in capsys.readouterr().err


def test_an_error_of_another_file_is_told_as_that(tmp_path):
    with pytest.raises(FileNotFoundError, match="other"), atomic_writer(tmp_path / "result.json"):
        (tmp_path / "other").read_bytes()
    assert os.listdir(tmp_path) == []


def test_a_sweep_keeps_the_points_that_there_was_room_for(tmp_path, small_files, capsys):
    output = tmp_path / "table.jsonl"
    words = ["sweep", "d2l/async", "--vary", "program.n=1..40", "-o", str(output), "--no-cache", "--fast"]
    assert main(words) == 2
    assert "table.jsonl.journal: cannot be written: File too large" in capsys.readouterr().err
    kept = (tmp_path / "table.jsonl.journal").read_bytes().count(b"\n") - 1
    assert 0 < kept < 40
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert main(words) == 0
    assert len(output.read_text().splitlines()) >= 40
    assert os.listdir(tmp_path) == ["table.jsonl"]


def test_a_point_that_was_not_written_does_not_count(tmp_path, monkeypatch):
    with Journal(tmp_path / "book", {"study": 1}, read=json.loads) as book:
        book.add({"point": 0})

        def full(_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(book, "_stream", type("Full", (), {"write": staticmethod(full)}))
            with pytest.raises(InputError, match="book: cannot be written: No space left on device"):
                book.add({"point": 1})
        assert list(book.rows) == [0]


def test_a_folder_in_place_of_the_table_is_refused_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("simperf.study.sweep.run_tasks", None)
    folder = tmp_path / "table.jsonl"
    folder.mkdir()
    assert main(["sweep", "d2l/async", "--vary", "program.n=1..4", "-o", str(folder)]) == 2
    assert "this is a directory, a file is expected" in capsys.readouterr().err
