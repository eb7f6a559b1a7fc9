"""Logs of nccl-tests, new and old, whole and damaged."""

import json

import pytest

from simperf.calibrate.importers import import_file, import_files, kind_of
from simperf.calibrate.importers.nccl_tests import known_collective, ranks_from
from simperf.collectives.bench import Row
from simperf.errors import InputError
from simperf.report.collectives import nccl_document

NEW = """\
# nThread 1 nGpus 4 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid 123456 on secret-host device  0 [0x07] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid 123456 on secret-host device  1 [0x0f] NVIDIA A100-SXM4-40GB
#  Rank  2 Group  0 Pid 123456 on secret-host device  2 [0x47] NVIDIA A100-SXM4-40GB
#  Rank  3 Group  0 Pid 123456 on secret-host device  3 [0x4e] NVIDIA A100-SXM4-40GB
NCCL version 2.19.3+cuda12.3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    41.94   25.00   37.50      0    40.00   26.21   39.32      0
     2097152        524288     float     sum      -1    52.43   40.00   60.00      0    52.43   40.00   60.00    N/A
     4194304       1048576     float     sum      -1    83.89   50.00   75.00      0    83.89   50.00   75.00      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 57.8
"""
OLD = """\
$ mpirun -np 8 ./build/all_gather_perf -b 8 -e 128M
#                                                     out-of-place                       in-place
#       size    count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)  (elements)                  (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    33554432  1048576   float    none   1000.0   33.55   29.36  0e+00   1000.0   33.55   29.36  0e+00
"""


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_log_is_read_whole_and_hosts_are_not_kept(file):
    found = import_file(file("all_reduce_perf.log", NEW))
    assert found.problems == ()
    data = found.dataset
    assert data.series == ("all-reduce/nccl",)
    assert len(data) == 6
    point = data.select("all-reduce/nccl", nbytes=1048576, in_place=True)[0]
    assert point.samples == (pytest.approx(40e-6),)
    setup = {"ranks": 4, "servers": 1, "launches": 4}
    assert dict(point.at) == {"nbytes": 1048576, "dtype": "fp32", "redop": "sum", **setup, "in_place": True}
    assert data.machine["gpu"] == "NVIDIA A100-SXM4-40GB"
    assert data.versions["nccl"] == "2.19.3+cuda12.3"
    assert b"secret-host" not in data.to_bytes()


def test_an_old_log_has_no_root_and_its_ranks_follow_from_its_bandwidths(file):
    found = import_file(file("run.txt", OLD))
    point = found.dataset.select("all-gather/nccl", in_place=False)[0]
    assert (point.at["ranks"], point.median) == (8, pytest.approx(1e-3))


def test_damaged_lines_are_named_and_the_others_read(file):
    lines = NEW.splitlines()
    lines[13] = lines[13].replace("40.00   60.00      0    52.43", "99.00   60.00      0    52.43", 1)
    lines[14] = lines[14][:60]
    found = import_file(file("all_reduce.log", "\n".join(lines)))
    assert [point.at["nbytes"] for point in found.dataset] == [1048576, 1048576]
    assert [problem.line for problem in found.problems] == [14, 15]
    assert "40.00 GB/s, but it says 99.00" in found.problems[0].message
    assert "cut off" in found.problems[1].message


def test_a_log_that_does_not_say_its_collective_needs_to_be_told(file):
    path = file("run.log", NEW)
    with pytest.raises(InputError, match="does not say which collective"):
        import_file(path)
    with pytest.raises(InputError, match="no such collective"):
        import_file(path, collective="all-reduc")
    found = import_file(path, collective="reduce-scatter").dataset.measurements[0]
    assert (found.series, found.at["ranks"]) == ("reduce-scatter/nccl", 4)


