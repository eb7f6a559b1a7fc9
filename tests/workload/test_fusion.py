"""Fusion keeps the work and the results, and moves less (simperf.workload.fusion)."""

from hypothesis import given
from hypothesis import strategies as st

from simperf.workload import OpGraph, chain, fuse, mlp, product_plus_two
from simperf.workload.builders import cos_cos
from simperf.workload.kinds import binary, layernorm, matmul, softmax, unary

N = 1000
ARRAY = 4 * N


def test_cos_cos_moves_four_arrays_unfused_and_two_fused():
    before, after = cos_cos(N), fuse(cos_cos(N))
    assert before.nbytes == 4 * ARRAY
    assert after.nbytes == 2 * ARRAY
    assert after.flops == before.flops
    assert [op.name for op in after.ops] == ["cos+cos2"]
    assert after.outputs == before.outputs


def test_product_plus_two_moves_five_arrays_unfused_and_three_fused():
    assert product_plus_two(N).nbytes == 5 * ARRAY
    assert fuse(product_plus_two(N)).nbytes == 3 * ARRAY


def test_a_tensor_that_is_needed_elsewhere_stays():
    graph = OpGraph(
        [
            unary("cos", N).named("a", ["x"]),
            unary("cos", N).named("b", ["a"]),
            softmax(10, N // 10).named("c", ["a"]),
        ],
        ["x"],
    )
    assert fuse(graph) == graph


def test_a_tensor_that_is_kept_stays():
    graph = cos_cos(N)
    assert fuse(graph, keep=["cos.out"]) == graph


def test_epilogue_joins_the_product():
    graph = mlp([64, 64, 64], 32)
    after = fuse(graph)
    assert [op.name for op in after.ops] == ["fc1+relu1", "fc2"]
    assert graph.nbytes - after.nbytes == 2 * 4 * 32 * 64
    first = after.ops[0]
    assert (first.family, first.gemm, first.inputs) == ("gemm", graph.ops[0].gemm, ("x", "w1", "b1"))
    assert fuse(graph, epilogues=False).ops == graph.ops


def test_residual_epilogue_reads_the_residual():
    graph = OpGraph(
        [matmul(10, 10, k=10).named("y", ["x", "w"]), binary("add", 100).named("z", ["y", "r"])], ["x", "w", "r"]
    )
    after = fuse(graph)
    assert after.nbytes == 4 * (100 + 100 + 100 + 100)
    assert after.ops[0].inputs == ("x", "w", "r")


def test_one_product_at_most_in_a_kernel():
    graph = OpGraph(
        [
            matmul(10, 10, k=10).named("a", ["x", "w"]),
            matmul(10, 10, k=10).named("b", ["x", "v"]),
            binary("add", 100).named("c", ["a", "b"]),
        ],
        ["x", "w", "v"],
    )
    assert [op.family for op in fuse(graph).ops] == ["gemm", "gemm"]
    assert graph.nbytes - fuse(graph).nbytes == 4 * 200


def test_normalizations_and_broadcasts_are_not_joined():
    graph = chain([layernorm(10, 100), unary("relu", 1000), softmax(10, 100)])
    assert fuse(graph) == graph
    broadcast = chain([unary("cos", 10), unary("relu", 1000)])
    assert fuse(broadcast) == broadcast


def test_two_branches_join_and_a_shared_input_is_read_once():
    graph = OpGraph(
        [
            unary("cos", N).named("a", ["x"]),
            unary("sin", N).named("b", ["x"]),
            binary("add", N).named("c", ["a", "b"]),
        ],
        ["x"],
    )
    assert graph.nbytes == 7 * ARRAY
    assert fuse(graph).nbytes == 2 * ARRAY
    assert fuse(graph).ops[0].inputs == ("x",)


@st.composite
def programs(draw):
    ops, tensors = [], ["x0", "x1"]
    for i in range(draw(st.integers(1, 9))):
        pick = st.sampled_from(tensors)
        kind = draw(st.sampled_from(["unary", "binary", "matmul", "layernorm", "short"]))
        if kind == "unary":
            op = unary("cos", 64).named(f"t{i}", [draw(pick)])
        elif kind == "binary":
            op = binary("add", 64).named(f"t{i}", [draw(pick), draw(pick)])
        elif kind == "matmul":
            op = matmul(8, 8, k=8).named(f"t{i}", [draw(pick), draw(pick)])
        elif kind == "layernorm":
            op = layernorm(8, 8).named(f"t{i}", [draw(pick)])
        else:
            op = unary("relu", 32).named(f"t{i}", [draw(pick)])
        ops.append(op)
        tensors.append(f"t{i}")
    return OpGraph(ops, ["x0", "x1"]), draw(st.lists(st.sampled_from(tensors), max_size=2))


@given(programs())
def test_fused_never_moves_more_keeps_the_work_and_makes_the_same(case):
    graph, keep = case
    after = fuse(graph, keep=keep)
    assert after.nbytes <= graph.nbytes
    assert after.flops == graph.flops
    assert after.outputs == graph.outputs
    assert after.inputs == graph.inputs
    made = {tensor for op in after.ops for tensor in op.outputs}
    assert {tensor for tensor in keep if tensor not in graph.inputs} <= made
    assert sorted(part for op in after.ops for part in op.name.split("+")) == sorted(op.name for op in graph.ops)
    assert fuse(after, keep=keep).nbytes <= after.nbytes
    assert sum(op.holds for op in after.ops) <= sum(op.holds for op in graph.ops)
