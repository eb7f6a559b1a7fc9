"""Rows A1-A6, B1, B2, B4 (programs asynchrony, regimes, parallel): times from events against closed forms."""

import pytest

from simperf.cost import Roofline
from simperf.errors import DeviceMemoryError, ProgramError
from simperf.workload import make_op


def test_a1_python_is_paid_per_operation_or_once(play):
    eager = play("p3-2xlarge", "forward-passes", frontend="pytorch").metrics["time per pass"][0]
    scripted = play("p3-2xlarge", "forward-passes", frontend="pytorch", mode="scripted").metrics["time per pass"][0]
    captured = play("p3-2xlarge", "forward-passes", frontend="pytorch", mode="captured").metrics["time per pass"][0]
    assert eager == pytest.approx(5 * 8e-6 + 6 * 2.1e-6, rel=2e-3)  # five launches, six calls of layers
    assert scripted == pytest.approx(5 * 4e-6, rel=2e-3)
    assert captured < scripted < eager


def test_a2_jitter_depends_on_the_seed_alone(play):
    once, again = (play("", "async-chain", n=100, jitter=0.5, seed=7).now for _ in range(2))
    assert once == again
    assert once != play("", "async-chain", n=100, jitter=0.5, seed=8).now


@pytest.mark.parametrize("how", ["item", "print", "numpy", "synchronize"])
def test_a3_each_look_costs_launch_and_fetch(play, how):
    """Looks 1..20 each leave the device idle for t3 + t1."""
    session = play("", "what-blocks", n=2000, every=100, how=how, t1=5e-6, t2=20e-6, t3=10e-6)
    # the last look drains the stream; the closing synchronize fetches once more
    assert session.now == pytest.approx(2000 * 20e-6 + 20 * (5e-6 + 10e-6) + 10e-6, rel=1e-9)


def test_a4_memory_follows_the_run_ahead(play):
    free = play("", "run-ahead", batches=20, ops=100, nbytes=1e6)
    synced = play("", "run-ahead", batches=20, ops=100, nbytes=1e6, sync_every=1)
    assert free.metrics["peak memory"][0] == pytest.approx(1024e6)
    assert synced.metrics["peak memory"][0] <= 100e6
    assert synced.now / free.now < 1.01


def test_a4_too_much_in_flight_is_out_of_memory(play):
    with pytest.raises(DeviceMemoryError, match=r"gpu0 is out of memory .* 'layer' asks for 100.0 MB"):
        play("desktop-1gpu", "run-ahead", nbytes=100e6)


def test_a5_two_of_four_operations_overlap(play):
    inorder = play("desktop-1gpu", "expression", elements=10_000).now
    tracked = play("desktop-1gpu", "expression", elements=10_000, mode="dataflow").now
    fill = 4 * 10_000 / 1008e9
    assert inorder - tracked == pytest.approx(fill, rel=1e-6), "y is filled while x is"


@pytest.mark.parametrize(("flops", "bound"), [(1, "memory"), (10_000, "compute")])
def test_a6_fusion_halves_memory_bound_time_and_no_other(play, flops, bound):
    ops = [{"op": "elementwise", "elements": 10_000_000, "flops_per_element": flops}] * 2
    apart = play("desktop-1gpu", "operations", ops=ops)
    fused = play("desktop-1gpu", "operations", ops=ops, mode="fused")
    assert fused.metrics["bytes moved"][0] == apart.metrics["bytes moved"][0] / 2
    assert fused.now / apart.now == pytest.approx(0.5 if bound == "memory" else 1.0, rel=1e-9)
    assert f"{bound}-bound" in apart.notes[0]


def test_a6_the_regime_changes_where_the_roofline_says(catalog):
    part = catalog.gpu("rtx-4090")
    model = Roofline.sharp(part)
    ridge = part.peak["fp32"] / part.memory_bandwidth  # FLOP/B
    for factor, regime in ((0.99, "memory"), (1.01, "compute")):
        op = make_op({"op": "elementwise", "elements": 10**8, "flops_per_element": 8 * ridge * factor})
        assert model.cost(op).regime == regime


def test_b1_sum_with_a_synchronisation_between_maximum_without(play):
    one = play("p3-8xlarge", "two-devices", devices=1, n=10).now
    apart = play("p3-8xlarge", "two-devices", sync_between=True, n=10).now
    together = play("p3-8xlarge", "two-devices", n=10).now
    assert apart == pytest.approx(2 * one, rel=1e-9)
    assert together == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize(("demand", "gain"), [(0.2, 4.0), (0.5, 2.0), (1.0, 1.0)])
def test_b2_small_kernels_gain_from_streams_large_ones_do_not(play, demand, gain):
    one = play("", "streams", lanes=1, demand=demand).now
    four = play("", "streams", lanes=4, demand=demand).now
    assert one / four == pytest.approx(gain, rel=1e-9)


def test_b4_a_naive_timer_reads_the_launches(play):
    metrics = play("", "timers", warm_up=1.0).metrics
    assert metrics["timer without synchronize"][0] == pytest.approx(100e-6)
    assert metrics["timer with synchronize"][0] == pytest.approx(10e-6 + 10 * 240e-6 + 10e-6)
    cold = play("", "timers").metrics
    assert cold["timer with synchronize"][0] == pytest.approx(1.5 + 2.42e-3)


@pytest.mark.parametrize(
    ("program", "bad", "words"),
    [
        ("streams", {"demand": 0.0}, "demand"),
        ("streams", {"lanes": 0}, "lanes"),
        ("two-devices", {"devices": 3}, "gpu2"),
        ("two-devices", {"devices": 0}, "devices"),
        ("expression", {"times": 0}, "times"),
    ],
)
def test_parameters_without_meaning_are_refused(play, program, bad, words):
    with pytest.raises(ProgramError, match=words):
        play("desktop-2gpu", program, **bad)


@pytest.mark.parametrize("mode", ["eager", "fused", "captured"])
def test_experts_of_a_mixture_are_played_as_they_are_costed(play, mode):
    layer = {
        "op": "moe",
        "tokens": 512,
        "hidden": 2048,
        "intermediate": 1024,
        "experts": 16,
        "top_k": 2,
        "dtype": "fp16",
    }
    ops = [layer, {"op": "relu", "elements": 512 * 2048, "dtype": "fp16"}]
    session = play("p3-2xlarge", "operations", ops=ops, mode=mode, sharp=False)
    model = Roofline(session.gpu(0).part)
    assert session.now == pytest.approx(sum(model.cost(make_op(spec)).time for spec in ops), rel=1e-6)