def test_ranks_are_told_only_of_a_log_that_does_not_name_them(file):
    told = file("all_reduce.log", NEW)
    assert import_file(told, ranks=4).dataset == import_file(told).dataset
    with pytest.raises(InputError, match="--ranks: the file names 4 ranks"):
        import_file(told, ranks=3)
    with pytest.raises(InputError, match="--collective: the file is of all-reduce"):
        import_file(file("run.log", f"$ ./all_reduce_perf -g 4\n{NEW}"), collective="broadcast")
    silent = file("all_gather.log", "\n".join(line for line in NEW.splitlines() if "Rank" not in line))
    assert import_file(silent, ranks=3).dataset.measurements[0].at["ranks"] == 3


def test_rows_before_any_header_are_refused_with_their_line(file):
    row = NEW.splitlines()[12]
    with pytest.raises(InputError, match="no header before it") as caught:
        import_file(file("all_reduce.log", "# busbw\n" + row))
    assert caught.value.problems[0].line == 2


def test_what_the_collective_command_writes_comes_back(file):
    rows = [
        Row("ring", nbytes, time, nbytes / time, 1.5 * nbytes / time, 0.0, "", 0.0, "exact")
        for nbytes, time in ((1048576, 50e-6), (2097152, 90e-6))
    ]
    document = nccl_document(rows, args=["simperf", "collective", "all-reduce", "--json"], factor=2, ngpus=4)
    found = import_file(file("out.json", json.dumps(document, indent=2)))
    assert found.problems == ()
    points = found.dataset.select("all-reduce/ring", in_place=False)
    assert [(p.at["nbytes"], p.at["ranks"], p.median) for p in points] == [
        (1048576, 4, pytest.approx(50e-6)),
        (2097152, 4, pytest.approx(90e-6)),
    ]


def test_a_json_file_of_nccl_tests_itself(file):
    body = {"time": 100.0, "alg_bw": 10.0, "bus_bw": 15.0, "nwrong": 0}
    devices = [{"rank": i, "hostname": "secret", "device_name": "NVIDIA H100"} for i in range(4)]
    document = {
        "args": ["./build/all_reduce_perf", "-J", "x.json"],
        "nccl_version": 22304,
        "config": {"nthreads": 1, "ngpus": 4, "devices": devices},
        "results": [
            {"size": 1000000, "count": 250000, "type": "half", "redop": "sum", "out_of_place": body, "in_place": body},
            {"size": 2000000, "type": "half", "out_of_place": {**body, "time": -1.0}},
            {"type": "half", "out_of_place": body},
        ],
    }
    found = import_file(file("x.json", json.dumps(document)))
    assert [dict(p.at)["dtype"] for p in found.dataset] == ["fp16", "fp16"]
    assert [problem.key for problem in found.problems] == ["results[1]", "results[2]"]
    assert found.dataset.machine["gpu"] == "NVIDIA H100"
    assert b"secret" not in found.dataset.to_bytes()
    with pytest.raises(InputError, match="--ranks: the file names 4 ranks"):
        import_file(file("x.json", json.dumps(document)), ranks=8)
    with pytest.raises(InputError, match="--collective: the file is of all-reduce"):
        import_file(file("x.json", json.dumps(document)), collective="all-gather")
    with pytest.raises(InputError, match="--collective: no such collective"):
        import_file(file("x.json", json.dumps(document)), collective="all-ready")


def test_several_files_become_one_data_set_and_a_bad_one_does_not_stop_them(file):
    good, again = file("all_reduce_a.log", NEW), file("all_reduce_b.log", NEW)
    bad = file("empty.log", "")
    found = import_files([good, again, bad])
    assert len(found.dataset) == 6
    assert all(len(point.samples) == 2 for point in found.dataset)
    assert [problem.message for problem in found.problems] == ["the file is empty"]
    assert found.dataset.made["source"] == "all_reduce_a.log, all_reduce_b.log"
    with pytest.raises(InputError, match="the file is empty"):
        import_files([bad])


def test_kinds_and_names():
    assert kind_of(NEW) == kind_of(OLD) == "nccl-tests"
    assert kind_of("just words") == ""
    assert known_collective("sendrecv_perf") == "send"
    assert ranks_from("all-reduce", 1.0) == 2
    assert ranks_from("reduce-scatter", 1.5) == 0
