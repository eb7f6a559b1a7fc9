"""Kernels and copies that slow each other, on a device whose part says by how much."""

from __future__ import annotations

from dataclasses import replace

import pytest
import simpy

from simperf.engine.interference import Interference
from simperf.engine.kernel import Kernel
from simperf.engine.network import FlowNetwork
from simperf.engine.share import Share, ShareUser
from simperf.engine.simulation import Simulation
from simperf.execution import copy, launch, record, synchronize, wait
from simperf.execution.session import Session
from simperf.hardware import Catalog

FACTORS = {"kernel.compute": 1.25, "copy.compute": 2.0, "kernel.memory": 1.5, "copy.memory": 4.0}


def session(factors):
    catalog = Catalog.load()
    catalog = catalog.adjusted(lambda part: replace(part, beside=factors) if part.KIND == "gpu" else part)
    return Session(Simulation(catalog.machine("book-1gpu" if "book-1gpu" in catalog.names("server") else "dgx-1v")))


def played(factors, *, seconds, count=1, category="compute", nbytes=0.0):
    """Ends of the kernels and of the copy [s], both begun at once; and the rate of the copy alone [B/s]."""
    m = session(factors)
    gpu = m.gpu()
    ends = {}

    def program():
        if nbytes:
            yield copy(m.host, gpu, nbytes=nbytes, stream=gpu.stream(1))
            done = yield record(gpu.stream(1))
            done.done.callbacks.append(lambda event: ends.update(copy=m.now))
        for _ in range(count):
            yield launch(Kernel("k", seconds / count, category=category), gpu)
        over = yield record(gpu)
        over.done.callbacks.append(lambda event: ends.update(kernels=m.now))
        yield wait(over)
        yield synchronize()

    m.play(program())
    return ends, m.machine.route(m.host, gpu.name)


@pytest.mark.parametrize("category", ["compute", "memory"])
@pytest.mark.parametrize("count", [1, 10])
def test_a_copy_that_outlasts_the_kernels(category, count):
    nbytes = 1e9
    ends, route = played(FACTORS, seconds=1e-3, count=count, category=category, nbytes=nbytes)
    slow, copied = FACTORS[f"kernel.{category}"], FACTORS[f"copy.{category}"]
    assert ends["kernels"] == pytest.approx(slow * 1e-3, rel=1e-3)
    done = slow * 1e-3 / copied  # seconds' worth of the copy alone that went beside the kernels
    assert ends["copy"] == pytest.approx(slow * 1e-3 + nbytes / route.bandwidth - done, rel=1e-3)


@pytest.mark.parametrize("category", ["compute", "memory"])
def test_kernels_that_outlast_a_copy(category):
    nbytes = 1e7
    ends, route = played(FACTORS, seconds=0.1, category=category, nbytes=nbytes)
    slow, copied = FACTORS[f"kernel.{category}"], FACTORS[f"copy.{category}"]
    beside = copied * nbytes / route.bandwidth
    assert ends["copy"] == pytest.approx(beside, rel=2e-2)
    assert ends["kernels"] == pytest.approx(beside + 0.1 - beside / slow, rel=1e-3)


def test_copies_cost_kernels_nothing_where_nothing_was_measured():
    ends, route = played({}, seconds=1e-3, nbytes=1e7)
    assert ends["kernels"] == pytest.approx(1e-3, rel=1e-12)
    assert ends["copy"] == pytest.approx(1e7 / route.bandwidth, rel=2e-2)


def test_factors_of_one_change_nothing():
    plain, _ = played({}, seconds=1e-3, count=7, nbytes=1e7)
    ones, _ = played(dict.fromkeys(FACTORS, 1.0), seconds=1e-3, count=7, nbytes=1e7)
    assert ones == pytest.approx(plain, rel=1e-12)


def test_a_resource_of_ones_own():
    network = Simulation().network
    network.add("extra")
    network.add("extra")
    network.set_capacity("extra", 50.0)
    flow = network.transfer(["extra"], 100.0)
    network.env.run(flow)
    assert network.env.now == pytest.approx(2.0)


def test_paces_follow_what_is_at_work():
    """The object alone: factors of the kinds of kernels that run, while a copy is under way."""
    env = simpy.Environment()
    share, network = Share(env, 1.0), FlowNetwork(env, {})
    found = Interference(share, network, {"kernel.compute": 1.25, "copy.compute": 2.0, "copy.memory": 4.0})
    kernel = ShareUser(share, lambda event: None)
    kernel.begin(1.0)
    assert share.paces == {}, "kernels alone are as fast as ever"
    assert found.begin_copy("gpu0:h2d", 8e9) == "gpu0:h2d"
    assert share.paces == {"compute": 0.8, "memory": 1.0}
    flow = network.transfer(("gpu0:h2d",), 4e9)
    env.run(until=1.0)
    assert network.rate(flow) == pytest.approx(8e9 / 2.0), "beside kernels that compute"
    found.end_copy("gpu0:h2d")
    assert share.paces == {}
    env.run()
    assert kernel not in share.running


def test_the_slowest_kind_of_kernels_sets_the_pace_of_copies():
    env = simpy.Environment()
    share, network = Share(env, 2.0), FlowNetwork(env, {})
    found = Interference(share, network, {"copy.compute": 2.0, "copy.memory": 4.0})
    for kind in ("compute", "memory"):
        user = ShareUser(share, lambda event: None)
        user.kind = kind
        user.begin(1e3)
    found.begin_copy("a", 8e9)
    flow = network.transfer(("a",), 1e9)
    env.run(until=0.1)
    assert network.rate(flow) == pytest.approx(2e9)
