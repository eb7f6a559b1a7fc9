"""What --vary takes, and the points that come of it."""

import numpy as np
import pytest

from simperf.errors import InputError
from simperf.study.axes import Axis, LatinHypercube, make_axes, make_points, parse_axis


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("program.gpus=8,16,32", (8, 16, 32)),
        ("program.nbytes=10..100 MB:4", ("10.0 MB", "40.0 MB", "70.0 MB", "100.0 MB")),
        ("program.nbytes=10 MB..100 MB:2", ("10.0 MB", "100.0 MB")),
        ("program.n=8..64:3", (8, 36, 64)),
        ("program.n=1..1000:4:log", (1, 10, 100, 1000)),
        ("program.x=0.5..1.5:3", (0.5, 1.0, 1.5)),
        ("program.n=1..4", (1, 2, 3, 4)),
        ("program.strategy=ddp,data-parallel", ("ddp", "data-parallel")),
        ('program.algorithm="ring","tree"', ("ring", "tree")),
        ("program.nbytes=1 MB,2 MB", ("1 MB", "2 MB")),
        ("program.overlap=true,false", (True, False)),
        ("program.sizes=[1, 2],[3, 4]", ([1, 2], [3, 4])),
        ("machine.use=dgx-1v", ("dgx-1v",)),
        ("program.t=1..5 us:3", ("1.0 us", "3.0 us", "5.0 us")),
        ("machine.link[0].bandwidth=10..100 GB/s:2", ("10.0 GB/s", "100.0 GB/s")),
    ],
)
def test_values_of_an_axis(text, values):
    assert parse_axis(text).values == values


@pytest.mark.parametrize(
    "text",
    ["program.n", "program.n=", "=1,2", "n=1,2", "program.n=1,,2", "program.x=5..1 MB:3", "program.x=0..1 MB:3:log",
     "program.x=1 MB..2 GB:3", "program.x=1..2 MB:1"],
)  # fmt: skip
def test_what_cannot_be_read(text):
    with pytest.raises(InputError, match="--vary"):
        parse_axis(text)


def test_all_that_is_wrong_comes_at_once():
    with pytest.raises(InputError) as caught:
        make_axes(["program.n", "program.k=1", "program.k=2"])
    assert len(caught.value.problems) == 2


def test_a_mapping_says_the_same_as_texts():
    given = {"program.n": np.array([1, 2]), "program.t": "1..5 us:2", "program.where": ["gpu0"]}
    texts = ["program.n=1,2", "program.t=1..5 us:2", "program.where=gpu0"]
    assert [axis.values for axis in make_axes(given)] == [axis.values for axis in make_axes(texts)]
    assert all(type(value) is int for value in make_axes(given)[0].values)


def test_grid_and_list():
    axes = make_axes(["a.x=1,2", "a.y=3,4"])
    assert [tuple(p.values()) for p in make_points(axes)] == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert [tuple(p.values()) for p in make_points(axes, "list")] == [(1, 3), (2, 4)]


def test_latin_hypercube_meets_every_part_of_every_range_once():
    axes = [parse_axis("a.x=0..1 MB"), parse_axis("a.n=1..100"), parse_axis("a.s=ring,tree")]
    points = make_points(axes, LatinHypercube(20), seed=3)
    shares = sorted(int(float(p["a.x"].split()[0]) * 20) for p in points)
    assert shares == list(range(20))
    assert sorted(p["a.s"] for p in points) == ["ring"] * 10 + ["tree"] * 10
    assert all(isinstance(p["a.n"], int) and 1 <= p["a.n"] <= 100 for p in points)
    assert points == make_points(axes, LatinHypercube(20), seed=3) != make_points(axes, LatinHypercube(20), seed=4)
    assert make_points(axes, "lhs") == make_points(axes, LatinHypercube(30)), "ten a key"


@pytest.mark.parametrize(
    ("texts", "design", "words"),
    [
        (["a.x=0..1 MB"], "grid", "how many points"),
        (["a.x=1,2", "a.y=1,2,3"], "list", "different lengths"),
        (["a.x=1,2"], "star", "no such design"),
    ],
)
def test_designs_that_do_not_fit(texts, design, words):
    with pytest.raises(InputError, match=words):
        make_points(make_axes(texts), design)


@pytest.mark.parametrize("points", [-1, 2.5, "7"])
def test_a_latin_hypercube_has_a_whole_number_of_points(points):
    with pytest.raises(InputError, match="whole number of points"):
        LatinHypercube(points)


def test_a_value_stays_inside_its_range():
    axis = Axis("a.x", low=1.0, high=100.0, unit="MB", log=True)
    assert axis.at(0.0) == "1.0 MB"
    assert axis.at(1.0) == "100.0 MB"
    assert axis.write(1e9) == "100.0 MB"
