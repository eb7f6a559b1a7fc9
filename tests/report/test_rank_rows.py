"""Traces of ranks: a process for each, named by its coordinates, with a thread for each of its streams."""

from collections import defaultdict

import pytest

import simperf
from simperf.cli.outputs import MOST_RANKS, read_ranks
from simperf.engine.recorder import Span
from simperf.errors import InputError
from simperf.report.trace import trace_bytes
from simperf.results import Result
from tests.report.importer import read

SMALL = simperf.Transformer(layers=4, hidden=512, heads=8, vocabulary=1024, sequence=256, norm="layer")
LAYOUT = simperf.Layout(tp=2, pp=2, dp=2, sharding="zero-1")


def played(exact="auto"):
    return simperf.train(
        SMALL,
        on="dgx-a100",
        layout=LAYOUT,
        strategy=simperf.ModelParallel(),
        precision="bf16-master",
        batch=8,
        set={"program.exact": exact},
    )


@pytest.fixture(scope="module")
def step():
    return played()


def slices(trace, rank):
    """Slices of a rank by thread: name, start, length."""
    found = defaultdict(list)
    for one in trace.slices:
        if one.process.startswith(f"rank {rank}:"):
            found[one.thread].append((one.name, one.start, one.length))
    return found


def test_processes_are_ranks_by_their_coordinates_and_threads_their_streams(step):
    trace = read(trace_bytes(step))
    assert not trace.errors
    named = [name for name in trace.order if name.startswith("rank ")]
    assert len(named) == len(step.ranks)
    assert "rank 0: tp 0, cp 0, dp 0, pp 0, gpu0" in named
    threads = slices(trace, 0)
    assert {"compute", "host", "tp", "dp"} <= set(threads)
    assert any(name.startswith("pp F") for name in threads)
    assert "compute" in trace.order


def test_every_span_of_the_run_is_shown_once(step):
    trace = read(trace_bytes(step))
    moments = [one for one in trace.slices if not one.thread.endswith("launches") and one.thread != "receive"]
    assert sorted((one.name, one.start) for one in moments) == sorted(
        (span.name, round(span.start * 1e9)) for span in step.spans
    )


def test_chosen_ranks_are_shown_alone(step):
    trace = read(trace_bytes(step, ranks=[7, 0, 7]))
    assert not trace.errors
    processes = {one.process for one in trace.slices}
    assert sorted(name.partition(":")[0] for name in processes) == ["rank 0", "rank 7"]
    assert {name for name, _ in trace.counters} <= processes


def test_a_rank_that_is_not_played_has_the_rows_of_the_one_that_stands_for_it(step):
    like = next(one for one in step.ranks.values() if len(one.numbers) > 1)
    first, other = like.numbers[:2]
    trace = read(trace_bytes(step, ranks=[first, other]))
    assert not trace.errors
    assert slices(trace, first) == slices(trace, other)
    assert any(one.process.endswith(f"(as rank {first})") for one in trace.slices)


def test_rows_of_a_rank_that_is_not_played_are_those_of_its_own_play(step):
    alone = read(trace_bytes(played("yes"), ranks=range(8)))
    shown = read(trace_bytes(step, ranks=range(8)))
    for rank in range(8):
        mine, own = slices(shown, rank), slices(alone, rank)
        assert mine["compute"]
        ends = [max(start + length for _, start, length in rows["compute"]) for rows in (mine, own)]
        assert ends[0] == pytest.approx(ends[1], abs=2)
        kernels = [sorted(row for row in rows["compute"] if not row[0].startswith("wait")) for rows in (mine, own)]
        assert [name for name, *_ in kernels[0]] == [name for name, *_ in kernels[1]]
        assert [start for _, start, _ in kernels[0]] == pytest.approx([start for _, start, _ in kernels[1]], abs=2)


def test_arrows_of_a_rank_stay_within_its_process(step):
    trace = read(trace_bytes(step, ranks=[0, 7]))
    assert trace.flows
    assert all(source.process == target.process for _, source, target in trace.flows)


def test_a_saved_result_keeps_its_ranks(step, tmp_path):
    step.save(tmp_path / "step.json.gz")
    loaded = Result.load(tmp_path / "step.json.gz")
    assert trace_bytes(loaded, ranks=[0, 5]) == trace_bytes(step, ranks=[0, 5])


def test_ranks_of_data_parallelism_have_numbers_too():
    result = simperf.run("training/buckets", set={"program.model": "resnet18"}, record=True)
    trace = read(trace_bytes(result, ranks=[1]))
    assert {one.process for one in trace.slices} == {"rank 1: n0/gpu1 (as rank 0)"}


def test_ranks_that_there_are_not_are_refused(step):
    with pytest.raises(InputError, match=r"no such rank: 8, 99 \(expected: 0 to 7\)|8, 99"):
        step.trace("x.json", ranks=[0, 8, 99])
    with pytest.raises(InputError, match="no such rank"):
        trace_bytes(step, ranks=[])
    plain = Result("plain", 1.0, spans=(Span("gpu0/stream0", "f", 0.0, 1.0, "compute"),))
    with pytest.raises(InputError, match="no ranks by number"):
        trace_bytes(plain, ranks=[0])


def test_ranks_are_read_from_a_text():
    assert read_ranks("") is None
    assert read_ranks("0,8,17") == (0, 8, 17)
    assert read_ranks("0-3, 9") == (0, 1, 2, 3, 9)
    for wrong in ("x", "3-1", "1,,2", "-1", "1-", "1e3", "²", "9" * 30):
        with pytest.raises(InputError, match="--trace-ranks"):
            read_ranks(wrong)
    with pytest.raises(InputError, match=str(MOST_RANKS)):
        read_ranks("0-999999999")
