"""Says on which machine the benchmarks ran."""

import os
import platform
from importlib.metadata import version
from pathlib import Path


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("benchmark_enable", default=False):
        return
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.is_file() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    packages = ", ".join(f"{name} {version(name)}" for name in ("simpy", "numpy"))
    python = platform.python_version()
    terminalreporter.write_line(f"machine: {os.cpu_count()} x {model}, Python {python}, {packages}")
