"""Data loaders of uneven speed: a step waits for the slowest of them (simperf.training.data_loaders)."""

from itertools import islice

import pytest

from simperf.analysis.regime import regime
from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.results import Result
from simperf.training.data_loaders import Feeding
from simperf.training.driver import train
from simperf.training.jitter import Exponential, Gamma, stream
from tests.training.strategies import CATALOG, job, layers, metric, run, star

MEAN = 10e-3
#: nothing but waiting for data
NOTHING = layers(1, backward=0.0, nbytes=0.0)


def waits(n, law, *, steps=300, workers=0, prefetch=1, seed=0, **options):
    """Mean step of n ranks with one sample each that do nothing but wait for their loaders."""
    m = Session(Simulation(star(n, bandwidth="1e9 GB/s", latency="0 s"), seed=seed))
    feeding = Feeding(MEAN, workers, prefetch, law)
    given = {"watched": True, **options}
    m.play(train(m, job(NOTHING, m.machine.gpus, batch=n, steps=steps, feeding=feeding, algorithm="ring", **given)))
    return m


@pytest.mark.parametrize("n", [1, 2, 8])
def test_a_step_waits_for_the_slowest_of_equal_loaders(n):
    """Order statistics: the mean of the longest of n exponential times is 1 + 1/2 + ... + 1/n of their mean."""
    m = waits(n, Exponential())
    draws = [stream(Exponential(), Simulation(seed=0).random(f"decode loader{rank} ")) for rank in range(n)]
    slowest = [MEAN * max(times) for times in islice(zip(*draws, strict=True), 300)]
    assert m.now == pytest.approx(sum(slowest), rel=1e-9), "all batches, the first as well"
    harmonic = sum(1 / k for k in range(1, n + 1))
    assert metric(m, "time per step") == pytest.approx(MEAN * harmonic, rel=4 * 1.3 / 300**0.5 / harmonic)


@pytest.mark.parametrize("strategy", ["ddp", "local-sgd"])
def test_running_ahead_is_between_one_loader_and_the_slowest_of_all(strategy):
    """Buffers even out what is uneven from batch to batch, never below the mean of one loader."""
    law = Gamma(cv=0.5)
    times = [
        metric(waits(8, law, workers=1, prefetch=prefetch, strategy=strategy), "time per step")
        for prefetch in (1, 2, 8, 64)
    ]
    bare = metric(waits(8, law, strategy=strategy), "time per step")
    assert times == sorted(times, reverse=True)
    assert MEAN * 0.97 < times[-1] < times[0] < bare
    assert bare > 1.5 * MEAN, "the longest of eight"


def test_a_process_that_never_looks_is_not_held_up_by_others():
    """Without a look at the loss the frontend runs ahead, and only the slowest loader's sum counts."""
    law = Gamma(cv=0.5)
    looks, runs = (metric(waits(8, law, watched=watched), "time per step") for watched in (True, False))
    assert MEAN < runs < 1.15 * MEAN < looks


def test_equal_loaders_cost_what_one_costs():
    m = run(star(4), layers(), feeding=Feeding(2e-3, workers=1, prefetch=1), steps=6)
    assert metric(m, "starved steps") == 0.0
    assert metric(m, "time per step") == pytest.approx(
        metric(run(star(4), layers(), steps=6), "time per step"), rel=1e-9
    )
    slow = run(star(4), layers(), feeding=Feeding(50e-3, workers=1, prefetch=1), steps=6)
    assert metric(slow, "time per step") == pytest.approx(50e-3, rel=1e-9)
    assert metric(slow, "starved steps") == pytest.approx(5 / 6)
    assert metric(slow, "waited for data, max over ranks") == pytest.approx(
        5 * 50e-3 - 5 * metric(m, "time per step"), rel=1e-6
    )


def test_loaders_share_the_cores_of_their_host():
    """A Xeon 8168 has 24 cores: four processes with 16 workers each want 64, and get a third of what they want."""
    feeding = Feeding(0.1, workers=16, prefetch=1)
    few = run(star(1), layers(), feeding=feeding, steps=160)
    many = run(star(4), layers(), feeding=feeding, steps=160)
    cores = few.machine.cores("cpu0")
    assert metric(few, "time per step") == pytest.approx(0.1 / 16, rel=0.1)
    assert metric(many, "time per step") == pytest.approx(4 * 0.1 / cores, rel=0.1)


def test_loaders_share_the_disk_of_their_server_and_starvation_is_named():
    machine = CATALOG.machine("p3-8xlarge")
    feeding = Feeding(1e-4, workers=2, disk="ebs0", stored=10e6)
    m = Session(Simulation(machine, recorder=Recorder()))
    m.play(train(m, job(layers(forward=1e-3), machine.gpus, batch=64, steps=30, feeding=feeding)))
    disk = machine.nodes["ebs0"].part.read_bandwidth
    assert metric(m, "time per step") == pytest.approx(64 * 10e6 / disk, rel=0.1)
    assert metric(m, "starved steps") > 0.25, "the others wait for those that do"
    assert regime(Result("run", m.now, spans=tuple(m.simulation.recorder.spans))).name == "input-bound"


@pytest.mark.parametrize(("decode", "name"), [(1e-3, "compute-bound"), (20e-3, "input-bound")])
@pytest.mark.parametrize("workers", [0, 2])
def test_starvation_by_decoding_alone_is_named(decode, name, workers):
    """Pictures that lie in memory and are decoded by few cores."""
    m = Session(Simulation(star(2), recorder=Recorder()))
    work, feeding = layers(forward=1e-3, launch=1e-6), Feeding(decode, workers)
    m.play(train(m, job(work, m.machine.gpus, batch=2, steps=20, feeding=feeding)))
    assert regime(Result("run", m.now, spans=tuple(m.simulation.recorder.spans))).name == name


@pytest.mark.parametrize("strategy", ["naive", "data-parallel"])
def test_one_process_has_one_loader_for_all_its_devices(strategy):
    m = run(star(4), layers(), feeding=Feeding(10e-3, workers=1), batch=8, strategy=strategy, steps=8)
    assert metric(m, "time per step") == pytest.approx(80e-3, rel=1e-9), "eight samples by one worker"


def test_a_run_shorter_than_its_buffers_is_told():
    short = run(star(2), layers(), feeding=Feeding(1e-3, workers=4), steps=3)
    assert any("runs ahead by up to 8 mini-batches, and the run has 3" in note for note in short.notes)


def test_the_seed_decides():
    one, again, other = (metric(waits(4, Exponential(), steps=20, seed=seed), "time per step") for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": 2}, "nothing to decode or to read"),
        ({"workers": -1}, "workers: 0 or more"),
        ({"decode": -1.0}, "decode: a time"),
        ({"workers": 1, "decode": 1.0, "prefetch": 0}, "prefetch: 1 or more"),
        ({"stored": 1e3}, "name it"),
        ({"disk": "ebs0"}, "give stored"),
    ],
)
def test_what_feeds_nothing(given, words):
    with pytest.raises(InputError, match=words):
        Feeding(**given)


def test_what_cannot_be():
    with pytest.raises(InputError, match="no disk 'ssd9'"):
        run(star(2), layers(), feeding=Feeding(disk="ssd9", stored=1e3))
    with pytest.raises(InputError, match="every rank has times of its own"):
        run(star(2), layers(), feeding=Feeding(1e-3), exact=False)
