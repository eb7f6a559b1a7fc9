"""What each execution mode pays: eager, scripted, fused, captured, dataflow (simperf.execution.modes)."""

from dataclasses import replace

import pytest

from simperf.engine.kernel import Kernel
from simperf.engine.simulation import Simulation
from simperf.errors import UnknownNameError
from simperf.execution import FREE, MODES, FrontendPart, mode, run, synchronize
from simperf.execution.module import Module
from simperf.execution.session import Session
from simperf.workload import OpGraph, cos_cos, mlp, product_plus_two

PROFILE = FrontendPart(
    name="test", title="test", sources={}, launch=10e-6, result=0.0, scripted=0.5, graph_launch=8e-6, capture=20e-6
)


def passes(name, graph, n=100, t2=1e-6, profile=PROFILE):
    """Time of n calls of a network whose operations take t2 each."""
    session = Session(Simulation(), mode=MODES[name], profile=profile)
    kernels = []

    def cost(op):
        kernels.append(op)
        return Kernel(op.name, t2, demand=0.25)

    net = Module(graph, cost)

    def program(m):
        for _ in range(n):
            yield run(net, m.gpu())
        yield synchronize(m.gpu())

    return session.play(program(session)), len(kernels)


def test_frontend_cost_is_paid_reduced_or_paid_once():
    graph, n, ops = mlp([512, 256, 128, 2], 1), 100, 5
    eager, _ = passes("eager", graph)
    assert eager == pytest.approx(n * ops * 10e-6 + 1e-6)
    scripted, _ = passes("scripted", graph)
    assert scripted == pytest.approx(n * ops * 5e-6 + 1e-6)
    captured, _ = passes("captured", graph)
    first = ops * (10e-6 + 20e-6)
    assert captured == pytest.approx(first + (n - 1) * 8e-6 + ops * 1e-6)


def test_fusion_launches_fewer_kernels():
    eager, unfused = passes("eager", cos_cos(1000), n=1)
    fused, one = passes("fused", cos_cos(1000), n=1)
    assert (unfused, one) == (2, 1)
    assert fused < eager


def test_a_compiled_call_takes_the_host_time_of_the_call_and_of_each_launch():
    graph, n = mlp([512, 256, 128, 2], 1), 100
    compiled = replace(PROFILE, compiled=7e-6, compiled_call=36e-6)
    plain, launches = passes("fused", graph, n)
    took, same = passes("compiled", graph, n, profile=compiled)
    assert launches == same
    assert took == pytest.approx(n * (36e-6 + launches * 7e-6) + 1e-6)
    assert plain == pytest.approx(n * launches * 5e-6 + 1e-6)
    assert passes("compiled", graph, n)[0] == plain
    for other in ("eager", "scripted", "captured", "fused", "fused-captured"):
        assert passes(other, graph, n, profile=compiled) == passes(other, graph, n)
    before, _ = passes("compiled-captured", graph, n)
    after, _ = passes("compiled-captured", graph, n, profile=compiled)
    assert after - before == pytest.approx(n * 36e-6 + launches * 2e-6)  # the first call launches too


def test_layers_are_called_where_operations_are_launched_from_python():
    graph, n, layers = mlp([512, 256, 128, 2], 1), 100, 6
    assert graph.layers == layers
    slow = replace(PROFILE, layer_call=3e-6)
    for name in ("eager", "synchronous", "dataflow"):
        before, _ = passes(name, graph, n)
        after, _ = passes(name, graph, n, profile=slow)
        assert after - before == pytest.approx(n * layers * 3e-6, rel=0.02)
    for name in ("scripted", "fused", "compiled"):
        assert passes(name, graph, n, profile=slow) == passes(name, graph, n)
    recorded, _ = passes("captured", graph, n, profile=slow)
    assert recorded - passes("captured", graph, n)[0] == pytest.approx(layers * 3e-6)  # the first call runs them
    bare = OpGraph(graph.ops, graph.inputs)
    assert passes("eager", bare, n, profile=slow) == passes("eager", bare, n)


def test_a_replayed_graph_waits_between_its_nodes():
    gap = replace(PROFILE, graph_gap=2e-6)
    graph = mlp([8, 8, 8], 1)
    slow, _ = passes("captured", graph, n=50, t2=20e-6, profile=gap)
    quick, _ = passes("captured", graph, n=50, t2=20e-6)
    assert slow - quick == pytest.approx(49 * 3 * 2e-6)


def test_dataflow_overlaps_what_is_independent_and_orders_what_is_not():
    """x and y side by side, then x * y, then + 2: three kernels deep, not four."""
    from simperf.programs import PROGRAMS
    from simperf.workload import make_op

    fresh = [make_op({"op": "fill", "elements": 10, "name": n, "outputs": [n]}) for n in ("x", "y")]
    graph = OpGraph([*fresh, *product_plus_two(10).ops])
    free = FREE
    assert passes("eager", graph, n=1, t2=1.0, profile=free)[0] == pytest.approx(4.0)
    assert passes("dataflow", graph, n=1, t2=1.0, profile=free)[0] == pytest.approx(3.0)
    assert "expression" in PROGRAMS


def test_unknown_mode_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'eager'"):
        mode("eagre")
