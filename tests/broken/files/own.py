"""Programs that go wrong, each in its own way."""

from simperf.execution import launch, run, synchronize
from simperf.workload import Op, OpGraph


def plain(m, *, n: int = 1):
    return n


def work(m, *, n: int = 1):
    for _ in range(n):
        yield launch(m.no_such_thing, m.gpu())


def odd(m):
    yield "a text"


def bare(m, *, n):
    yield synchronize(m.gpu())


def cycle(m):
    graph = OpGraph([Op("a", inputs=("y",), outputs=("x",)), Op("b", inputs=("x",), outputs=("y",))])
    yield run(m.module(graph), m.gpu())
