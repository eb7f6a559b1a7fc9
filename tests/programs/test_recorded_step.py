"""Recorded steps: as recorded on the same hardware, and by ratios and the network on another."""

import gzip
import importlib
import json
import os
from pathlib import Path

import pytest

import simperf
from simperf.cli import main
from simperf.cost import Roofline
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.report.trace import trace_bytes
from simperf.scenario import make_scenario
from simperf.workload import make_op
from simperf.workload.op import Op
from simperf.workload.recorded.causes import record_step
from simperf.workload.recorded.trace_file import read_trace_file
from tests.report.importer import read as trace_reader
from tests.workload.recorded import made, written

_FOLDERS = [Path(os.environ.get("SIMPERF_TRUTH", "")), Path(__file__).parents[3] / "shared" / "truth"]
TRUTH = next((one / "traces" for one in _FOLDERS if (one / "traces").is_dir()), None)


def play(*files, machine=None, record=False, **options):
    """The result of a replay."""
    data = {"program": {"use": "recorded-step", "trace": [str(one) for one in files], **options}}
    return simperf.run(make_scenario(data | ({"machine": machine} if machine else {})), record=record)


def times(result):
    """Played and recorded time of a step [s]."""
    return result.metrics["time per step"].value, result.metrics["recorded time per step"].value


def cost(gpu, op):
    """Time of an operation on a GPU of the catalogue [s]."""
    return Roofline(Catalog.load().gpu(gpu)).cost(op).time


@pytest.mark.parametrize(
    "make", [made.bound_by_device, made.bound_by_host, made.overlapped], ids=lambda one: one.__name__
)
def test_as_recorded_every_activity_begins_when_it_did(make, tmp_path):
    path = make(tmp_path / "trace.json.gz")
    result, step = play(path, record=True), record_step(read_trace_file(path))
    played, recorded = times(result)
    assert played == pytest.approx(recorded, rel=1e-9)
    spans = sorted(span.start for span in result.spans if span.track.startswith("gpu0/") and "wait" not in span.name)
    assert spans == pytest.approx(sorted(one.start for one in step.activities), abs=1e-9)


@pytest.mark.parametrize(
    "name", ["alexnet_a100", "simple_add", "multi_stream_events", "mi250_toy_train", "ns_resolution"]
)
def test_published_traces_take_as_long_as_recorded(name):
    if TRUTH is None:
        pytest.skip("SIMPERF_TRUTH names no folder with published traces")
    played, recorded = times(play(TRUTH / f"{name}.json.gz"))
    assert played == pytest.approx(recorded, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("name", "seconds"), [("ddp_a100_rank3_of_8", 0.465171), ("ddp_v100_rank1", 1.737902)])
def test_published_traces_of_data_parallelism_take_as_long_as_recorded(name, seconds):
    if TRUTH is None:
        pytest.skip("SIMPERF_TRUTH names no folder with published traces")
    result = play(TRUTH / f"{name}.json.gz")
    assert result.time == pytest.approx(seconds, rel=1e-6)
    assert result.metrics["collective: activities"].value > 0


def test_kernels_bound_by_memory_take_the_ratio_of_both_gpus(tmp_path):
    path = made.bound_by_device(tmp_path / "trace.json", count=20, length=200.0)
    played, _ = times(play(path, machine={"use": "dgx-h100"}))
    bandwidth = Catalog.load().gpu("a100-sxm4-80gb").memory_bandwidth
    half = 200e-6 * bandwidth / 2
    moved = Op("moved", nbytes_read=half, nbytes_written=half)
    ratio = cost("h100-sxm5-80gb", moved) / cost("a100-sxm4-80gb", moved)
    assert 0.5 < ratio < 0.75
    assert played == pytest.approx(10e-6 + 20 * 200e-6 * ratio + 19e-6 + 11e-6, rel=2e-3)


