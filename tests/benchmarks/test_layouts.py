"""Speed of a search of layouts: memory and bounds of 2,000 layouts of a 405B model on 2,048 GPUs, and the search.

The baseline beside them is a pass through arrays in Python, as all of them are made of: a figure over it, which is of
the same run, does not depend on what else the computer does. The first test of each kind is small unless benchmarks
are enabled.

The search as a whole took 173 s of one busy core in November 2026: 15 s for memory and bounds of 2,079 layouts, 1 s for
the tighter bounds of six, 57 and 28 s for the two that ran to their end, 68 s for one that reached the limit of events,
and 4 s for three that are refused before they run. Context parallelism over servers takes the time: links are shared
there, so that each kernel is an event.
"""

import pytest

from simperf.run import session_of
from simperf.study.layouts import make_layouts, plan_layouts
from simperf.study.layouts.bounds import StepBounds
from simperf.study.layouts.scenarios import JobMaker
from simperf.study.layouts.weighing import weigh


@pytest.fixture
def asked(request):
    """All layouts of Llama 3 405B on 2,048 H100; a few of a small model without benchmarks."""
    if request.config.getoption("benchmark_enable", default=False):
        return make_layouts({"layouts": {"model": "llama3-405b", "on": "dgx-h100", "gpus": 2048}})
    few = {"cp": 1, "tp": [1, 2], "microbatch": 1}
    return make_layouts({"layouts": {"model": "tinyllama-1.1b", "on": "dgx-a100", "batch": 16, **few}})


def test_baseline(benchmark):
    """The baseline: a million additions to a dictionary's values."""

    def count():
        found = dict.fromkeys(range(1000), 0.0)
        for number in range(1_000_000):
            found[number % 1000] += 1.0
        return found

    benchmark.pedantic(count, rounds=1, iterations=1)


def test_memory_and_bounds_of_all_layouts(benchmark, asked):
    found = benchmark.pedantic(lambda: weigh(asked, asked.machines[0]), rounds=1, iterations=1)
    assert found.fitting
    benchmark.extra_info["layouts"] = found.layouts


def test_bounds_alone(benchmark, asked):
    """Bounds of layouts whose work is known: what Calculon (348 a second) counts."""
    found = weigh(asked, asked.machines[0])
    jobs = JobMaker(asked, asked.machines[0])
    scenario = jobs.scenario(found.fitting[0].choice)
    bounds = StepBounds(session_of(scenario), scenario.machine.workers[: asked.machines[0].gpus])
    known = [(jobs.job(one.choice), found.divided(one.choice)) for one in found.fitting[:200]]
    works = [(job, divided, divided.sample()) for job, divided in known]

    def every():
        return [bounds.time(*one) for one in works]

    times = benchmark.pedantic(every, rounds=1, iterations=1)
    assert times == [one.bound for one in found.fitting[:200]]
    benchmark.extra_info["layouts"] = len(times)


def test_search(benchmark, asked, request):
    """The fastest layout of all, on two processes."""
    engine = "local:2" if request.config.getoption("benchmark_enable", default=False) else "serial"
    found = benchmark.pedantic(lambda: plan_layouts(asked, engine=engine, cache=False), rounds=1, iterations=1)
    assert found.winner.step <= min(one.step for one in found.ranked)
    benchmark.extra_info["layouts"] = found.counts()["layouts"]
