"""The input pipeline feeds a device, and starvation is seen and named."""

from itertools import pairwise

import pytest

from simperf.analysis.regime import regime
from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.hardware import Catalog
from simperf.programs import PROGRAMS
from simperf.results import Result
from simperf.training.input import InputPipeline, Samples
from simperf.training.jitter import distribution, stream


def run(step, workers, batches=40):
    """256 samples of 10 ms to decode: one core takes 2.56 s and the disk 0.23 s for a mini-batch."""
    m = Session(Simulation(Catalog.load().machine("p3-8xlarge"), recorder=Recorder()))
    time = m.play(PROGRAMS["input-pipeline"].function(m, disk="ebs0", step=step, workers=workers, batches=batches))
    return m, Result("run", time, spans=tuple(m.simulation.recorder.spans))


@pytest.mark.parametrize(
    ("step", "workers", "name"),
    [
        (0.35, 2, "input-bound"),  # a mini-batch every 1.4 s
        (1.20, 2, "input-bound"),  # not much too slow, but the device waits for a seventh of the time
        (0.90, 4, "compute-bound"),  # some worker is always busy, and yet nobody waits for them
        (2.00, 4, "compute-bound"),
    ],
)
def test_starvation_is_named(step, workers, name):
    m, result = run(step, workers)
    assert regime(result).name == name
    assert (m.metrics["starved steps"][0] > 0.2) == (name == "input-bound")
    assert (m.metrics["waited for data"][0] > 0.05 * result.time) == (name == "input-bound")


def test_prefetching_bridges_a_slow_start_but_not_a_slow_pace():
    m = Session(Simulation(Catalog.load().machine("p3-8xlarge")))
    pipeline = InputPipeline(m, Samples(256, 110e3, 602112, 10e-3), workers=4, prefetch=2, disk="ebs0", batches=8)

    def program():
        yield m.simulation.env.timeout(60.0)
        assert pipeline.fill == 8
        for _ in range(8):
            yield from pipeline.load(m.gpu(), m.gpu().stream(1))
        assert pipeline.fill == 0

    m.play(program())
    assert pipeline.starved == 0
    assert pipeline.waited == 0.0


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 1), (2, 1), (3, 2), (4, 3)])
@pytest.mark.parametrize("step", [0.2, 0.9, 2.0])
def test_mini_batches_come_in_order_as_from_torch(workers, prefetch, step):
    """Beside a recurrence: batch n is worker n mod w's, made after its last one and when n - p w was taken."""
    law, batches = distribution("lognormal", cv=0.8), 60
    m = Session(Simulation(Catalog.load().machine("p3-8xlarge"), seed=7))
    samples = Samples(100, 0.0, 0.0, 10e-3, law)
    pipeline = InputPipeline(m, samples, workers=workers, prefetch=prefetch, disk="", batches=batches)
    taken = []

    def program():
        for _ in range(batches):
            yield from pipeline.take()
            taken.append(m.now)
            yield m.simulation.env.timeout(step)

    m.play(program())
    draws = Session(Simulation(seed=7))
    factors = [stream(law, draws.rng(f"decode worker{index}")) for index in range(workers)]
    ends, expected, wanted = [], [], 0.0
    for number in range(batches):
        begin = ends[number - workers] if number >= workers else 0.0
        ahead = number - prefetch * workers
        begin = max(begin, expected[ahead] if ahead >= 0 else 0.0)
        ends.append(begin + 100 * 10e-3 * next(factors[number % workers]))
        expected.append(max(ends[number], wanted))
        wanted = expected[number] + step
    assert taken == pytest.approx(expected, rel=1e-9)
    out_of_order = sum(later < sooner for sooner, later in pairwise(ends))
    assert workers == 1 or out_of_order, "some were ready before those that come first"


def test_what_feeds_nothing():
    m = Session(Simulation(Catalog.load().machine("p3-8xlarge")))
    with pytest.raises(InputError, match=r"(?s)workers.*prefetch.*batch"):
        InputPipeline(m, Samples(0, 1.0, 1.0, 1.0), workers=0, prefetch=0, disk="ebs0")
    with pytest.raises(InputError, match="no disk 'disk9'"):
        InputPipeline(m, Samples(1, 1.0, 1.0, 1.0), workers=1, disk="disk9")
