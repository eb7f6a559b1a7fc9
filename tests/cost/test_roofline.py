"""Regimes, their boundary, the floor and the corner (simperf.cost.roofline, .seams)."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.cost import OpModel, Roofline
from simperf.cost.seams import OpCost
from simperf.errors import InputError
from simperf.workload import Op, fuse
from simperf.workload.builders import cos_cos
from simperf.workload.kinds import attention, copy, elementwise, matmul, softmax, unary

from .conftest import Device

N = 10_000_000


def total(model, graph):
    return sum(model.cost(op).time for op in graph.ops)


def test_a_roofline_is_an_op_model(device):
    assert isinstance(Roofline(device), OpModel)


def test_memory_bound_by_hand(device):
    cost = Roofline.sharp(device).cost(unary("relu", N))
    assert cost.time == pytest.approx(8 * N / 100e9, rel=1e-12)
    assert (cost.regime, cost.flops, cost.nbytes) == ("memory", N, 8 * N)
    assert cost.bandwidth == pytest.approx(100e9)


def test_compute_bound_by_hand(device):
    cost = Roofline.sharp(device).cost(matmul(4000, 4000, k=4000))
    assert cost.time == pytest.approx(0.128, rel=1e-12)
    assert cost.regime == "compute"
    assert cost.rate == pytest.approx(1e12)


def test_overhead_bound(device):
    cost = Roofline(device).cost(unary("relu", 100))
    assert cost.regime == "overhead"
    assert cost.time == pytest.approx(2e-6, rel=0.01)


@pytest.mark.parametrize("sharp", [True, False])
def test_regime_changes_exactly_where_peak_over_bandwidth_says(device, tuned, sharp):
    for part in (device, tuned):
        model = Roofline.sharp(part) if sharp else Roofline(part)
        op = elementwise(N)
        ridge = model.ridge(op)
        assert ridge == pytest.approx(10 / (1 if sharp else part.efficiency.get("elementwise", 1.0)))
        below, above = (replace(op, flops=op.nbytes * ridge * factor) for factor in (1 - 1e-9, 1 + 1e-9))
        assert (model.cost(below).regime, model.cost(above).regime) == ("memory", "compute")
    exact = replace(elementwise(N), flops=8 * N * 10.0)
    cost = Roofline.sharp(device).cost(exact)
    assert cost.compute_time == cost.memory_time == cost.time


def test_cos_cos_fused_takes_half_the_time_when_memory_bound(device):
    model = Roofline.sharp(device)
    before, after = cos_cos(N), fuse(cos_cos(N))
    assert before.nbytes == 2 * after.nbytes == 16 * N
    assert model.cost(after.ops[0]).regime == "memory"
    assert total(model, after) == pytest.approx(total(model, before) / 2, rel=1e-12)


def test_cos_cos_fused_takes_no_less_when_compute_bound(device):
    slow = replace(device, peak={"fp32": 10e9})
    model = Roofline.sharp(slow)
    before, after = cos_cos(N), fuse(cos_cos(N))
    assert model.cost(before.ops[0]).regime == model.cost(after.ops[0]).regime == "compute"
    assert total(model, after) == pytest.approx(total(model, before), rel=1e-12)


def test_fusing_saves_a_launch_when_overhead_bound(device):
    model = Roofline(device)
    assert total(model, cos_cos(10)) / total(model, fuse(cos_cos(10))) == pytest.approx(2, rel=1e-3)


def test_corner_at_the_ridge(device):
    op = replace(elementwise(N), flops=80.0 * N)
    sharp = Roofline.sharp(device).cost(op).time
    for p in (1.0, 2.0, 8.0):
        soft = Roofline(device, sharpness=p, overhead=0.0).cost(op).time
        assert soft / sharp == pytest.approx(2 ** (1 / p))
    assert Roofline(device, sharpness=math.inf, overhead=0.0).cost(op).time == sharp


def test_precision_and_family_choose_the_peak(device):
    model = Roofline(device)
    assert model.peak("fp16") == 8e12
    assert model.peak("fp16", family="elementwise") == 2e12
    assert model.peak("bf16", family="elementwise") == 1e12
    with pytest.raises(InputError, match="round has no fp64 arithmetic"):
        model.cost(matmul(10, 10, k=10, dtype="fp64"))


def test_efficiency_of_family_and_precision(tuned):
    model = Roofline(tuned, quantisation=False)
    assert model.rates(matmul(8, 8, k=8)) == (0.5e12, 75e9)
    assert model.rates(matmul(8, 8, k=8, dtype="fp16")) == (pytest.approx(6.4e12), 75e9)
    assert model.rates(attention(1, 1, queries=8, head_dim=8))[0] == pytest.approx(6.4e12)
    assert model.rates(softmax(8, 8)) == (1e12, 60e9)
    assert model.rates(copy(8)) == (1e12, 75e9)
    assert Roofline(tuned, efficiency={}, quantisation=False).rates(matmul(8, 8, k=8)) == (1e12, 100e9)


def test_only_moving_needs_no_arithmetic_in_that_precision(device):
    assert Roofline.sharp(device).cost(copy(N, dtype="fp64")).time == pytest.approx(16 * N / 100e9)


def test_small_products_pay_for_idle_multiprocessors(device):
    model = Roofline(device, overhead=0.0)
    small, large = matmul(32, 32, k=512), matmul(4096, 4096, k=512)
    assert model.cost(small).rate < 0.5 * model.cost(large).rate
    assert model.cost(large).rate > 0.85e12


def test_demand(device):
    model = Roofline(device)
    assert model.demand(matmul(4096, 4096, k=64)) == 1
    assert model.demand(matmul(32, 32, k=64)) == 0.1
    assert model.demand(unary("relu", 2048 * 5)) == 0.5
    assert model.demand(unary("relu", 1)) == 0.1
    assert model.demand(Op("unknown", flops=1.0)) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"sharpness": 0.5},
        {"sharpness": math.nan},
        {"efficiency": {"gemm": 1.2}},
        {"efficiency": {"gemm": 0}},
        {"overhead": -1.0},
        {"overhead": math.inf},
    ],
)
def test_parameters_without_meaning(device, options):
    with pytest.raises(InputError):
        Roofline(device, **options)


def test_rates_of_nothing():
    nothing = OpCost(0.0, 0.0, 0.0, 0.0, "compute", 0.0, 0.0)
    assert (nothing.rate, nothing.bandwidth) == (0, 0)


sizes = st.integers(1, 5000)
ops = st.one_of(
    st.builds(lambda m, n, k, d: matmul(m, n, k=k, dtype=d), sizes, sizes, sizes, st.sampled_from(["fp32", "fp16"])),
    st.builds(elementwise, st.integers(1, 10**8), st.floats(0, 1e4)),
    st.builds(softmax, sizes, sizes),
)
models = st.builds(
    lambda p, e, q: Roofline(Device(efficiency={"gemm": e, "elementwise": e}), sharpness=p, quantisation=q),
    st.sampled_from([1.0, 2.0, 8.0, 50.0, math.inf]),
    st.floats(0.01, 1),
    st.booleans(),
)


@given(models, ops)
def test_never_below_the_floor_and_never_above_the_sum(model, op):
    cost = model.cost(op)
    assert cost.time >= max(op.flops / model.peak(op.dtype, family=op.family), op.nbytes / 100e9) + 2e-6
    assert cost.time <= (cost.compute_time + cost.memory_time + cost.overhead) * (1 + 1e-12)
    assert 0 < cost.demand <= 1


@given(models, st.floats(0, 1e12), st.floats(0, 1e9), st.floats(0, 1e9))
def test_more_bytes_for_the_same_work_alone_take_no_less(model, flops, nbytes, more):
    few, many = (Op("a", flops=flops, nbytes_read=size) for size in (nbytes, nbytes + more))
    assert model.cost(many).time >= model.cost(few).time * (1 - 1e-12)


@given(ops, st.floats(0.1, 10))
def test_scaling_peak_and_bandwidth_scales_the_time(op, factor):
    base = Device(efficiency={"gemm": 0.7, "elementwise": 0.8})
    scaled = replace(
        base,
        peak={name: rate * factor for name, rate in base.peak.items()},
        memory_bandwidth=base.memory_bandwidth * factor,
        kernel_floor=base.kernel_floor / factor,
    )
    before, after = Roofline(base).cost(op), Roofline(scaled).cost(op)
    assert after.time * factor == pytest.approx(before.time, rel=1e-9)
