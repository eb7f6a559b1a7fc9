"""Operations of a CPU: the forms, what a step runs there, and constants that come back from synthetic readings."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.processor import memory_rate, processor_models
from simperf.calibrate.fit.solve import fit
from simperf.calibrate.measure.conditions import amounts
from simperf.cost import FittedRoofline, OpCost
from simperf.cost.cores import (
    GRAIN,
    ConvConstants,
    ProductConstants,
    SpreadConstants,
    attention_time,
    conv_time,
    product_time,
    spread_time,
)
from simperf.cost.processor import (
    COLD,
    amount,
    as_run,
    attention_work,
    conv_shape,
    processor_time,
    row_count,
    step_as_run,
    window,
)
from simperf.hardware import Catalog
from simperf.workload import zoo
from simperf.workload.kinds import conv2d, matmul, reduction, unary
from simperf.workload.op import Gemm, Op

SPREAD = {"overhead": 2e-6, "fork": 4e-6, "serial": 8e10, "cached": 1.4e11, "memory": 6e10, "capacity": 4e7}
#: two cores with a cache of 1 MB each of their own
LEVELS = {**SPREAD, "near": 3e11, "near_at": 2e6}
PRODUCT = {"rate": 1.7e11, "overhead": 4e-6, "half_m": 9.0, "half_n": 3.0, "half_k": 2.0, "odd": 0.2}
CONV = {
    "rate": 3.2e11,
    "overhead": 7e-5,
    "cached": 6e10,
    "memory": 9e9,
    "capacity": 8e6,
    "half_k": 20.0,
    "strided": 0.8,
}


@pytest.mark.parametrize(("side", "stride"), [(1, 1), (1, 2), (3, 1), (3, 2), (5, 1), (5, 2), (7, 2), (11, 4)])
@pytest.mark.parametrize("image", [32, 56, 224])
def test_the_window_follows_from_what_a_convolution_reads_and_computes(side, stride, image):
    op = conv2d(4, 24, filters=40, height=image, width=image, kernel=side, stride=stride, padding=side // 2)
    assert window(op) == (side, stride)
    channels, filters, pixels, *_ = conv_shape(op)
    out = (image + 2 * (side // 2) - side) // stride + 1
    assert (channels, filters, pixels) == (24, 40, 4 * out * out)


def test_traced_convolutions_and_their_gradients_have_the_shapes_of_the_model():
    step = zoo.load("resnet18").at(4)
    found = {kind: set() for kind in ("conv2d", "conv2d_dgrad", "conv2d_wgrad")}
    for op in step.ops:
        if op.kind in found:
            channels, filters, _, side, stride = conv_shape(op)
            found[op.kind].add((round(channels), round(filters), side, stride))
    assert found["conv2d"] == found["conv2d_wgrad"] == found["conv2d_dgrad"] | {(3, 64, 7, 2)}
    assert {(64, 64, 3, 1), (64, 128, 3, 2), (64, 128, 1, 2), (512, 512, 3, 1)} <= found["conv2d"]


def test_small_operations_run_on_one_core_and_large_ones_from_memory():
    small, large = unary("relu", GRAIN), unary("relu", 10**8)
    assert processor_time(small, SPREAD) == pytest.approx(2e-6 + small.nbytes / 8e10)
    beside = (1.0 + (6e10 / 1.4e11) ** 3) ** (1 / 3)  # the memory's time, the cores at work meanwhile
    assert processor_time(large, SPREAD) == pytest.approx(6e-6 + large.nbytes / 6e10 * beside, rel=1e-3)
    middle = unary("relu", 10**6)
    assert processor_time(middle, SPREAD) == pytest.approx(6e-6 + middle.nbytes / 1.4e11, rel=0.02)
    cold = float(spread_time(SpreadConstants(**SPREAD), middle.nbytes, 10**6, cold=True))
    assert cold == pytest.approx(6e-6 + middle.nbytes / 6e10 * beside)
    chilled = float(spread_time(SpreadConstants(**SPREAD, chill=3e-6, far=1e15), middle.nbytes, 10**6, cold=True))
    assert chilled == pytest.approx(9e-6 + middle.nbytes / 1.4e11)
    slow = SPREAD | {"serial": 1e9, "cached": 2e9}  # bound by computing: where the operands are does not matter
    assert processor_time(large, slow) == pytest.approx(6e-6 + large.nbytes / 2e9, rel=1e-3)
    assert amount(reduction(10, 10_000)) == 100_000


def test_what_the_cores_own_caches_hold_is_faster():
    small, large = unary("relu", 60_000), unary("relu", 3 * 10**6)
    assert processor_time(small, LEVELS) == pytest.approx(6e-6 + small.nbytes / 3e11, rel=0.02)
    assert processor_time(large, LEVELS) == pytest.approx(processor_time(large, SPREAD), rel=0.01)
    one = unary("relu", GRAIN)  # one core alone
    assert processor_time(one, LEVELS) == processor_time(one, SPREAD)


def test_rows_of_a_layer_normalisation_cost_beside_their_elements():
    def normalised(rows, columns, *, back=False):
        size = rows * columns
        read, beside = (2 * size + 2 * rows + columns, 2 * columns) if back else (size + 2 * columns, 2 * rows)
        kind = "layernorm_backward" if back else "layernorm"
        nbytes = {"nbytes_read": 4.0 * read, "nbytes_written": 4.0 * (size + beside)}
        return Op("y", kind, family="normalization", elements=float(size), **nbytes)

    for back in (False, True):
        assert row_count(normalised(2462, 128, back=back)) == pytest.approx(2462)
    assert row_count(unary("relu", 1000)) == 0
    short, long = (processor_time(normalised(*shape), SPREAD | {"row": 2e-8}) for shape in ((6000, 128), (750, 1024)))
    assert short - long == pytest.approx(5250 * 2e-8 + (6000 - 750) * 8 / 1.4e11, rel=0.1)


def test_products_wait_for_what_no_cache_holds():
    constants = ProductConstants(overhead=0.0, rate=1e12, memory=1e10, capacity=2e7)
    sizes = {"flops": 1e9, "m": 1e3, "n": 1e3, "k": 500}
    warm, cold = (product_time(constants, **sizes, read=1e6, written=4e6, cold=cold) for cold in (False, True))
    assert warm == pytest.approx(1e-3, rel=0.01)
    assert cold == pytest.approx(1e-3 + 1e6 / 1e10, rel=0.01)  # results go where earlier ones were
    large = product_time(constants, **sizes, read=2e8, written=2e8)
    assert large == pytest.approx(1e-3 + 4e8 / 1e10, rel=0.01)


def test_attention_leaves_out_whole_blocks_of_keys_only():
    def attention(queries, *, causal, kind="attention"):
        products = 5 if kind.startswith("attention_backward") else 2
        gemm = Gemm(4, queries, 64, products * queries)
        flops = 2.0 * 4 * queries * 64 * products * queries * (0.5 if causal else 1.0)
        return attention_work(Op("y", kind, family="attention", flops=flops, gemm=gemm))

    for kind in ("attention", "attention_backward"):
        for queries, rows in ((128, 32), (256, 64), (512, 64), (1024, 256)):
            assert attention(queries, causal=False, kind=kind)[1] == rows
            share = attention(queries, causal=True, kind=kind)[0] / attention(queries, causal=False, kind=kind)[0]
            assert share == (0.75 if queries == 1024 else 1.0)
    full, rows = attention(1024, causal=True, kind="attention:dropout")
    assert (full, rows) == (4.0 * 1024 * 2048, float("inf"))
    narrow, wide = (
        float(attention_time(1e6, 64, rows, overhead=0.0, rate=1e11, scored=1e9, half_rows=16.0)) for rows in (32, 256)
    )
    assert narrow / wide == pytest.approx(1.5 / 1.0625)


def test_padding_strides_and_ragged_rows_cost():
    full, padded = (conv_time(ConvConstants(**CONV), 1e9, 1e6, 64, filters, 10**4, 3, 1) for filters in (64, 72))
    assert float(padded) > 1.05 * float(full)
    more = float(conv_time(ConvConstants(**CONV, odd=0.1), 1e9, 0.0, 64, 72, 10**4, 3, 1)) - CONV["overhead"]
    assert more == pytest.approx(
        1.1 * (float(conv_time(ConvConstants(**CONV), 1e9, 0.0, 64, 72, 10**4, 3, 1)) - CONV["overhead"])
    )
    assert float(conv_time(ConvConstants(**CONV, odd=0.1), 1e9, 1e6, 64, 64, 10**4, 3, 1)) == float(full)
    assert float(conv_time(ConvConstants(**CONV), 1e9, 1e6, 64, 64, 10**4, 3, 2)) > float(full)
    assert product_time(ProductConstants(**PRODUCT), 2e9, 1000, 1001, 1000) == pytest.approx(
        1.2 * product_time(ProductConstants(**PRODUCT), 2e9, 1000, 1008, 1008), rel=0.01
    )


def test_a_step_on_a_cpu_has_no_kernels_for_biases_of_convolutions():
    step = zoo.load("lenet").at(16)
    run = step_as_run(step)
    kinds = [op.kind for ops in run.values() for op in ops]
    assert "bias" not in kinds
    assert kinds.count("sum") == sum(op.kind == "linear" for op in step.ops)  # biases of linear layers only
    assert [op.name for op in run["update"]] == [op.name for op in step.update]


def test_attention_with_dropout_is_a_kind_of_its_own():
    kinds = {op.kind for op in as_run(zoo.load("bert-base-128").at(1).ops)}
    assert {"attention:dropout", "attention_backward:dropout"} <= kinds
    assert "attention" not in kinds
    assert "attention" in {op.kind for op in as_run(zoo.load("llama2-7b").at(1).ops)}


def test_what_a_step_touched_longer_ago_than_a_cache_holds_is_cold():
    ops = zoo.load("resnet18").at(2).ops
    share = []
    for cache in (np.inf, 64e6, 1e6, 0.0):
        run = as_run(ops, cache=cache)
        share.append(sum(op.kind.endswith(COLD) for op in run) / len(run))
    assert share[0] == 0.0
    assert 0.1 < share[1] < share[2] <= share[3]
    forward = [op for op in as_run(ops, cache=64e6)[:60] if op.kind.startswith("relu")]
    assert all(op.kind == "relu" for op in forward)  # reads what was written just before


def test_operands_larger_than_the_cache_are_cold_however_late_they_were_touched():
    update = [op for op in as_run(zoo.load("resnet18").at(2).ops, cache=3.3e7) if op.name.startswith("update")]
    assert [op.kind for op in update] == ["add" + COLD, "mul" + COLD, "add" + COLD, "add" + COLD]  # 47 MB each
    update = [op for op in as_run(zoo.load("resnet18").at(2).ops, cache=2e8) if op.name.startswith("update")]
    assert [op.kind.endswith(COLD) for op in update[1:]] == [False, False, False]


def test_gradients_with_decay_go_beside_the_gradients_and_other_sums_of_an_update_are_in_place():
    families = {}
    for name in ("resnet18", "lenet", "bert-base-128"):
        run = step_as_run(zoo.load(name).at(2))
        families[name] = [op.family for op in run["update"] if op.kind == "add"]
    assert families == {
        "resnet18": ["elementwise", "optimizer", "optimizer"],  # momentum and decay
        "lenet": ["optimizer"],
        "bert-base-128": ["optimizer"],
    }


def test_an_average_run_takes_longer_than_the_middle_one():
    op = unary("relu", 10**6)
    assert processor_time(op, {**SPREAD, "longer": 1.03}) == pytest.approx(1.03 * processor_time(op, SPREAD))


def test_a_call_costs_more_the_more_was_touched_since_the_last_one_of_its_kind():
    known = SPREAD | {"late": 4e-5, "late_at": 3e7}
    relu = unary("relu", 1000)
    times = [
        processor_time(replace(relu, since=since), known) - processor_time(relu, SPREAD) for since in (0, 3e7, 1e9)
    ]
    assert times == pytest.approx([0.0, 2e-5, 4e-5], rel=1e-3, abs=1e-12)


def test_what_was_touched_between_two_of_a_kind_goes_around_the_step():
    ops = [unary(kind, 1000) for kind in ("relu", "tanh", "relu", "exp")]
    each = ops[0].nbytes
    assert [op.since for op in as_run(ops)] == [each, 3 * each, each, 3 * each]


def test_fitted_roofline_takes_the_forms_of_a_cpu_where_the_constants_say_so():
    gpu = Catalog.load().gpu("t4")
    model = FittedRoofline(gpu, {"elementwise-fp32": {"processor": 1.0, **SPREAD}})
    op = unary("relu", 10**6)
    cost = model.cost(op)
    assert isinstance(cost, OpCost)
    assert cost.time == processor_time(op, SPREAD)
    assert model.processor
    assert not FittedRoofline(gpu, {"elementwise-fp32": {"overhead": 1e-6, "rate": 1e11}}).processor
    from dataclasses import replace

    cold = model.cost(replace(op, kind="relu" + COLD))
    assert cold.time > cost.time


def readings(ops, constants, *, noise=0.02, seed=0, cold=()):
    rng = np.random.default_rng(seed)
    points = []
    for i, op in enumerate(ops):
        true = processor_time(op, constants)
        samples = true * np.exp(noise * rng.standard_normal() + 0.01 * rng.standard_normal(7))
        if i % 17 == 5:
            samples = samples * 1.6  # something else ran
        at = {**amounts(op), "device": "cpu", "cache": "warm", "number": i}
        points.append(Measurement(f"op/{op.family}", at, tuple(samples)))
    return points


def recovered(name, ops, constants, *, variant=0):
    points = readings(ops, constants)
    models, data = processor_models(name, points, memory=memory_rate(points))
    found = fit(models[variant], data)
    assert found.mape() < 0.08
    return found.values


@pytest.mark.parametrize(("constants", "variant"), [(SPREAD, 0), (LEVELS, -1)])
def test_constants_of_elements_come_back(constants, variant):
    ops = [unary("relu", round(2e3 * 1.25**i)) for i in range(44)]
    found = recovered("elementwise-fp32:relu", ops, constants, variant=variant)
    for name in {"overhead", "serial", "cached", "memory", "near"} & set(constants):
        assert found[name] == pytest.approx(constants[name], rel=0.12), name
    assert found["capacity"] == pytest.approx(SPREAD["capacity"], rel=0.3)


def test_constants_of_products_come_back():
    rng = np.random.default_rng(1)
    ops = [
        matmul(*(int(16 * rng.integers(1, 120)) + (i % 10 == 9) for _ in range(2)), k=int(16 * rng.integers(1, 120)))
        for i in range(60)
    ]
    found = recovered("gemm-fp32:matmul", ops, PRODUCT)
    for name, rel in (("rate", 0.05), ("half_m", 0.5), ("odd", 0.35)):
        assert found[name] == pytest.approx(PRODUCT[name], rel=rel), name


def test_the_memory_behind_products_comes_back():
    rng = np.random.default_rng(4)
    sides = np.exp(rng.uniform(np.log(16), np.log(4000), (90, 3))).round().astype(int)
    ops = [matmul(int(m), int(n), k=int(k)) for m, n, k in sides if 1e6 < 2.0 * m * n * k < 4e9]
    truth = PRODUCT | {"memory": 3e10, "capacity": 1.6e7, "half_k": 0.0}
    found = recovered("gemm-fp32:matmul", ops, truth, variant=3)
    for name, rel in (("rate", 0.08), ("memory", 0.3), ("capacity", 0.4)):
        assert found[name] == pytest.approx(truth[name], rel=rel), name


def test_constants_of_convolutions_come_back():
    rng = np.random.default_rng(2)
    ops = []
    for i in range(70):
        side, stride = [(1, 1), (3, 1), (3, 1), (3, 2), (5, 1)][i % 5]
        channels, filters = (int(16 * rng.integers(1, 20)) for _ in range(2))
        image, batch = int(rng.choice([14, 28, 56])), int(rng.integers(1, 40))
        ops.append(
            conv2d(
                batch,
                channels,
                filters=filters,
                height=image,
                width=image,
                kernel=side,
                stride=stride,
                padding=side // 2,
            )
        )
    found = recovered("conv-fp32:conv2d", ops, CONV)
    for name, rel in (("rate", 0.05), ("memory", 0.15), ("strided", 0.3)):
        assert found[name] == pytest.approx(CONV[name], rel=rel), name