def test_a_product_of_known_shapes_takes_its_own_ratio(tmp_path):
    trace = made.Trace()
    shapes = {"Input Dims": [[8192, 4096], [4096, 512]], "Input type": ["c10::Half", "c10::Half"]}
    trace.launch(made.PRODUCT, 5.0, 15.0, 500.0, op={"name": "aten::mm", **shapes})
    path = trace.save(tmp_path / "trace.json")
    result = play(path, machine={"use": "dgx-h100"})
    product = make_op({"op": "matmul", "m": 8192, "n": 512, "k": 4096, "dtype": "fp16"})
    ratio = cost("h100-sxm5-80gb", product) / cost("a100-sxm4-80gb", product)
    assert result.metrics["products of known shapes"].value == 1
    assert result.time - 10e-6 == pytest.approx(500e-6 * ratio + 1e-6, rel=2e-2)


def test_a_faster_gpu_does_not_help_where_the_host_is_slow_and_a_faster_host_does(tmp_path):
    path = made.bound_by_host(tmp_path / "trace.json", count=50, every=25.0)
    played, recorded = times(play(path, machine={"use": "dgx-h100"}))
    assert played == pytest.approx(recorded, rel=0.01)
    faster, _ = times(play(path, host_speed=2.0))
    assert faster == pytest.approx(recorded / 2, rel=0.02)


def test_a_stream_waits_for_what_its_thread_asked_for(tmp_path):
    path = made.overlapped(tmp_path / "trace.json")
    step = record_step(read_trace_file(path))
    products, reduce, update = step.activities[:4], step.activities[4], step.activities[5]
    assert reduce.after == (3,)
    assert update.after == (4,)
    assert [one.stream for one in (*products, reduce, update)] == [0, 0, 0, 0, 1, 0]
    assert reduce.kind.kind == "collective"
    # on a GPU that needs no time for products the collective follows their launches
    result = play(path, machine={"use": "dgx-h100"})
    assert result.time < step.time - 100e-6


def test_ranks_wait_for_the_last_one(tmp_path):
    files = made.of_ranks(tmp_path, late=300.0)
    result = play(*files, record=True)
    played, recorded = times(result)
    assert played == pytest.approx(recorded, rel=1e-9)
    sent = [span for span in result.spans if span.category == "communication"]
    assert [span.start for span in sent] == pytest.approx([712e-6, 712e-6])  # when the slow rank has its product
    assert [span.end - span.start for span in sent] == pytest.approx([500e-6, 500e-6])


def test_clocks_of_ranks_are_aligned_by_their_collectives(tmp_path):
    even, apart = tmp_path / "a", tmp_path / "b"
    for one in (even, apart):
        one.mkdir()
    first = play(*made.of_ranks(even)).time
    assert play(*made.of_ranks(apart, origin=5_000_000.0)).time == pytest.approx(first, rel=1e-6)


@pytest.mark.parametrize("count", [1, 2])
def test_collectives_are_played_on_the_network_of_the_machine(tmp_path, count):
    files = made.of_ranks(tmp_path, ranks=2, late=0.0)[:count]
    kept = play(*files, machine={"use": "dgx-a100-80gb"}, collectives="recorded")
    result = play(*files, machine={"use": "dgx-a100-80gb"})
    table = simperf.collective("all-reduce", on="dgx-a100-80gb", ranks=2, sizes=[64e6])
    predicted = table.to_pandas()["time"].iloc[0]
    assert result.time - kept.time == pytest.approx(predicted - 500e-6, abs=25e-6)
    unknown = play(*made.of_ranks(tmp_path, known=False)[:count], machine={"use": "dgx-a100-80gb"})
    assert any("1 collectives take as long as recorded" in note for note in unknown.notes)
    assert unknown.time == pytest.approx(kept.time, rel=0.4)


