"""The lesson that runs torch beside the prediction: what it measures, and that both agree on a quiet computer."""

import os
import runpy
from types import SimpleNamespace

import pytest

import simperf
from simperf.teach import find_lesson

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("marimo", reason="marimo is not installed")
LESSON = find_lesson("reality")


@pytest.fixture(scope="module")
def notebook():
    return runpy.run_path(str(LESSON.notebook))


def _tried(notebook, size, n, t1):
    """What a try measures, how far each prediction is off [1], and the gain by the queue, measured and expected."""
    measured = notebook["reality"](n, size, t1)
    times = {name: measured[name] for name in ("t1", "t2")}
    free = {"launch": "0 s", "result": "0 s", "depth": "unlimited"}
    off = {}
    for mode in ("synchronous", "eager"):
        predicted = simperf.simulate(notebook["program"], frontend=free, mode=mode, n=n, **times)
        off[mode] = predicted.time / measured[mode] - 1
    gain = measured["synchronous"] / measured["eager"]
    return measured, off, gain, sum(times.values()) / max(times.values())


@pytest.mark.parametrize("size", [256, 512])
def test_the_loops_take_no_less_than_their_parts(notebook, size):
    n, t1 = 20, 4e-3
    measured, *_ = _tried(notebook, size, n, t1)
    assert measured["t1"] >= t1
    assert measured["t2"] > 0
    assert min(measured["synchronous"], measured["eager"]) >= n * t1


def test_prediction_and_reality_meet(notebook):
    load, cores = os.getloadavg()[0], os.cpu_count()
    if load > cores:
        pytest.skip(f"the computer is busy with something else: a load of {load:.1f} on {cores} cores")
    tries = [_tried(notebook, 512, 20, 4e-3)[1:] for _ in range(5)]
    assert any(max(map(abs, off.values())) < 0.2 and gain > 1 + (best - 1) / 2 for off, gain, best in tries), tries


def test_the_page_shows_both_and_the_difference(notebook):
    """After a prediction, as of every lesson."""
    kept = {"prediction": "200 ms", "settings": {}}
    outputs, names = notebook["app"].run(defs={"language": SimpleNamespace(value="en"), "kept": kept})
    assert {"t1", "t2", "synchronous", "eager"} <= set(names["measured"])
    table = next(output.text for output in outputs if output is not None and "difference" in output.text)
    assert table.count("%") == 2
    assert "not installed" not in table
