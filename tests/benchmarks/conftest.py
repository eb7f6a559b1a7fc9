"""How long things take, and on which machine the benchmarks ran."""

import gc
import math
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

import pytest

#: calls whose median is judged: of a single one, a collection of garbage or another process may be most
ROUNDS = 3


@pytest.fixture
def seconds(benchmark):
    """seconds(call) -> median time of a few calls [s], each after the garbage of others is gone, and what it gives.

    It is called once where benchmarks are disabled: nothing is judged by the time then.
    """

    def measure(call):
        times = []
        for _ in range(1 if benchmark.disabled else ROUNDS):
            gc.collect()
            start = time.perf_counter()
            result = call()
            times.append(time.perf_counter() - start)
        return median(times), result

    return measure


@pytest.fixture
def shown(benchmark):
    """shown(call, *makers) -> as `seconds`, and the time is the test's line in the table; not a number where disabled.

    Each maker gives an argument of the call, made anew for every call, which is not timed.
    """

    def measure(call, *makers):
        def prepare():
            made = tuple(make() for make in makers)
            gc.collect()
            return made, {}

        result = benchmark.pedantic(call, setup=prepare, rounds=ROUNDS)
        return math.nan if benchmark.disabled else benchmark.stats.stats.median, result

    return measure


def pytest_collection_modifyitems(config, items):
    """Run benchmarks with the tests that are marked long where they are not timed."""
    if not config.getoption("benchmark_enable", default=False):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.long)


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("benchmark_enable", default=False):
        return
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    packages = ", ".join(f"{name} {version(name)}" for name in ("simpy", "numpy"))
    python = platform.python_version()
    terminalreporter.write_line(f"machine: {os.cpu_count()} x {model}, Python {python}, {packages}")
