"""Where each rank's time went, and memory by kind over time (simperf.time_use, Result.times, Result.memory)."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simperf
from simperf.analysis.breakdown import breakdown_by_owner
from simperf.engine.recorder import CATEGORIES, Span
from simperf.time_use import RankClass, time_use


@pytest.fixture(scope="module")
def attempts():
    found = simperf.run_variants(simperf.load_scenario("training/ddp-or-dataparallel"))
    return {one.name: one.result for one in found}


def test_ddp_is_one_class_of_eight_whose_communication_is_data_parallel(attempts):
    rows = [row for row in attempts["DistributedDataParallel"].times if "gpu0" in row.ranks]
    assert {row.ranks for row in rows} == {tuple(f"gpu{rank}" for rank in range(8))}
    (sent,) = [row for row in rows if row.activity == "communication"]
    assert sent.dimension == "dp"
    assert 0 < sent.exposed < sent.time
    assert {row.dimension for row in rows if row.activity != "communication"} == {""}


def test_memory_by_kind_is_what_the_metrics_say(attempts):
    result = attempts["DistributedDataParallel"]
    last = {kind: value for device, kind, _, value in result.memory if device == "gpu0"}
    told = {name.removeprefix("memory: "): m.value for name, m in result.metrics.items() if name.startswith("memory: ")}
    assert {kind: value for kind, value in last.items() if kind != "operations"} == {k: v for k, v in told.items() if v}
    held = {}
    for sample in result.memory:
        held[sample.track, sample.name] = sample.value
    total = next(s.value for s in reversed(result.samples) if (s.track, s.name) == ("gpu0", "memory held"))
    assert math.fsum(value for (device, _), value in held.items() if device == "gpu0") == pytest.approx(total)


def test_operations_hold_memory_until_they_end():
    result = simperf.run("d2l/run-ahead")
    kinds = {sample.name for sample in result.memory}
    assert kinds == {"operations"}
    assert result.memory[-1].value == 0
    peak = max(sample.value for sample in result.memory)
    assert peak == max(use.work for use in result.resources.values() if use.kind == "memory")


def test_a_run_that_was_not_recorded_has_neither():
    result = simperf.run("training/overlap", record=False)
    assert result.times == ()
    assert result.memory == ()


spans = st.builds(
    lambda owner, lane, start, length, category: Span(f"{owner}/{lane}", "x", start, start + length, category),
    st.sampled_from(["gpu0", "gpu1", "n0/gpu1"]),
    st.sampled_from(["stream0", "stream1", "to cpu0"]),
    st.floats(0, 9),
    st.floats(0, 3),
    st.sampled_from(CATEGORIES),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(spans, max_size=12))
def test_times_agree_with_a_sweep(found):
    end = max((span.end for span in found), default=1.0) or 1.0
    result = simperf.Result("one", end, spans=tuple(found))
    for owner, parts in breakdown_by_owner(result).items():
        mine = {row.activity: row for row in result.times if owner in row.ranks}
        kernels = mine.get("compute")
        assert (kernels.time if kernels else 0.0) == pytest.approx(parts["compute"], abs=1e-9)
        both = sum(parts[name] for name in ("compute", "memory"))
        for name, row in mine.items():
            assert 0 <= row.exposed <= row.time + 1e-12
            assert row.time <= end + 1e-9
            if name not in ("compute", "memory"):
                assert row.exposed <= end - both + 1e-9


def test_those_that_did_the_same_are_one_class():
    def kernel(device):
        return Span(f"{device}/stream0", "f", 0.0, 1.0, "compute")

    first, second = time_use([kernel("gpu0"), kernel("gpu1"), kernel("gpu2")], {"gpu2": RankClass(("gpu2",), stage=1)})
    assert (first.ranks, first.stage) == (("gpu0", "gpu1"), 0)
    assert (second.ranks, second.stage) == (("gpu2",), 1)


def test_streams_of_a_rank_communicate_along_dimensions_of_their_own():
    """Collectives at a time count for their dimensions each; an instant is exposed for the first of them."""
    found = [Span("gpu0/stream0", "f", 0.0, 2.0, "compute")]
    found += [Span(f"gpu0/{stream}", "send", 1.0, 4.0, "communication") for stream in ("a", "b", "c")]
    ranks = {"gpu0": RankClass(("gpu0", "gpu1"), "dp", 1, (("a", "tp"), ("b", "pp")))}
    _, *sent = time_use(found, ranks)
    assert [(one.dimension, one.stage, one.time, one.exposed) for one in sent] == [
        ("tp", 1, 3.0, 2.0),
        ("pp", 1, 3.0, 0.0),
        ("dp", 1, 3.0, 0.0),
    ]


def test_what_workers_send_to_servers_is_data_parallel():
    result = simperf.run("training/ps-servers")
    (sent,) = [row for row in result.times if row.activity == "communication" and "gpu0" in row.ranks]
    assert sent.dimension == "dp"
