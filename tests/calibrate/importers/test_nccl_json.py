"""JSON of nccl-tests that is partial or odd; whole files are in `test_import_nccl`."""

import json

import pytest

from simperf.calibrate.importers.nccl_tests import import_nccl_json

BODY = {"time": 50.0, "bus_bw": 10.0}


def read(results, *, args=("all_reduce_perf",), collective="", ranks=0, **rest):
    document = {"args": list(args), "results": results, **rest}
    return import_nccl_json(json.dumps(document), "x.json", collective=collective, ranks=ranks)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("size 8", "not a row of a table: str"),
        ({"out_of_place": BODY}, "no 'size'"),
        ({"size": "many", "out_of_place": BODY}, "invalid literal"),
        ({"size": 8}, "neither out_of_place nor in_place"),
        ({"size": 8, "out_of_place": {}}, "no 'time'"),
        ({"size": 8, "in_place": {"time": 0}}, "a time of 0 us"),
        ({"size": 8, "in_place": {"time": "nan"}}, "a time of nan us"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_the_others_are_read(row, reason):
    found = read([{"size": 4, "out_of_place": BODY}, row, {"size": 16, "in_place": BODY}])
    assert [point.at["nbytes"] for point in found.dataset] == [4, 16]
    (problem,) = found.problems
    assert (problem.file, problem.key) == ("x.json", "results[1]")
    assert reason in problem.message


def test_both_places_are_points_of_their_own():
    (out, into) = read([{"size": 4, "out_of_place": BODY, "in_place": {"time": 40.0, "nwrong": 3}}]).dataset
    assert (out.at["in_place"], out.median, out.warnings) == (False, pytest.approx(50e-6), ())
    assert (into.at["in_place"], into.median) == (True, pytest.approx(40e-6))
    assert "wrong results" in into.warnings[0]


def test_how_many_ranks_there_were():
    row = [{"size": 4, "out_of_place": BODY}]
    assert read(row).dataset.machine["ranks"] == 1
    assert read(row, config={"nthreads": 2, "ngpus": 4}).dataset.machine["ranks"] == 8
    assert read(row, config={"ngpus": 4, "devices": [{}, {}]}).dataset.machine["ranks"] == 2
    assert read(row, config="odd", ranks=16).dataset.machine["ranks"] == 16


def test_a_file_that_does_not_say_its_collective():
    row = [{"size": 4, "out_of_place": BODY}]
    found = read(row, args=())
    assert len(found.dataset) == 0
    assert found.problems[0].key == "--collective"
    assert "all-gather" in str(found.problems[0])
    assert read(row, args=(), collective="all-gather").dataset.series == ("all-gather/nccl",)
    assert read(row, args=(), collective="no such").problems[0].key == "--collective"


def test_a_file_without_results_or_without_json():
    (problem,) = import_nccl_json('{"results": {}}', "x.json").problems
    assert "no results of nccl-tests" in problem.message
    found = import_nccl_json("not at all", "x.json")
    assert [problem.message for problem in found.problems] == ["no JSON"]
    assert len(found.dataset) == 0


def test_a_file_that_breaks_off_is_read_up_to_there():
    rows = [{"size": 1024 << i, "out_of_place": BODY} for i in range(4)]
    config = {"devices": [{"device_name": "NVIDIA A100"}, {}], "nthreads": "many"}
    text = json.dumps({"args": ["all_gather_perf"], "config": config, "results": rows}, indent=1)
    place = text.index("4096") + 20
    found = import_nccl_json(text[:place], "x.json")
    assert [point.at["nbytes"] for point in found.dataset] == [1024, 2048]
    assert {(point.series, point.at["ranks"]) for point in found.dataset} == {("all-gather/nccl", 2)}
    assert found.dataset.machine["gpu"] == "NVIDIA A100"
    (problem,) = found.problems
    assert problem.message == "no JSON from here on: 2 rows before it were read"
    assert text[:place].splitlines()[problem.line - 1].strip() in ("{", "},")


def test_numbers_of_threads_that_are_none_count_as_one():
    found = read([{"size": 8, "out_of_place": BODY}], config={"nthreads": "many", "ngpus": 4, "devices": 7})
    assert found.dataset.measurements[0].at["ranks"] == 4
    assert not read([{"size": 8, "out_of_place": BODY}], args=[]).dataset.measurements


def test_what_simperf_wrote_keeps_its_algorithm():
    row = [{"size": 4, "experiment_name": "tree", "out_of_place": BODY}]
    assert read(row, args=("simperf", "collective", "all-reduce")).dataset.series == ("all-reduce/tree",)
    assert read(row).dataset.series == ("all-reduce/nccl",)


def test_what_a_file_says_of_hosts_and_processes():
    row = [{"size": 4, "out_of_place": BODY}]

    def setup(devices, **more):
        (point,) = read(row, config={"devices": devices, **more}).dataset
        return {key: value for key, value in point.at.items() if key in ("servers", "launches")}

    one, other, nameless = {"hostname": "a", "device_info": "NVIDIA A100-SXM4-40GB"}, {"hostname": "b"}, {}
    assert setup([one, one], ngpus=2) == {"servers": 1, "launches": 2}
    assert setup([one, other], ngpus=1) == {"servers": 2}
    assert setup([one, nameless]) == {}
    assert read(row, config={"devices": [one, one]}).dataset.machine["gpu"] == "NVIDIA A100-SXM4-40GB"
    ours = read(row, args=("simperf", "collective", "all_reduce"), config={"devices": [], "ngpus": 8})
    assert "launches" not in ours.dataset.measurements[0].at
