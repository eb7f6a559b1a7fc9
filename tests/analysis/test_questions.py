"""regime, overlap, limits, comparison and check: one small timeline a claim."""

import math

import pytest

from simperf.analysis.check import check, lookup
from simperf.analysis.comparison import compare
from simperf.analysis.limits import activities, busiest, headroom, utilisation
from simperf.analysis.overlap import overlap
from simperf.analysis.regime import REGIMES, busy, regime
from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Recorder, Span
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, UnknownNameError
from simperf.execution import MODES, launch, synchronize
from simperf.execution.session import Session
from simperf.results import Metric, ResourceUse, Result


def chain(launch_time, kernel_time, *, mode="eager", category="compute", count=50):
    """A run of the real engine: `count` kernels, one after another."""
    recorder = Recorder()
    session = Session(Simulation(recorder=recorder), mode=MODES[mode])

    def program(m):
        for _ in range(count):
            yield launch(Kernel("k", kernel_time, launch=launch_time, category=category), m.gpu())
        yield synchronize()

    time = session.play(program(session))
    resources = {"gpu0": ResourceUse("device", 1.0, count * kernel_time)}
    return Result(mode, time, resources=resources, spans=tuple(recorder.spans))


def spans(*rows):
    return tuple(Span(track, "x", start, end, category) for track, start, end, category in rows)


@pytest.mark.parametrize(
    ("result", "name"),
    [
        (chain(1e-6, 10e-6), "compute-bound"),
        (chain(1e-6, 10e-6, category="memory"), "memory-bound"),
        (chain(10e-6, 9e-6), "overhead-bound"),  # the device works for 90 % of the time, and yet:
        (chain(4e-6, 10e-6, mode="synchronous"), "compute-bound"),
        (chain(40e-6, 10e-6, mode="synchronous"), "overhead-bound"),
        (Result("r", 10.0, spans=spans(("gpu0/s", 0, 4, "compute"), ("gpu0/to gpu1", 2, 9, "communication"))),
         "communication-bound"),
        (Result("r", 10.0, spans=spans(("gpu0/s", 0, 4, "compute"), ("gpu0/s", 4, 9, "copy"))), "copy-bound"),
        (Result("r", 10.0, spans=spans(("ssd0", 0, 4, "storage"), ("cpu0/w", 4, 9, "host"), ("g/s", 0, 6, "memory"))),
         "input-bound"),
        (Result("r", 10.0, spans=spans(("ssd0", 0, 10, "storage"), ("gpu0/s", 1, 10, "compute"))), "compute-bound"),
        (Result("r", 10.0, spans=spans(("cpu0/python", 0, 9, "host"), ("gpu0/s", 0, 6, "compute"))), "overhead-bound"),
        (Result("r", 10.0, spans=spans(("gpu0/s", 0, 2, "compute"))), "idle"),
        (Result("r", 10.0), "idle"),
    ],
)  # fmt: skip
def test_regime(result, name):
    found = regime(result)
    assert found.name == name
    assert found.name in REGIMES
    assert 0 <= found.share <= 1


def test_regime_share_is_that_of_being_busy():
    result = chain(10e-6, 9e-6)
    assert regime(result).share == pytest.approx(500 / 509)
    assert busy(result)["compute"] == pytest.approx(450 / 509)


def test_overlap_splits_what_is_hidden_from_what_is_not():
    rows = spans(("gpu0/s", 0, 3, "compute"), ("gpu1/s", 5, 6, "memory"), ("gpu0/to gpu1", 2, 8, "communication"))
    found = overlap(Result("r", 8.0, spans=rows))
    assert (found.total, found.hidden, found.exposed) == (6.0, 2.0, 4.0)
    assert found.share == pytest.approx(1 / 3)
    assert overlap(Result("r", 8.0, spans=rows), "copy").share == 1.0


