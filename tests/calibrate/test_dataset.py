"""The file of raw measurements (simperf.calibrate.dataset)."""

import json

import pytest

from simperf.calibrate import Dataset, Measurement
from simperf.errors import InputError

POINTS = (
    Measurement("gemm", {"m": 64, "dtype": "fp32"}, (1e-3, 2e-3, 3e-3)),
    Measurement("copy/h2d", {"nbytes": 1024.0}, (5.0,), unit="samples/s", warnings=("one reading",)),
)
DATA = Dataset("a machine", {"cores": 2}, {"torch": "2"}, {"command": "x"}, POINTS, ("no GPU",))


@pytest.mark.parametrize("name", ["d.json", "d.json.gz"])
def test_saved_and_loaded_without_loss(tmp_path, name):
    DATA.save(tmp_path / name)
    assert Dataset.load(tmp_path / name) == DATA
    (tmp_path / "again").write_bytes(Dataset.load(tmp_path / name).to_bytes())
    assert (tmp_path / "again").read_bytes() == DATA.to_bytes()


def test_an_empty_one_is_a_file_too(tmp_path):
    Dataset("empty").save(tmp_path / "d.json")
    assert Dataset.load(tmp_path / "d.json") == Dataset("empty")


def test_points_are_found_and_replaced():
    assert DATA.series == ("gemm", "copy/h2d")
    assert DATA.select("copy/") == POINTS[1:]
    assert DATA.select("gemm", m=64) == POINTS[:1]
    assert not DATA.select("gemm", m=65)
    newer = Measurement("gemm", {"dtype": "fp32", "m": 64}, (9e-3,))
    assert DATA.with_points([newer]).measurements == (newer, POINTS[1])


def test_numbers_of_a_point():
    point = Measurement("gemm", {"m": 64, "dtype": "fp32"}, (1.0, 2.0, 3.0, 4.0, 5.0))
    assert point.median == 3.0
    assert point.spread == pytest.approx(1.0)
    assert point.number("m") == 64.0
    with pytest.raises(InputError, match="no number 'k'"):
        point.number("k")


def test_broken_files_are_told_whole(tmp_path):
    path = tmp_path / "d.json"
    with pytest.raises(InputError, match="no such file"):
        Dataset.load(path)
    path.write_text('{"a": \n')
    with pytest.raises(InputError, match=r"d\.json:2"):
        Dataset.load(path)
    path.write_text("[]")
    with pytest.raises(InputError, match="simperf-dataset/1"):
        Dataset.load(path)
    data = json.loads(DATA.to_bytes())
    data["measurements"] += [{"series": "gemm"}, {"series": "gemm", "at": {}, "samples": [-1]}, 3]
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        Dataset.load(path)
    assert [problem.key for problem in caught.value.problems] == [f"measurements[{i}]" for i in (2, 3, 4)]


def test_a_packed_file_that_breaks_off_or_is_damaged_is_told(tmp_path):
    path = tmp_path / "d.json.gz"
    Dataset("whole", measurements=tuple(Measurement("x", {"n": n}, (1.0 + n,)) for n in range(50))).save(path)
    whole = path.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 2] ^= 0xFF
    for broken in (whole[: len(whole) // 2], whole[:5], bytes(turned), whole[:-6] + b"wrong!"):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"breaks off|is damaged"):
            Dataset.load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n", "the file is empty"),
        ("\0\1", "not a text file"),
        ('{"schema": "simperf-dataset/1", "measurements": [{"at": {}}]}', "it lacks series, samples"),
        ('{"schema": "simperf-dataset/1", "measurements": [{"at": {}, "samples": [1]}]}', "it lacks series"),
        (
            '{"schema": "simperf-dataset/1", "measurements": [7]}',
            r"measurements\[0\]: no measurement: it lacks series, at",
        ),
        ('{"schema": "simperf-dataset/1", "measurements": {"a": 1}}', "no measurement"),
        (
            '{"schema": "simperf-dataset/1", "measurements": [{"series": "x", "at": {}, "samples": ["a"]}]}',
            "be numbers",
        ),
        (
            '{"schema": "simperf-dataset/1", "measurements": [{"series": "x", "at": {}, "samples": 1}]}',
            "no measurement",
        ),
        (
            '{"schema": "simperf-dataset/1", "measurements": [{"series": "x", "at": [1], "samples": [1]}]}',
            "no measurement",
        ),
        (
            '{"schema": "simperf-dataset/1", "measurements": [{"series": "x", "at": {"a": [1]}, "samples": [1]}]}',
            "conditions",
        ),
        ('{"schema": "simperf-dataset/1", "machine": 3}', "machine: a table is expected"),
    ],
)
def test_a_file_that_is_no_data_set_is_told_what_is_wrong(tmp_path, text, said):
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        Dataset.load(path)
