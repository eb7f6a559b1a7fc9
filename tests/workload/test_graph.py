"""Dependencies, their faults, critical paths and the builders (simperf.workload.graph, .builders, .op)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.workload import Op, OpGraph, chain, mlp, product_plus_two
from simperf.workload.kinds import unary


def op(name, inputs="", outputs=None):
    return Op(name, inputs=tuple(inputs), outputs=tuple(name if outputs is None else outputs))


def test_the_books_product_plus_two():
    graph = product_plus_two(1000)
    assert graph.edges == ((0, 1),)
    assert graph.outputs == ("z",)
    assert graph.nbytes == 4000 * (3 + 2)
    assert graph.critical_path([2.0, 3.0]).length == 5


def test_diamond():
    graph = OpGraph([op("a", "x"), op("b", "a"), op("c", "a"), op("d", "bc")], "x")
    assert graph.predecessors == ((), (0,), (0,), (1, 2))
    path = graph.critical_path({"a": 1, "b": 5, "c": 2, "d": 1})
    assert (path.length, path.ops) == (7, ("a", "b", "d"))
    assert graph.consumers["a"] == (1, 2)


def test_independent_operations_take_the_longest():
    assert OpGraph([op("a"), op("b")]).critical_path([3.0, 4.0]).ops == ("b",)
    assert OpGraph([]).critical_path([]).length == 0


def test_a_cycle_is_shown():
    with pytest.raises(InputError, match="in a cycle: a -> b -> c -> a"):
        OpGraph([op("a", "c"), op("b", "a"), op("c", "b")])
    with pytest.raises(InputError, match="in a cycle: a -> a"):
        OpGraph([op("a", "a")])


def test_order_that_cannot_run():
    with pytest.raises(InputError, match="reads 'b' before 'b' makes it: move it down"):
        OpGraph([op("a", "b"), op("b", "x")], "x")


def test_all_faults_at_once():
    with pytest.raises(InputError) as caught:
        OpGraph([op("a", ["weight"]), op("a", "x", "t"), op("c", "x", "t"), op("d", "", "x")], ["x", "weights"])
    text = str(caught.value)
    assert "reads 'weight', which nobody makes and which is no input; did you mean 'weights'?" in text
    assert "two operations have this name" in text
    assert "makes 't', which 'a' makes too" in text
    assert "makes 'x', which is an input" in text
    assert len(caught.value.problems) == 4


def test_times_must_be_complete():
    graph = product_plus_two(10)
    with pytest.raises(InputError, match="z: no time is given"):
        graph.critical_path({"xy": 1.0})
    with pytest.raises(InputError, match="1 times are given for 2"):
        graph.critical_path([1.0])


def test_chain_numbers_equal_names():
    graph = chain([unary("cos", 4), unary("cos", 4), unary("relu", 4)])
    assert [o.name for o in graph.ops] == ["cos", "cos2", "relu"]
    assert graph.edges == ((0, 1), (1, 2))


def test_mlp():
    graph = mlp([4, 8, 3], 2)
    assert [o.name for o in graph.ops] == ["fc1", "relu1", "fc2"]
    assert graph.inputs == ("x", "w1", "b1", "w2", "b2")
    assert graph.flops == (2 * 2 * 4 * 8 + 16) + 16 + (2 * 2 * 8 * 3 + 6)
    with pytest.raises(InputError, match="two widths"):
        mlp([4], 2)


def test_op_defaults_and_refusals():
    assert Op("a").intensity == float("inf")
    assert Op("a", nbytes_written=5.0).holds == 5
    with pytest.raises(InputError, match="holds"):
        Op("a", holds=float("nan"))
    with pytest.raises(InputError) as caught:
        Op("a", flops=-1, nbytes_read=float("inf"), family="none")
    assert [p.key for p in caught.value.problems] == ["flops", "nbytes_read", "family"]


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 8))
    reads = [draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else [] for i in range(count)]
    times = draw(st.lists(st.floats(0, 10), min_size=count, max_size=count))
    return OpGraph([op(f"o{i}", [f"o{j}" for j in before], [f"o{i}"]) for i, before in enumerate(reads)]), times


@given(graphs())
def test_critical_path_is_the_longest_of_all_paths(case):
    graph, times = case

    def longest(i):
        return times[i] + max((longest(j) for j in graph.predecessors[i]), default=0.0)

    path = graph.critical_path(times)
    assert path.length == max(longest(i) for i in range(len(times)))
    assert path.length == pytest.approx(sum(times[int(name[1:])] for name in path.ops))
