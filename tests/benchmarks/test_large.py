"""Large inputs: thousands of servers, hundreds of thousands of spans, beside plain work of the same size.

pytest tests/benchmarks/test_large.py --benchmark-enable --benchmark-columns=median
"""

from simperf.analysis.breakdown import breakdown
from simperf.engine.recorder import CATEGORIES, Span
from simperf.hardware import Catalog, build_cluster
from simperf.hardware.build import server_blueprint
from simperf.report.plots import draw
from simperf.results import Result

CATALOG = Catalog.load()
SPANS = tuple(
    Span(f"gpu{i % 4}/stream0", "op", i * 1e-5, i * 1e-5 + 2.5e-5, CATEGORIES[i % len(CATEGORIES)])
    for i in range(100_000)
)


def test_sorting_a_hundred_thousand_numbers(benchmark):
    """The baseline: what Python needs to sort the spans' starts and ends."""
    ends = [time for span in SPANS for time in (span.end, span.start)]
    assert benchmark(sorted, ends)[0] == 0.0


def test_breakdown_of_a_hundred_thousand_spans(benchmark):
    result = Result("many", 1.0, spans=SPANS)
    assert abs(sum(benchmark(breakdown, result).values()) - 1.0) < 1e-9


def test_picture_of_a_hundred_thousand_spans(benchmark):
    result = Result("many", 1.0, spans=SPANS)
    assert benchmark.pedantic(draw, args=(result,), rounds=1, iterations=1).axes


def test_2048_servers_and_a_route_between_neighbours(benchmark):
    server_blueprint("dgx-h100", CATALOG)

    def build():
        machine = build_cluster(
            "dgx-h100", 2048, catalog=CATALOG, fabric="fat-tree", link="infiniband-ndr", servers_per_leaf=32
        )
        gpus = machine.gpus
        for a, b in zip(gpus[::8], gpus[8::8], strict=False):
            machine.route(a, b)
        return len(gpus)

    assert benchmark.pedantic(build, rounds=3, iterations=1) == 16384
