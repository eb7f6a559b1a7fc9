"""Published figures of parameter servers: BytePS's compression and its gains over a ring, a store behind a socket."""

import pytest

from simperf.collectives.nccl import Tuner
from simperf.collectives.settings import NcclSettings
from simperf.hardware import Catalog, build_cluster
from simperf.run import run
from simperf.scenario import load_scenario
from simperf.units import parse
from tests.truth.runs import attempts

#: seconds of 200 epochs on 25 Gbit/s (docs/gradient-compression.md at f5df52fe)
FAST = {
    "dense": 703.1527987500002,
    "1-bit": 629.4210848750001,
    "random-k": 501.99770550000005,
    "top-k": 507.90769437499966,
}

#: the same on 100 Mbit/s, of a number of epochs that is not told
SLOW = {"dense": 518.321322125, "1-bit": 195.236724875, "random-k": 89.672168625, "top-k": 83.9287285}


def errors(name, metric, measured=None):
    """By variant: predicted over measured, less one."""
    found = {}
    for attempt in attempts(name):
        there = attempt.result.metrics.get(metric)
        value, unit = (there.value, there.unit) if there else (attempt.result.time, "s")
        wanted = measured[attempt.name] if measured else parse(attempt.scenario.measurements[0].value, unit)
        found[attempt.name] = value / wanted - 1.0
    return found


def test_compression_on_a_fast_network_with_known_steps():
    """Fitted to the run without compression, the other three come within a tenth."""
    found = errors("training/byteps-compression-25g", "run time", FAST)
    assert abs(found.pop("dense")) < 1e-3
    assert found.keys() == FAST.keys() - {"dense"}
    assert max(map(abs, found.values())) < 0.1


def test_compression_on_a_slow_network_is_worth_it():
    """As measured, every kind of compression gains more than half of the time, and in the same order."""
    times = {
        one.name: one.result.metrics["time relative to dense"].value
        for one in attempts("measured/byteps-gradcompress-100mbps")
    }
    assert times.keys() == SLOW.keys() - {"dense"}
    assert max(times.values()) < 0.5
    assert sorted(times, key=times.__getitem__) == sorted(times, key=SLOW.__getitem__)


def test_top_k_on_the_slow_network_was_not_200_epochs():
    """It was done in a sixth of the time that the same steps took on 250 times the bandwidth."""
    assert SLOW["top-k"] < FAST["top-k"] / 6


def test_no_number_of_steps_explains_one_bit_on_the_slow_network():
    """With any line through bytes, one bit lies 3 % of the way from top-k to dense; measured are 26 %."""
    runs = attempts("measured/byteps-gradcompress-100mbps")
    steps = {attempt.name: attempt.result.metrics["time per step"].value for attempt in runs}
    steps["dense"] = runs[0].result.metrics["dense: time per step"].value
    predicted, measured = (
        (found["1-bit"] - found["top-k"]) / (found["dense"] - found["top-k"]) for found in (steps, SLOW)
    )
    assert predicted < 0.05
    assert measured > 0.2


def test_keys_are_announced_before_the_first_step():
    """Gradients and weights of four machines through one port at a time: six times 44.7 MB at 12.5 MB/s and more."""
    times = {
        one.result.metrics["time before the first step"].value
        for one in attempts("measured/byteps-gradcompress-100mbps")
    }
    assert max(times) - min(times) < 1e-6
    assert 6 * 44.7e6 / 12.5e6 < max(times) < 9 * 44.7e6 / 12.5e6


def test_one_connection_carries_a_ring_on_20_gigabits():
    """NCCL 2.3.7 makes one ring of one connection for an adapter; with as many as on AWS the adapter is full."""
    machine = build_cluster("v100-8gpu-20g", 4, catalog=Catalog.load(), bandwidth="20 Gbit/s")
    nbytes = 64e6
    once = 2 * (len(machine.gpus) - 1) / len(machine.gpus) * nbytes
    one = Tuner(machine, machine.gpus, settings=NcclSettings(only=("ring",))).best(nbytes).run.time
    many = (
        Tuner(machine, machine.gpus, settings=NcclSettings(only=("ring",), network="socket-aws")).best(nbytes).run.time
    )
    assert once / (13.7e9 / 8) < one < 1.2 * once / (13.7e9 / 8)
    assert once / (20e9 / 8) < many < 1.2 * once / (20e9 / 8)


def test_one_receiving_socket_holds_a_store_behind_it():
    """258 MB each way through sockets of 15 Gbit/s, both ways at once but for some keys; with 42 it was 39 % off."""
    found = errors("measured/mxnet-kv-dist-1server", "time")
    assert max(map(abs, found.values())) < 0.1
    (attempt,) = attempts("measured/mxnet-kv-dist-1server")
    assert attempt.result.time > 257991328 / (15e9 / 8)


def test_small_pieces_are_bound_by_round_trips_and_by_the_thread_that_prints():
    """Eight of 512 KiB under way; without the limits of the software both sizes take what the adapters do."""
    nbytes, rate = 536870912, 11.96e9
    times, silent = [], []
    for name in ("optcast-servers", "optcast-servers-512k"):
        times.append(attempts(f"measured/{name}")[0].result.time)
        thread = ["program.handlers=0", "program.handle=0 s"]
        silent.append(run(load_scenario(f"measured/{name}", thread)).time)
        limits = [f"program.{key}=0" for key in ("requests", "buffers", "apply")]
        free = run(load_scenario(f"measured/{name}", [*thread, *limits, "program.message=0 s"])).time
        assert nbytes / rate < free < 1.02 * nbytes / rate
    assert times[0] < 1.08 * nbytes / rate
    assert 1.2 < silent[1] / silent[0] < 1.35, "round trips alone"
    assert times[1] / times[0] == pytest.approx(103128 / 60591, rel=0.05), "as measured"