def test_the_command_plays_on_a_gpu_and_keeps_its_result(tmp_path, capsys):
    path = made.bound_by_device(tmp_path / "trace.json.gz")
    assert main(["replay", str(path), "--step", "3", "--save", str(tmp_path / "kept.json")]) == 0
    assert "recorded time per step" in capsys.readouterr().out
    assert main(["replay", str(path), "--on", "h100-sxm5-80gb", "--trace", str(tmp_path / "played.json")]) == 0
    assert "simulated on h100-sxm5-80gb" in capsys.readouterr().out
    assert (tmp_path / "kept.json").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows.clear(), "no activity of a GPU"),
        (lambda rows: rows[0].update(ts="now"), r"traceEvents\[0\]"),
        (lambda rows: rows[0].update(dur=-1), r"dur"),
        (lambda rows: rows[0].update(dur=1e30), "within"),
        (lambda rows: rows[1]["args"].update(stream="x"), "numbers of a device"),
        (lambda rows: rows[1]["args"].update(bytes=-5), "bytes"),
        (lambda rows: rows[1]["args"].update(device=3), "several GPUs"),
        (lambda rows: [row["args"].update(correlation=7_000_000 + n) for n, row in enumerate(rows)], "nothing was"),
    ],
    ids=["empty", "time", "negative", "endless", "stream", "bytes", "device", "launches"],
)
def test_what_is_no_trace_is_refused_by_place(tmp_path, change, told, capsys):
    path = made.bound_by_device(tmp_path / "trace.json", count=2)
    data = json.loads(path.read_text())
    change(data["traceEvents"])
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=told):
        play(path)
    assert main(["replay", str(path)]) == 2
    assert "trace.json" in capsys.readouterr().err


def test_options_without_meaning_are_refused(tmp_path):
    path = made.bound_by_device(tmp_path / "trace.json", count=2, gpu="Some GPU")
    for options, told in (
        ({"host_speed": 0.0}, "host_speed"),
        ({"step": 8}, "no such step"),
        ({"step": -2}, "step"),
        ({"recorded_on": "h100-sxm5-80gb"}, "has no effect"),
        ({"collectives": "recorded"}, "collectives: has no effect"),
        (
            {"machine": {"use": "dgx-h100"}, "recorded_on": "t4", "collectives": "recorded"},
            "collectives: has no effect: no collective of the trace",
        ),
        ({"machine": {"use": "dgx-h100"}}, "not in the catalogue"),
        ({"machine": {"use": "dgx-h100"}, "recorded_on": "none"}, "no such GPU"),
    ):
        with pytest.raises(InputError, match=told):
            play(path, **options)
    with pytest.raises(InputError, match="no trace is given"):
        play()
    data = {"program": {"use": "recorded-step", "trace": [str(path)]}, "frontend": {"use": "pytorch"}}
    with pytest.raises(InputError, match="frontend"):
        simperf.run(make_scenario(data))
    two = made.of_ranks(tmp_path)
    with pytest.raises(InputError, match=r"trace\.json: no collective, by whose end"):
        play(two[0], path)
    with pytest.raises(InputError, match=r"trace\.json: no collective, by whose end"):
        play(path, two[0])
    with pytest.raises(InputError, match="one trace by itself"):
        play(path, path)


def test_the_command_names_the_flag_that_has_no_effect(tmp_path, capsys):
    path = made.bound_by_device(tmp_path / "trace.json", count=2)
    for choice in ("recorded", "network"):
        for on in ((), ("--on", "h100-sxm5-80gb")):
            assert main(["replay", str(path), *on, "--collectives", choice]) == 2
            told = capsys.readouterr().err
            assert "--collectives: has no effect" in told
            assert "--on NAME" in told
    assert main(["replay", str(path), "--on", "dgx-h100", "--collectives", "recorded"]) == 2
    assert "--collectives: has no effect: no collective of the trace" in capsys.readouterr().err


def test_a_table_without_rows_is_left_out(tmp_path, capsys):
    path = made.bound_by_device(tmp_path / "trace.json", count=2)
    assert main(["replay", str(path)]) == 0
    assert "Resources" not in capsys.readouterr().out


