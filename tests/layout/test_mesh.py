"""Meshes: coordinates, process groups, and Megatron-LM's order of ranks."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import InputError, UnknownNameError
from simperf.layout import DIMENSIONS, Layout, Mesh

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def mesh_of(sizes):
    return Mesh(tuple("abcd"[: len(sizes)]), tuple(sizes))


@given(SIZES, st.data())
def test_a_rank_and_its_coordinates_are_inverse(sizes, data):
    mesh = mesh_of(sizes)
    rank = data.draw(st.integers(0, mesh.size - 1))
    assert mesh.size == math.prod(sizes)
    assert mesh.rank(mesh.coordinates(rank)) == rank
    assert len({tuple(mesh.coordinates(each).values()) for each in range(mesh.size)}) == mesh.size


@given(SIZES, st.data())
def test_groups_partition_the_ranks(sizes, data):
    mesh = mesh_of(sizes)
    chosen = data.draw(st.lists(st.sampled_from(mesh.dimensions), unique=True))
    groups = mesh.groups(*chosen)
    assert sorted(itertools.chain.from_iterable(groups)) == list(range(mesh.size))
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)
    for group in groups:
        assert list(group) == sorted(group)
        assert len(group) == math.prod(sizes[mesh.dimensions.index(one)] for one in chosen)
        others = {tuple(v for k, v in mesh.coordinates(rank).items() if k not in chosen) for rank in group}
        assert len(others) == 1
        assert all(mesh.group(rank, *chosen) == group for rank in group)


def by_loops(sizes, order, dimension):
    """Groups of Megatron-LM, counted with nested loops: the first name of the order varies fastest."""
    names = order.split("-")
    places = itertools.product(*(range(sizes[name]) for name in reversed(names)))
    number = {place[::-1]: rank for rank, place in enumerate(places)}
    at = names.index(dimension)
    groups = {}
    for place, each in number.items():
        groups.setdefault((*place[:at], *place[at + 1 :]), []).append(each)
    return sorted(map(tuple, groups.values()))


@given(
    st.tuples(*[st.integers(1, 3)] * 4),
    st.permutations(DIMENSIONS),
)
def test_groups_follow_the_order_of_ranks(counts, order):
    sizes = dict(zip(("tp", "cp", "dp", "pp"), counts, strict=True)) | {"ep": 1}
    layout = Layout(**sizes, order=tuple(order))
    for name in ("tp", "cp", "dp", "pp"):
        assert list(layout.mesh.groups(name)) == by_loops(sizes, "-".join(order), name)
    expert = {**sizes, "ep": sizes["dp"] * sizes["cp"], "dp": 1, "cp": 1}
    spread = Layout(**{**sizes, "ep": expert["ep"]}, order=tuple(order)).expert_mesh
    for name in ("tp", "ep", "dp", "pp"):
        assert list(spread.groups(name)) == by_loops(expert, "-".join(order), name)


def test_the_groups_that_megatron_documents():
    """Megatron-LM, megatron/core/parallel_state.py, initialize_model_parallel: 16 GPUs, tp 2, pp 4."""
    mesh = Layout(dp=2, tp=2, pp=4).mesh
    tensor = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15))
    data = ((0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11), (12, 14), (13, 15))
    pipeline = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
    assert (mesh.groups("tp"), mesh.groups("dp"), mesh.groups("pp")) == (tensor, data, pipeline)


def test_what_is_no_mesh_and_what_is_outside():
    with pytest.raises(InputError, match="have one name"):
        Mesh(("a", "a"), (2, 2))
    with pytest.raises(InputError, match="2 dimensions have 1 sizes"):
        Mesh(("a", "b"), (2,))
    with pytest.raises(InputError, match="1 or more"):
        Mesh(("a",), (0,))
    mesh = Mesh(("tp", "dp"), (2, 2))
    with pytest.raises(UnknownNameError, match="did you mean 'tp'"):
        mesh.groups("tpp")
    with pytest.raises(InputError, match="0 to 3"):
        mesh.coordinates(4)
    with pytest.raises(InputError, match="outside of the mesh"):
        mesh.rank({"tp": 2})
