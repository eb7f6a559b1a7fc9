"""Alpha-beta, pieces of it, and constants (simperf.cost.sizes)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.cost import AlphaBeta, FixedTime, OpModel, PiecewiseAlphaBeta, Pipelined, SizeModel
from simperf.errors import InputError
from simperf.workload.kinds import unary


def test_alpha_beta_by_hand():
    link = AlphaBeta.of(10e-6, 16e9)
    assert link.time(160e6) == pytest.approx(10e-6 + 10e-3)
    assert link.time(0) == 10e-6
    assert link.half_size == pytest.approx(160e3)
    assert (link.regime(1e5), link.regime(2e5)) == ("latency", "bandwidth")


@given(st.floats(1e-9, 1e-2), st.floats(1e6, 1e12))
def test_half_the_bandwidth_at_the_half_size(latency, bandwidth):
    link = AlphaBeta.of(latency, bandwidth)
    assert link.bandwidth(link.half_size) == pytest.approx(bandwidth / 2)


def test_degenerate_constants():
    assert AlphaBeta(1e-6, 0.0).half_size == math.inf
    assert AlphaBeta(0.0, 0.0).bandwidth(8.0) == math.inf


@pytest.mark.parametrize(
    "build", [lambda: AlphaBeta(-1, 0), lambda: AlphaBeta(0, math.nan), lambda: AlphaBeta.of(0, 0)]
)
def test_constants_without_meaning(build):
    with pytest.raises(InputError):
        build()


def test_sizes_without_meaning():
    for model in (AlphaBeta(0, 1), FixedTime(1), PiecewiseAlphaBeta([(math.inf, AlphaBeta(0, 1))])):
        assert isinstance(model, SizeModel)
        with pytest.raises(InputError, match="nbytes"):
            model.time(-1.0)


def test_pieces_choose_by_size():
    small, large = AlphaBeta(1.0, 0.0), AlphaBeta(2.0, 0.0)
    model = PiecewiseAlphaBeta([(10, small), (math.inf, large)])
    assert [model.time(size) for size in (0, 10, 10.5, 1e9)] == [1, 1, 2, 2]


@pytest.mark.parametrize("limits", [[], [5], [math.inf, 5], [5, 5, math.inf]])
def test_limits_must_increase_to_infinity(limits):
    with pytest.raises(InputError, match="increase"):
        PiecewiseAlphaBeta([(limit, AlphaBeta(0, 1)) for limit in limits])


def test_fixed_time():
    model = FixedTime(3e-3, demand=0.5)
    assert isinstance(model, OpModel)
    cost = model.cost(unary("cos", 10))
    assert (cost.time, cost.demand, cost.flops, model.time(1e9)) == (3e-3, 0.5, 80, 3e-3)
    for bad in ({"seconds": -1}, {"seconds": 1, "demand": 0}):
        with pytest.raises(InputError):
            FixedTime(**bad)


def test_messages_in_a_row_go_at_the_adapters_pace_or_the_wires():
    adapter = Pipelined(1e-6, AlphaBeta.of(0.1e-6, 10e9))
    assert isinstance(adapter, SizeModel)
    assert adapter.time(0) == adapter.time(8000) == 1e-6
    assert adapter.time(19000) == pytest.approx(2e-6)
    assert adapter.bandwidth(2000) == pytest.approx(2 * adapter.bandwidth(1000))
    assert adapter.bandwidth(1e9) == pytest.approx(10e9, rel=1e-3)
    with pytest.raises(InputError):
        Pipelined(-1e-6, AlphaBeta(0.0, 0.0))
