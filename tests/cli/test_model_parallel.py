"""Commands on a scenario whose model is divided among GPUs: tensor, pipeline and data parallelism."""

import csv
import io
import json

import pytest

TINY = """[scenario]
title = "A tiny GPT on eight GPUs"
answer = { metric = "tokens per second per GPU", better = "higher" }
[machine]
use = "dgx-a100"
[model]
layers = 2
hidden = 512
heads = 8
vocabulary = 1024
sequence = 256
norm = "layer"
positions = "learned"
activation = "gelu"
[layout]
tp = 2
pp = 2
dp = 2
sharding = "zero-1"
[program]
use = "train"
strategy = "model-parallel"
precision = "bf16-master"
norm_kernels = "fused"
batch = 4
steps = 1
[[compare]]
name = "1F1B"
[[compare]]
name = "zero bubble"
set = { "program.schedule" = "zb-h1" }
"""

#: parts of a stage's step, which add up to it
PARTS = ("kernels", "slowed", "bubble", "idle", *(f"exposed {kind}" for kind in ("tensor", "pipeline", "data", "norm")))


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def tiny(tmp_path):
    """The file of a scenario."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def rows_of(out):
    return list(csv.DictReader(io.StringIO(out)))


def test_a_run_is_saved_shown_and_traced(simperf, tiny, tmp_path):
    code, out, _ = simperf("run", tiny, "--save", "r.json", "--trace", "t.json", "--format", "json")
    assert code == 0
    told = json.loads(out)
    metrics = {name: one["value"] for name, one in told["metrics"].items()}
    for stage in (0, 1):
        assert sum(metrics.get(f"stage {stage}: {part}", 0.0) for part in PARTS) == pytest.approx(
            metrics["time per step"]
        )
    code, shown, _ = simperf("show", "r.json", "--format", "json")
    assert code == 0
    assert json.loads(shown)["metrics"] == told["metrics"]
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    threads = {one["args"]["name"] for one in events if one["ph"] == "M" and one["name"] == "thread_name"}
    assert {"compute", "tp", "dp", "pp F0", "pp B0"} <= threads
    times = json.loads((tmp_path / "r.json").read_text())["times"]
    sent = {(one["stage"], one["dimension"]) for one in times if one["activity"] == "communication"}
    assert sent >= {(stage, dimension) for stage in (0, 1) for dimension in ("tp", "pp", "dp")}
    (messages,) = [one for one in times if (one["stage"], one["dimension"]) == (0, "pp")]
    assert 0 < messages["exposed"] < metrics["stage 0: bubble"], "a wait for the other stage is no communication"


def test_variants_are_compared(simperf, tiny):
    code, out, _ = simperf("compare", tiny, "--format", "csv")
    assert code == 0
    plain, split = rows_of(out)
    assert (plain["name"], split["name"]) == ("1F1B", "zero bubble")
    bubbles = [float(row["metrics.stage 0: bubble [s]"]) for row in (plain, split)]
    assert bubbles[1] < bubbles[0], "gradients of weights fill the end of the pipeline"


def test_layouts_and_schedules_are_swept(simperf, tiny):
    words = ("--vary", "program.microbatch=1,2,3", "--vary", "layout.tp=1,2")
    code, out, err = simperf("sweep", tiny, *words, "--format", "csv")
    assert code == 0
    rows = rows_of(out)
    assert [row["program.microbatch"] for row in rows] == ["1", "1", "2", "2", "3", "3"]
    assert "2 of 6 points failed" in err
    assert all("micro-batches of 3 do not divide it" in row["error"] for row in rows[4:])
    gpus = [float(row["metrics.GPUs"]) for row in rows[:4]]
    assert gpus == [4.0, 8.0, 4.0, 8.0]


def test_limits_name_what_a_step_waits_for(simperf, tiny):
    code, out, _ = simperf("limits", tiny, "--variant", "1F1B", "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert sum(part["time"] for part in found["critical_path"]) == pytest.approx(found["time"], rel=1e-9)
    assert found["together"]["time"] * 1.1 == pytest.approx(found["time"], rel=1e-9)
    changes = {one["resource"]: one["change"] for one in found["speed_ups"]}
    assert changes["nccl protocols"] > 0 < changes["a100-sxm4-40gb memory"]


def test_samples_give_intervals(simperf, tiny):
    code, out, _ = simperf("run", tiny, "--samples", "2", "--format", "json")
    assert code == 0
    told = json.loads(out)
    low, high = told["intervals"]["time"]
    assert low < high
    assert low > 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("layout.tp=3", "at most 8 ranks"),
        ("layout.cp=2", "at most 8 ranks"),
        ("layout.sharding=zero-2", "the size of a bucket"),
        ("program.chunks=2", 'schedule = "interleaved"'),
        ("program.schedule=1f1", "did you mean '1f1b'"),
        ("program.batch=5", "4 or 6"),
        ("program.stage_layers=[1,2]", "numbers of 0 or more that make 2"),
    ],
)
def test_what_does_not_divide_is_refused_with_what_would(simperf, tiny, change, told):
    code, out, err = simperf("run", tiny, "--set", change)
    assert (code, out) == (2, "")
    assert told in err


def test_a_wrong_option_of_the_strategy_is_the_only_error(simperf, tiny):
    code, _, err = simperf("run", tiny, "--set", "program.microbatch=0")
    assert code == 2
    assert err.count("error: ") == 1
    assert "program.microbatch: a whole number of 1 or more is expected" in err


def test_a_plan_says_which_strategies_it_has(simperf, tmp_path):
    (tmp_path / "plan.toml").write_text(
        '[plan]\nmodel = "llama3-8b"\nprecision = "bf16"\ntokens = 1e9\ndeadline = "240 h"\n'
        '[candidates]\ninstances = ["p4d-24xlarge"]\nnodes = [1]\n'
        'strategies = ["model-parallel"]\nbatch_per_gpu = [1]\n'
    )
    code, _, err = simperf("plan", "plan.toml")
    assert code == 2
    assert "candidates have no layout" in err
    assert "ddp" in err
