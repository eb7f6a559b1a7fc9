"""Every algorithm, proved by interpretation, with its volume and steps in closed form."""

from math import ceil, floor, log2

import numpy as np
import pytest

from simperf.collectives import ALGORITHMS, Plan, algorithms, make_plan, options_of
from simperf.collectives.plan import busiest, chunk_sizes
from simperf.collectives.plans.trees import balanced_tree, depths, in_order_trees
from simperf.errors import InputError, UnknownNameError
from simperf.testing import check_collective

NS = (*range(1, 18), 24, 31, 32, 33)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if not name.endswith(("/hierarchical", "/server-trees"))])
def test_algorithm_is_right(name):
    options = {"chunks": 5} if "chunks" in options_of(*name.split("/")) else {}
    check_collective(name, ns=NS, **options)


@pytest.mark.parametrize("inner", ["ring", "sharded", "halving-doubling", "binomial-tree", "pipelined-tree", "naive"])
@pytest.mark.parametrize("outer", ["ring", "double-binary-tree", "recursive-doubling", "multi-ring", "sharded"])
def test_any_inner_with_any_outer(inner, outer):
    for group in (1, 2, 4):
        check_collective("all-reduce/hierarchical", ns=(4, 8, 12, 20), group=group, inner=inner, outer=outer)


@pytest.mark.parametrize("name", [n for n in ALGORITHMS if "root" in options_of(*n.split("/"))])
def test_any_root(name):
    for root in (0, 1, 4, 6):
        check_collective(name, ns=(7,), root=root, refused=False)


@pytest.mark.parametrize(
    ("algorithm", "steps", "sent"),
    [
        ("ring", lambda n: 2 * (n - 1), lambda n: 2 * (n - 1) / n),
        ("bidirectional-ring", lambda n: 2 * (n - 1), lambda n: 2 * (n - 1) / n),
        ("sharded", lambda n: 2, lambda n: 2 * (n - 1) / n),
        ("naive", lambda n: 2, lambda n: n - 1),
        ("central", lambda n: 2, lambda n: n),
        ("binomial-tree", lambda n: floor(log2(n)) + ceil(log2(n)), lambda n: ceil(log2(n))),
        ("recursive-doubling", lambda n: floor(log2(n)) + (0 if n == 8 else 2), lambda n: log2(n) if n == 8 else 3),
        ("halving-doubling", lambda n: 2 * floor(log2(n)) + (0 if n == 8 else 2), None),
        ("pipelined-tree", lambda n: 64 + 2 * floor(log2(n)) - 1, lambda n: 3),
        ("double-binary-tree", None, lambda n: 2.0),
    ],
)
@pytest.mark.parametrize("n", [6, 8])
def test_closed_forms(algorithm, steps, sent, n):
    plan = make_plan("all-reduce", algorithm, nranks=n)
    if steps:
        assert plan.steps == steps(n)
    if sent:
        assert plan.sent == pytest.approx(sent(n))


@pytest.mark.parametrize("n", [2, 3, 7, 8, 31, 64, 100, 1000])
def test_two_trees_share_no_inner_rank_and_are_shallow(n):
    first, second = in_order_trees(n)
    inner = [set(tree[tree >= 0].tolist()) for tree in (first, second)]
    assert n < 3 or not inner[0] & inner[1]
    for tree in (first, second):
        assert int((tree < 0).sum()) == 1
        assert depths(tree).max() <= log2(n) + 1
        assert np.bincount(tree[tree >= 0]).max() <= 2


def test_a_tree_of_degree_one_is_a_chain():
    assert balanced_tree(4, root=2, degree=1).tolist() == [3, 0, -1, 2]


def test_double_binary_tree_sends_no_more_than_a_ring_of_any_size():
    for n in (3, 10, 65, 200):
        plan = make_plan("all-reduce", "double-binary-tree", nranks=n, chunks=2)
        assert busiest(plan.channels, n) <= 2.0