def test_busiest_names_a_link_before_an_idle_device_and_never_memory():
    resources = {
        "gpu0": ResourceUse("device", 1.0, 4.0),
        "gpu0>sw0": ResourceUse("link", 16e9, 120e9),
        "free": ResourceUse("link", math.inf, 1e12),
        "gpu0/memory": ResourceUse("memory", 16e9, 16e9),
    }
    result = Result("r", 10.0, resources=resources)
    assert busiest(result) == ("gpu0>sw0", "link", 0.75)
    assert utilisation(result) == {"gpu0/memory": 1.0, "gpu0>sw0": 0.75, "gpu0": 0.4, "free": 0.0}
    assert busiest(Result("r", 10.0)) is None


def test_a_thread_may_be_the_busiest():
    result = chain(10e-6, 9e-6)
    assert busiest(result)[:2] == ("cpu0/python", "thread")
    assert busiest(chain(9e-6, 10e-6))[:2] == ("gpu0", "device")
    assert activities(result) == [
        ("cpu0/python", "thread", pytest.approx(500 / 509)),
        ("gpu0", "device", pytest.approx(450 / 509)),
    ]


def test_a_device_with_small_kernels_is_at_work_all_the_time():
    resources = {"gpu0": ResourceUse("device", 1.0, 1.0), "gpu0>sw0": ResourceUse("link", 10.0, 50.0)}
    rows = spans(("gpu0/s0", 0, 10, "compute"), ("gpu0/s1", 2, 9, "copy"), ("ssd0", 0, 4, "storage"))
    result = Result("small", 10.0, resources=resources, spans=rows)
    assert busiest(result) == ("gpu0", "device", 1.0)
    assert activities(result)[1:] == [("gpu0 copies", "copy engine", 0.7), ("ssd0", "storage", 0.4)]
    assert utilisation(result)["gpu0"] == 0.1
    copies = Result("copies", 10.0, resources=resources, spans=rows[1:])
    assert busiest(copies) == ("gpu0 copies", "copy engine", 0.7)


def test_headroom():
    assert headroom(Result("r", 10.0, floors={"bandwidth": 5.0, "compute": 8.0})) == ("compute", 8.0, 1.25)
    assert headroom(Result("r", 10.0)) is None


def test_comparison_says_what_explains_the_difference():
    slow, fast = chain(4e-6, 10e-6, mode="synchronous"), chain(4e-6, 10e-6)
    found = compare(fast, slow)
    assert found.difference == pytest.approx(49 * 4e-6)
    assert found.ratio == pytest.approx(700 / 504)
    assert math.fsum(found.changes.values()) == pytest.approx(found.difference)
    assert found.explained_by == ("overhead", pytest.approx(49 * 4e-6))
    assert compare(slow, fast).explained_by[1] < 0
    assert compare(slow, slow).explained_by is None
    assert compare(Result("a", 1.0), Result("b", 2.0)).changes == {}


def test_check_accepts_the_ends_and_refuses_beyond():
    result = Result("r", 0.06, floors={"bandwidth": 0.05}, metrics={"rate": Metric(5.0, "1/s")})
    assert check(result, "time", value=0.06).ok
    assert check(result, "time", low=0.06, high=0.06).ok
    assert not check(result, "time", low=0.0600001).ok
    assert check(result, "floor.bandwidth", value=0.0500001, atol=1e-6).ok
    assert not check(result, "metrics.rate", value=5.1).ok
    with pytest.raises(InputError, match="empty"):
        check(result, "time", low=2.0, high=1.0)


def test_a_narrow_miss_is_shown_with_enough_digits():
    text = str(check(Result("r", 0.06), "time", value=0.060001, rtol=1e-9))
    shown, expected = text.split(": ")[1].split(", expected ")
    assert shown != expected


def test_lookup_knows_every_group_and_offers_the_nearest():
    result = chain(1e-6, 10e-6)
    assert lookup(result, "time") == (result.time, "s")
    assert lookup(result, "breakdown.compute") == (pytest.approx(500e-6), "s")
    assert lookup(result, "utilisation.gpu0") == (pytest.approx(500 / 501), "1")
    assert lookup(result, "floor") == (0.0, "s")
    with pytest.raises(UnknownNameError, match=r"breakdown\.compute"):
        lookup(result, "breakdown.comput")
