"""Classes of like ranks are an equitable partition, and the coarsest one that symmetry leaves."""

import itertools
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from simperf.layout import Layout, Mesh, rank_classes


@given(st.tuples(*[st.integers(1, 3)] * 3), st.data())
def test_like_ranks_have_like_groups(sizes, data):
    mesh = Mesh(("tp", "dp", "pp"), sizes)
    looks = data.draw(st.lists(st.integers(0, 1), min_size=mesh.size, max_size=mesh.size))
    found = rank_classes(looks, [mesh.groups(name) for name in mesh.dimensions])
    assert sorted(itertools.chain.from_iterable(found.members)) == list(range(mesh.size))
    for number, members in enumerate(found.members):
        assert {found.of[rank] for rank in members} == {number}
        assert len({looks[rank] for rank in members}) == 1
        for name in mesh.dimensions:
            inside = [Counter(found.of[rank] for rank in mesh.group(each, name)) for each in members]
            assert all(one == inside[0] for one in inside)


@given(st.tuples(*[st.integers(1, 3)] * 3), st.data())
def test_turning_a_mesh_keeps_classes(sizes, data):
    """Ranks that a symmetry of the mesh exchanges are never told apart."""
    mesh = Mesh(("tp", "dp", "pp"), sizes)
    stage = [mesh.coordinates(rank)["pp"] for rank in range(mesh.size)]
    found = rank_classes(stage, [mesh.groups(name) for name in mesh.dimensions])
    assert len(found) == sizes[2], "one class a stage"


def test_a_straggler_splits_its_groups_only():
    mesh = Layout(dp=4, tp=8, pp=2).mesh
    looks = [(mesh.coordinates(rank)["pp"], rank == 3) for rank in range(mesh.size)]
    found = rank_classes(looks, [mesh.groups(name) for name in mesh.dimensions])
    assert sorted(map(len, found.members)) == [1, 1, 3, 3, 7, 7, 21, 21]


def test_ranks_without_a_group():
    found = rank_classes("aaaa", [((0, 1),), ((2, 3),)])
    assert found.members == ((0, 1), (2, 3))
    assert len(rank_classes([])) == 0
