"""Calls of different types take different times, where a profile has measured them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simperf.engine.items import GraphLaunch
from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.execution import item, launch, synchronize
from simperf.execution.calls import call_time, riding, update_time
from simperf.execution.profile import FREE
from simperf.execution.session import Session
from simperf.hardware import Catalog
from simperf.workload import Op
from simperf.workload.kinds import matmul, unary

MEASURED = replace(
    FREE,
    launch=4e-6,
    result=9e-6,
    synchronize=3e-6,
    calls={"conv2d": 4.0, "mm": 2.0, "pass:forward": 0.5, "pass:backward": -0.25, "update:sgd": 5.0}
    | {"update:sgd:tensor": 0.5},
)


def test_a_type_has_its_own_time_in_each_pass():
    assert call_time(MEASURED, "conv2d") == pytest.approx(16e-6)
    assert call_time(MEASURED, "conv2d", "forward") == pytest.approx(18e-6)
    assert call_time(MEASURED, "conv2d_wgrad", "backward") == pytest.approx(15e-6)
    assert call_time(MEASURED, "relu", "backward") == pytest.approx(3e-6), "as a launch, less what Python takes"
    assert call_time(MEASURED, "nll_loss", "forward") == 0.0, "in the call of the loss"
    assert call_time(FREE, "conv2d") is None


def test_a_convolution_s_backward_pass_is_one_call():
    kinds = ("relu", "conv2d_dgrad", "conv2d_wgrad", "sum", "conv2d_wgrad", "sum")
    reads = (("a",), ("g", "w"), ("g", "x"), ("g",), ("h", "x"), ("other",))
    ops = [Op(f"{i}", kind, inputs=read) for i, (kind, read) in enumerate(zip(kinds, reads, strict=True))]
    assert list(riding(ops)) == [False, False, True, True, False, False]


def test_an_update_goes_by_its_tensors():
    assert update_time(MEASURED, "sgd", tensors=10, kernels=2) == pytest.approx(4e-6 * 10 / 2)
    assert update_time(MEASURED, "adamw", tensors=10, kernels=2) is None


def test_a_session_launches_by_type_of_call():
    simulation = Simulation(Catalog.load().machine("dgx-1v"))
    m, plain = Session(simulation, profile=MEASURED), Session(simulation, profile=replace(MEASURED, calls={}))
    product = matmul(64, 64, k=64)
    assert m.kernel(product).launch == pytest.approx(8e-6)
    assert m.kernel(product, within="forward").launch == pytest.approx(10e-6)
    assert m.kernel(unary("relu", 8)).launch == pytest.approx(4e-6)
    assert plain.kernel(product).launch is None
    assert plain.kernel(product, within="forward") is plain.kernel(product)


@pytest.mark.parametrize(("verb", "rest"), [(item, 9e-6), (synchronize, 3e-6)])
def test_waiting_takes_less_than_fetching(verb, rest):
    m = Session(Simulation(), profile=MEASURED)

    def program():
        yield launch(Kernel("k", 1e-3), m.gpu())
        yield verb(m.gpu())

    assert m.play(program()) == pytest.approx(4e-6 + 1e-3 + rest)


def test_without_a_time_of_its_own_a_synchronisation_takes_that_of_a_result():
    m = Session(Simulation(), profile=replace(MEASURED, synchronize=None))

    def program():
        yield synchronize(m.gpu())

    assert m.play(program()) == pytest.approx(9e-6)


@pytest.mark.parametrize(("gap", "node"), [(1e-6, 2e-6), (-0.5e-6, 0.5e-6), (-5e-6, 0.0)])
def test_nodes_of_a_graph_cost_host_and_device(gap, node):
    m = Session(Simulation(), profile=replace(FREE, graph_launch=7e-6, graph_node=1e-7))
    graph = GraphLaunch("graph", [Kernel("k", 1e-6)] * 50, gap=gap)

    def program():
        yield launch(graph, m.gpu())
        yield synchronize(m.gpu())

    assert m.play(program()) == pytest.approx(7e-6 + 50 * 1e-7 + 50 * node)