def test_the_program_is_loaded_when_it_is_asked_for():
    assert importlib.import_module("simperf.programs.registry").MODULES["recorded-step"] == "recorded_step"


def test_a_launch_that_finds_a_full_queue_waits_for_a_place(tmp_path):
    trace = made.Trace()
    ends, call = [], 0.0
    for number in range(1200):
        start = max(call + 6.0, ends[-1] + 1.0 if ends else 0.0)
        ends.append(start + 20.0)
        blocked = number >= 1024 and ends[number - 1024] > call
        cost = ends[number - 1024] + 2.0 - call if blocked else 2.0
        trace.launch(made.ELEMENTWISE, call, start, 20.0, cost=cost)
        call += cost + 1.0
    trace.call("cudaDeviceSynchronize", call, ends[-1] - call + 4.0)
    path = trace.save(tmp_path / "trace.json.gz")
    played, recorded = times(play(path))
    assert played == pytest.approx(recorded, rel=1e-6)
    # launches of 3 us each are hidden: a GPU of twice the bandwidth is faster, though the host waited for the queue
    faster, _ = times(play(path, machine={"use": "dgx-h100"}))
    assert faster < 0.75 * recorded


def test_the_played_step_is_a_trace_for_perfetto(tmp_path):
    path = made.overlapped(tmp_path / "trace.json")
    read = trace_reader(trace_bytes(play(path, record=True)))
    assert not read.errors
    kernels = [one for one in read.slices if one.category == "compute"]
    assert len(kernels) == 4
    assert {one.thread for one in kernels} == {"stream0"}


def test_a_file_names_traces_beside_it(tmp_path, monkeypatch, capsys):
    made.bound_by_device(tmp_path / "rank0.json", count=3)
    text = '[scenario]\ntitle = "mine"\n[program]\nuse = "recorded-step"\ntrace = ["rank0.json"]\n'
    (tmp_path / "mine.toml").write_text(text)
    monkeypatch.chdir("/")
    assert main(["run", str(tmp_path / "mine.toml")]) == 0
    assert "time per step" in capsys.readouterr().out


@pytest.mark.parametrize(
    "make", [made.bound_by_device, made.bound_by_host, made.overlapped], ids=lambda one: one.__name__
)
def test_the_floor_is_at_least_what_one_stream_does_and_at_most_the_step(make, tmp_path):
    path = make(tmp_path / "trace.json.gz")
    result, step = play(path), record_step(read_trace_file(path))
    streams = {one.stream for one in step.activities}
    longest = max(sum(one.duration for one in step.activities if one.stream == name) for name in streams)
    assert longest * (1 - 1e-9) <= result.floors["critical path"] <= result.time * (1 + 1e-9)


def test_the_shipped_trace_is_what_its_job_takes_on_both_servers():
    shipped = simperf.run("large/recorded-step")
    played, recorded = times(shipped)
    assert played == pytest.approx(recorded, rel=1e-6)
    assert recorded == pytest.approx(written.job_time("dgx-a100-80gb"), rel=1e-3)
    assert shipped.metrics["collective: activities"].value == 14
    other, _ = times(simperf.run("large/recorded-step", set={"machine.use": "dgx-h100"}))
    assert other == pytest.approx(written.job_time("dgx-h100"), rel=0.02)  # a trace has no bytes of kernels


def test_the_shipped_trace_says_that_it_is_no_measurement():
    trace = json.loads(gzip.decompress(written.SHIPPED.read_bytes()))
    again = written.written_trace()
    assert trace["written by"] == again["written by"]
    assert trace["written by"].startswith("no measurement")
    assert [one["name"] for one in trace["traceEvents"]] == [one["name"] for one in again["traceEvents"]]
    sent = [one["args"]["In msg nelems"] for one in trace["traceEvents"] if "In msg nelems" in one["args"]]
    assert sum(sent) * 4 == 437_928_960  # gradients in fp32
