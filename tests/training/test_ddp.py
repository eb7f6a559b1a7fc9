"""DistributedDataParallel: closed forms, bounds and identities."""

from types import SimpleNamespace

import pytest

from simperf.collectives import algorithms
from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution import FrontendPart, launch
from simperf.execution.session import Session
from simperf.training.data.reads import HostReads
from simperf.training.driver import train
from simperf.training.mini_batches import Input
from simperf.workload import Op, make_op
from tests.training.strategies import CATALOG, MIB, job, layers, metric, run, star

WIRE = 50e9
ALPHA = 500e-9


def ring(n, nbytes):
    return 2 * (n - 1) * (nbytes / n / WIRE + ALPHA)


@pytest.mark.parametrize(("n", "expected"), [(8, 5741e-6), (64, 5890e-6)])
def test_all_but_the_last_bucket_are_hidden(n, expected):
    """Five segments of 1 ms release 20 MiB each; the figures are those of an independent flow-level simulator."""
    m = run(star(n), layers(), bucket=20 * MIB, steps=1)
    assert m.now == pytest.approx(expected, rel=1e-3)
    assert m.now == pytest.approx(5e-3 + ring(n, 20 * MIB), rel=1e-9)
    assert metric(m, "exposed communication") == pytest.approx(ring(n, 20 * MIB), rel=1e-9)


def test_without_overlap_all_communication_is_exposed():
    m = run(star(8), layers(), bucket=20 * MIB, steps=1, overlap=False)
    assert m.now == pytest.approx(5e-3 + 5 * ring(8, 20 * MIB), rel=1e-9)


def test_buckets_go_one_at_a_time_and_in_order():
    """Collectives that take longer than the segments follow each other without a gap."""
    m = run(star(8, bandwidth="5 GB/s"), layers(), bucket=20 * MIB, steps=1)
    one = 2 * 7 * (20 * MIB / 8 / 5e9 + ALPHA)
    assert one > 1e-3
    assert m.now == pytest.approx(1e-3 + 5 * one, rel=1e-9)