@pytest.mark.parametrize("n", [1, 3, 7, 1000])
def test_chunks_differ_by_one_unit_and_add_up(n):
    for nbytes in (0.0, 4.0, 100.0, 12345.0):
        sizes = chunk_sizes(np.arange(n), 1, n, nbytes=nbytes, unit=4.0)
        assert sizes.sum() == pytest.approx(nbytes)
        assert sizes.max() - sizes.min() <= 8.0
        assert np.all(sizes >= 0)


def test_a_plan_of_many_ranks_is_lazy():
    plan = make_plan("all-reduce", "ring", nranks=16_384)
    assert plan.nsends == 2 * 16_383 * 16_384
    assert isinstance(plan, Plan)


def first_round(*name, **options):
    """What is too large to be laid out is refused when it is, not when it is planned."""
    return make_plan(*name, **options).channels[0].phases[0].make(0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: make_plan("all-reduce", "rign", nranks=4), UnknownNameError, "did you mean 'ring'"),
        (lambda: make_plan("allreduce", "ring", nranks=4), UnknownNameError, "did you mean 'all-reduce'"),
        (lambda: make_plan("all-reduce", "ring", nranks=0), InputError, "at least one rank"),
        (lambda: make_plan("all-reduce", "ring", nranks=-3), InputError, "at least one rank"),
        (lambda: make_plan("all-reduce", "ring", nranks=4, chunks=3), InputError, "no option 'chunks'"),
        (lambda: make_plan("all-reduce", "pipelined-tree", nranks=4, chunks=0), InputError, "at least one chunk"),
        (lambda: make_plan("all-reduce", "pipelined-tree", nranks=4, degree=0), InputError, "at least one child"),
        (lambda: make_plan("broadcast", "naive", nranks=4, root=4), InputError, "none of the ranks"),
        (lambda: make_plan("reduce-scatter", "halving-doubling", nranks=6), InputError, "power of two"),
        (lambda: make_plan("all-reduce", "ring", nranks=3, order=[0, 1, 1]), InputError, "each of the 3 ranks once"),
        (lambda: make_plan("all-reduce", "multi-ring", nranks=3, channels=0), InputError, "at least one ring"),
        (lambda: make_plan("all-reduce", "multi-ring", nranks=3, weights=[1.0]), InputError, "as many weights"),
        (lambda: make_plan("all-reduce", "sharded", nranks=3, servers=-1), InputError, "negative"),
        (lambda: first_round("all-reduce", "sharded", nranks=100_000), InputError, "sends at once"),
        (lambda: first_round("all-to-all", "direct", nranks=100_000), InputError, "sends at once"),
        (lambda: make_plan("all-reduce", "hierarchical", nranks=8), InputError, "needs this option"),
        (lambda: make_plan("all-reduce", "hierarchical", nranks=6, group=4), InputError, "servers of 4"),
        (lambda: make_plan("all-reduce", "hierarchical", nranks=8, group=4, inner="bruck"), UnknownNameError, "inner"),
        (lambda: make_plan("all-reduce", "hierarchical", nranks=8, group=4, outer="central"), InputError, "servers"),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_every_collective_has_an_algorithm():
    from simperf.collectives import COLLECTIVES

    assert all(algorithms(name) for name in COLLECTIVES)


@pytest.mark.parametrize("heads", [(0,), (0, 2), (1, 2, 3)])
def test_trees_and_switches_of_servers(heads):
    for name in ("server-trees", "in-network"):
        check_collective(f"all-reduce/{name}", ns=(4, 8, 12, 20), group=4, heads=heads, chunks=3, refused=False)


def test_a_chain_without_overlap():
    check_collective("all-reduce/pipelined-tree", ns=(2, 3, 8), degree=1, overlap=False, chunks=4, refused=False)
    assert make_plan("all-reduce", "pipelined-tree", nranks=8, degree=1, overlap=False, chunks=4).steps == 2 * (4 + 6)
