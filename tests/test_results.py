"""Results: floors that cannot be undercut, saving and loading without loss, the same bytes (simperf.results)."""

import json

import pytest

from simperf.engine.recorder import Span
from simperf.errors import FloorError, InputError
from simperf.results import Metric, ResourceUse, Result

RESULT = Result(
    "one",
    0.06,
    floors={"bandwidth": 0.03, "critical path": 0.05},
    metrics={"busbw": Metric(4e9, "B/s"), "loss": Metric(1.0, "1", "fitted", 0.9, 1.1)},
    resources={"gpu0": ResourceUse("device", 1.0, 0.03)},
    spans=(Span("gpu0/stream0", "k", 0.0, 0.03, "compute"),),
    scenario={"program": {"use": "async-chain"}},
    notes=("a note",),
)


@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_saved_and_loaded_without_loss(tmp_path, name):
    RESULT.save(tmp_path / name)
    loaded = Result.load(tmp_path / name)
    assert loaded == RESULT
    assert loaded.to_bytes() == RESULT.to_bytes()
    first = (tmp_path / name).read_bytes()
    loaded.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("time", [0.05 * (1 - 1e-6), 0.0, float("nan"), float("inf"), -1.0])
def test_a_time_below_its_floor_is_an_error_not_an_answer(time):
    with pytest.raises(FloorError, match=r"below its lower bound of 50\.00 ms \(critical path\)|no machine can take"):
        Result("two", time, floors={"critical path": 0.05})


def test_rounding_is_forgiven():
    assert Result("three", 0.05 * (1 - 1e-12), floors={"critical path": 0.05}).floor == ("critical path", 0.05)
    assert Result("four", 1.0).floor == ("none", 0.0)


def test_utilisation_is_a_share_of_what_could_have_been_done():
    assert ResourceUse("link", 1e9, 5e8).utilisation(1.0) == pytest.approx(0.5)
    assert ResourceUse("memory", 100.0, 80.0).utilisation(1.0) == pytest.approx(0.8)
    assert ResourceUse("host", float("inf"), 5.0).utilisation(1.0) == 0.0
    assert str(RESULT.metrics["loss"]) == "1 [0.9 .. 1.1]"


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\x1f\x8b\x00", b'{"schema": 99}', b'{"schema": 1}', b"\xb8"])
def test_what_is_no_saved_result_is_told(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"r\.json(:1)?: (not a saved result|the file (is damaged|breaks off))"
    ) as caught:
        Result.load(path)
    assert "codec" not in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        Result.load(tmp_path / "nothing.json")


def test_the_saved_form_is_plain_json_in_si_units():
    data = json.loads(RESULT.to_bytes())
    assert data["metrics"]["busbw"] == {"value": 4e9, "unit": "B/s", "origin": "simulated", "low": None, "high": None}
    assert data["time"] == 0.06