@pytest.mark.parametrize("k", [2, 4, 8])
def test_free_communication_makes_k_gpus_one_gpu_on_a_part_of_the_batch(k):
    work = layers(forward=1e-3, backward=2e-3, fixed=0.3e-3, update=0.5e-3)
    many = run(star(k, bandwidth="1e5 TB/s", latency="0 s"), work, batch=64)
    one = run(star(k), work, n=1, batch=64 // k)
    assert many.now == pytest.approx(one.now, rel=1e-7)
    assert metric(many, "scaling efficiency") == pytest.approx(1.0, rel=1e-7)


@pytest.mark.parametrize("bandwidth", ["1 GB/s", "10 GB/s", "100 GB/s"])
@pytest.mark.parametrize("bucket", [1 * MIB, 25 * MIB, 1000 * MIB])
def test_never_faster_than_computation_or_communication(bandwidth, bucket):
    m = run(star(4, bandwidth=bandwidth), layers(forward=2e-3), bucket=bucket, steps=2)
    wire = 2 * 3 / 4 * 100 * MIB / (float(bandwidth.split()[0]) * 1e9)
    assert metric(m, "time per step") >= max(7e-3, wire) * (1 - 1e-9)
    assert m.simulation.floors()["bandwidth"] <= m.now * (1 + 1e-9)
    assert m.simulation.floors()["critical path"] <= m.now * (1 + 1e-9)


def test_the_best_bucket_is_neither_the_smallest_nor_the_largest():
    """Small buckets cost latency each, large ones leave nothing to hide behind."""
    machine, work = star(8, latency="10 us"), layers(50, nbytes=400 * MIB, backward=20e-3)
    sizes = [1, 8, 16, 32, 64, 128, 400]
    times = [metric(run(machine, work, bucket=size * MIB, first_bucket=size * MIB), "time per step") for size in sizes]
    best = times.index(min(times))
    assert 0 < best < len(sizes) - 1
    assert times[0] > 1.05 * times[best] < times[-1]


def test_gradients_travel_once_for_all_micro_batches():
    """no_sync: k micro-batches cost one round of communication, hidden behind the last of them."""
    work = layers(forward=1e-3, backward=5e-3)
    once = run(star(4), work, batch=4, steps=2)
    four = run(star(4), work, batch=16, steps=2, accumulate=4)
    big = run(star(4), work, batch=16, steps=2)
    assert metric(four, "payload per step") == metric(once, "payload per step")
    assert metric(four, "time per step") == pytest.approx(metric(once, "time per step") + 3 * 6e-3, rel=1e-9)
    assert metric(four, "time per step") >= metric(big, "time per step") * (1 - 1e-9)


def test_a_collective_slows_the_kernels_beside_it():
    """Kernels lose a constant factor while a bucket is under way, and only then."""
    plain = run(star(8), layers(), bucket=20 * MIB, steps=1)
    slow = run(star(8), layers(), bucket=20 * MIB, steps=1, slowdown=1.25)
    hidden = 4 * ring(8, 20 * MIB)  # in which the device ran at 1/1.25
    assert slow.now - plain.now == pytest.approx(hidden * (1 - 1 / 1.25), rel=1e-9)


def test_gradients_are_copied_into_buckets_and_back():
    """Two kernels a gradient, each a read and a write of it, in the step of every rank."""
    work = layers(backward=50e-3)
    view, copied = (run(star(4), work, bucket=20 * MIB, bucket_view=view) for view in (True, False))
    device = view.simulation.device("gpu0")
    each = view.kernel(Op("copy", "copy", nbytes_read=20 * MIB, nbytes_written=20 * MIB), device).time
    # of the copies into buckets, those of the gradients before the last are as much in the way as the others
    assert metric(copied, "time per step") - metric(view, "time per step") == pytest.approx(10 * each, rel=1e-6)
    assert each > 2 * 20 * MIB / device.part.memory_bandwidth
    alone = [run(star(4), work, n=1, batch=1, bucket_view=view).now for view in (True, False)]
    assert alone[0] == alone[1], "one device has no buckets"


def test_weights_are_broadcast_once_before_the_first_step():
    plain = run(star(4), layers(), steps=3)
    told = run(star(4), layers(), steps=3, broadcast=True)
    extra = told.now - plain.now
    assert 100 * MIB / WIRE <= extra < 1.1 * 100 * MIB / WIRE
    assert metric(told, "time per step") == pytest.approx(metric(plain, "time per step"), rel=1e-9)


def test_the_batch_is_copied_before_the_step():
    m = run(star(1), layers(nbytes_input=16e6), batch=10, steps=1)
    assert m.now == pytest.approx(50e-3 + 160e6 / 16e9 + 500e-9, rel=1e-9)


@pytest.mark.parametrize("algorithm", [*algorithms("all-reduce"), "nccl", "nccl-ring"])
def test_any_all_reduce_carries_the_buckets(algorithm):
    """A server whose switch can add up has the links for all of them; none beats its ports, or the backward pass."""
    machine = CATALOG.machine("dgx-h100")
    m = run(machine, layers(nbytes=800e6), algorithm=algorithm, batch=8, steps=2)
    port = sum(edge.bandwidth for edge in machine.edges.values() if edge.src == "gpu0" and "nvswitch" in edge.dst)
    through = 800e6 / port if algorithm == "in-network" else 2 * 7 / 8 * 800e6 / port
    assert metric(m, "time per step") >= max(5e-3, through) * (1 - 1e-9)
    assert metric(m, "exposed communication") >= 160e6 / port, "the last bucket has nothing to hide behind"
    assert metric(m, "payload per step") == pytest.approx(800e6)


def test_results_that_the_process_waits_for_add_their_launches_to_a_step():
    """A launch a sample and the sum, then kernels; the loss is fetched before the backward pass is launched."""
    once, fetch = 10e-6, 7e-6
    host = FrontendPart(name="host", title="host", sources={}, launch=once, result=fetch)
    work = layers(forward=20e-6, backward=400e-6, launch=once)

    def step(**options):
        m = Session(Simulation(star(1)), profile=host)
        m.play(train(m, job(work, batch=40, steps=3, **options)))
        return m, metric(m, "time per step")

    m, plain = step()
    assert plain == pytest.approx(40 * 420e-6, rel=1e-9)  # launches are hidden
    add = m.kernel(make_op({"op": "add", "elements": 1}), m.simulation.device("gpu0")).time
    assert add < once
    _, batch = step(waits=("batch",))
    assert batch - plain == pytest.approx(once, rel=1e-6)  # layers have no result to fetch
    _, sums = step(waits=("batch", "sums"))
    assert sums - batch == pytest.approx(40 * once + add + fetch, rel=1e-6)
    _, loss = step(waits=("loss",))
    assert loss - plain == pytest.approx(once, rel=1e-6)
    _, free = step(accumulate=2)
    _, twice = step(accumulate=2, waits=("loss",))
    assert twice - free == pytest.approx(2 * once, rel=1e-6)
    _, clipped = step(waits=("norm",))
    norm = Op("norm", "norm", nbytes_read=work.nbytes, family="reduction", elements=1.0)
    kernel = m.kernel(norm, m.simulation.device("gpu0")).time
    assert clipped - plain == pytest.approx(kernel + fetch + once, rel=1e-6), "of all gradients, once a step"


def test_a_copy_that_is_waited_for_is_that_of_its_own_stream():
    m = Session(Simulation(star(1)), profile=FrontendPart(name="host", title="host", sources={}))
    gpu = m.simulation.device("gpu0")

    def program():
        yield launch(Kernel("collective", 1.0), gpu, stream="communication")
        yield launch(Kernel("step", 1e-3), gpu)
        yield from HostReads(batch=True).before_forward(m, SimpleNamespace(device=gpu))
        return m.now

    assert m.play(program()) == pytest.approx(2e-3, rel=1e-6), "both streams share the device until then"


@pytest.mark.parametrize(("batches", "why"), [("ahead", "copied ahead"), ("device", "none is copied")])
def test_a_copy_that_does_not_follow_the_step_before_is_not_waited_for(batches, why):
    with pytest.raises(InputError, match=why):
        job(layers(nbytes_input=1e3), waits=("batch", "loss"), input=Input(batches=batches))
