"""A pipeline's bubble is told as what it is: by the breakdown, the regime, the overlap and the critical path."""

import math

import pytest

from simperf import Layout, ModelParallel, Transformer, train
from simperf.analysis.breakdown import PRIORITY, breakdown, breakdown_by_owner
from simperf.analysis.comparison import compare
from simperf.analysis.critical import critical_path
from simperf.analysis.overlap import overlap
from simperf.analysis.regime import regime
from simperf.engine.recorder import Span
from simperf.results import Result
from simperf.time_use import RankClass, time_use

STAGES = 4


def pipeline(batch, **layout):
    model = Transformer(layers=4, hidden=4096, heads=32, vocabulary=1024, sequence=2048)
    return train(
        model,
        on="dgx-a100-x4",
        layout=Layout(pp=STAGES, **layout),
        strategy=ModelParallel(),
        stack="megatron-core",
        precision="bf16-master",
        batch=batch,
        set={"program.steps": 1},
    )


@pytest.fixture(scope="module")
def few():
    """Two micro-batches in four stages, on links that take almost no time."""
    return pipeline(2)


@pytest.fixture(scope="module")
def many():
    """Micro-batches enough for the stages to work most of the time."""
    return pipeline(16)


def mean(result, kind):
    return math.fsum(result.metrics[f"stage {stage}: {kind}"].value for stage in range(STAGES)) / STAGES


def test_parts_are_those_that_each_rank_counts(few):
    parts = breakdown(few)
    assert math.fsum(parts.values()) == pytest.approx(few.time, rel=1e-9)
    assert parts["compute"] + parts["memory"] == pytest.approx(mean(few, "kernels"), rel=1e-9)
    exposed = mean(few, "exposed pipeline") + mean(few, "exposed norm")
    assert exposed <= parts["communication"] <= 2.1 * exposed  # beside what a stage waits for, it sends
    rest = mean(few, "bubble") + mean(few, "idle")
    assert parts["bubble"] + parts["communication"] - exposed + parts["idle"] + parts["overhead"] == pytest.approx(
        rest, rel=1e-6
    )


def test_parts_are_means_of_those_of_ranks(few):
    of_ranks = [parts for name, parts in breakdown_by_owner(few).items() if name in few.ranks]
    assert len(of_ranks) == STAGES
    for part in ("compute", "memory", "communication", "bubble"):
        assert math.fsum(one[part] for one in of_ranks) / STAGES == pytest.approx(breakdown(few)[part], rel=1e-9)


def test_the_regime_says_bubble_where_stages_wait_most(few, many):
    found = regime(few)
    assert found.name == "bubble-bound"
    assert found.share == pytest.approx(breakdown(few)["bubble"] / few.time)
    assert regime(many).name == "compute-bound"
    parts = breakdown(many)
    assert regime(many).share == pytest.approx((parts["compute"] + parts["memory"]) / many.time, rel=1e-9)
    assert compare(few, many).changes["bubble"] == pytest.approx(parts["bubble"] - breakdown(few)["bubble"])


def test_communication_is_what_moves_and_hidden_under_kernels_of_the_same_rank(few):
    found = overlap(few)
    assert found.total < 0.02 * few.time
    assert found.exposed == pytest.approx(breakdown(few)["communication"], rel=1e-9)
    assert 0 < found.hidden < 0.5 * found.total


def test_the_path_goes_through_the_stages_that_are_waited_for(few):
    path = critical_path(few)
    kernels = {part.owner: part.share for part in path.parts if part.category == "compute"}
    assert set(kernels) == set(few.ranks)
    assert all(share > 0.1 for share in kernels.values())
    assert path.by_category()["communication"] < 0.02 * few.time
    assert set(path.by_category()) <= {*PRIORITY}


def test_exposed_times_by_dimension_add_up():
    result = pipeline(4, tp=2, dp=2)
    for device, one in result.ranks.items():
        rows = [row for row in result.times if device in row.ranks]
        sent = {row.dimension: row for row in rows if row.activity == "communication"}
        assert set(sent) == {"tp", "pp", "dp"}
        exposed = math.fsum(row.exposed for row in sent.values())
        assert exposed == pytest.approx(breakdown_by_owner(result)[device]["communication"], rel=1e-9)
        told = ("tensor", "pipeline", "data", "norm")
        counted = math.fsum(result.metrics[f"stage {one.stage}: exposed {word}"].value for word in told)
        assert counted <= exposed * (1 + 1e-9)
        assert exposed <= counted + result.metrics[f"stage {one.stage}: bubble"].value


def test_an_instant_is_exposed_for_one_dimension():
    spans = [
        Span("gpu0/stream0", "f", 0.0, 1.0, "compute"),
        Span("gpu0/tensor", "all-gather", 0.5, 2.0, "communication"),
        Span("gpu0/data", "reduce-scatter", 1.5, 3.0, "communication"),
    ]
    ranks = {"gpu0": RankClass(("gpu0",), streams=(("tensor", "tp"), ("data", "dp")))}
    rows = {row.dimension: (row.time, row.exposed) for row in time_use(spans, ranks) if row.dimension}
    assert rows == {"tp": (1.5, 1.0), "dp": (1.5, 1.0)}
    assert Result("one", 3.0, spans=tuple(spans), ranks=ranks).times == time_use(spans, ranks)
