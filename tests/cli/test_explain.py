"""`simperf explain`: table, JSON and CSV, and messages for what is wrong."""

import json

import pytest

import simperf as package
from tests.study.test_explain import DDP
from tests.study.written_step import write_step

JOB = """
[machine]
use = "dgx-a100-80gb"
[frontend]
use = "pytorch"
[program]
use = "train"
model = "bert-base-128"
batch_per_gpu = 8
precision = "fp16"
steps = 1
"""


@pytest.fixture
def files(tmp_path):
    write_step(tmp_path / "rank0.json.gz", package.make_scenario(DDP), "gpu0")
    (tmp_path / "job.toml").write_text(JOB)


@pytest.mark.usefixtures("files")
def test_a_table(simperf):
    code, out, err = simperf("explain", "rank0.json.gz", "job.toml", "--set", "frontend.launch=1 us")
    assert code == 0
    for word in ("recorded", "simulated", "difference", "products", "host", "a step", "most of it"):
        assert word in out
    assert "nothing runs" in err


@pytest.mark.usefixtures("files")
def test_json_and_csv_say_the_same(simperf):
    found = json.loads(simperf("explain", "rank0.json.gz", "job.toml", "--format", "json")[1])
    rows = simperf("explain", "rank0.json.gz", "job.toml", "--format", "csv")[1].splitlines()
    assert [one["part"] for one in found["parts"]] == [row.split(",")[0] for row in rows[1:]]
    assert sum(one["difference"] for one in found["parts"]) == pytest.approx(found["difference"], abs=1e-9)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("none.json", "job.toml"), "none.json"),
        (("rank0.json.gz", "none.toml"), "none.toml"),
        (("rank0.json.gz", "job.toml", "--step", "9"), "--step"),
        (("rank0.json.gz", "job.toml", "--rank", "9"), "--rank"),
        (("job.toml", "job.toml"), "job.toml"),
    ],
)
def test_what_is_wrong_is_told(simperf, words, told):
    code, out, err = simperf("explain", *words)
    assert (code, out) == (2, "")
    assert told in err
    assert "Traceback" not in err
