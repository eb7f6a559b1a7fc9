"""Steps with noise, drawn along the dependences of one: those that every rank plays, and closed forms."""

import math
import re

import numpy as np
import pytest

import simperf
from simperf import Layout, ModelParallel, Transformer
from simperf.cli import main
from simperf.engine.kernel import Kernel
from simperf.errors import InputError
from simperf.training.jitter import Constant
from simperf.training.job import Disturbances, Job
from simperf.training.noise import Noise
from simperf.training.pipelined.meetings import meetings
from simperf.training.pipelined.noise_draws import ArrayNoise, RankNoise
from simperf.training.replica import Layers
from simperf.training.strategies import DataExchange, StageMessages
from simperf.training.variation import expected_deviation
from simperf.workload.routing import Routing

PLAIN = {"layers": 4, "hidden": 1024, "heads": 8, "vocabulary": 8192, "sequence": 512, "norm": "layer"}
DEEP = {**PLAIN, "layers": 8}
MIXED = {**PLAIN, "experts": 4, "experts_per_token": 2, "expert_ffn": 1024}


def trained(layout, strategy=None, *, on="dgx-a100", batch=8, model=PLAIN, seed=0, **options):
    given = {f"program.{key}": value for key, value in {"steps": 2, **options}.items()}
    return simperf.train(
        Transformer(**model),
        on=on,
        layout=layout,
        strategy=strategy or ModelParallel(),
        precision="bf16-master",
        batch=batch,
        set={"frontend.use": "pytorch", "run.seed": seed, "run.force": True, **given},
        record=False,
    )


def told(result):
    return [note for note in result.notes if "with noise" in note]


CASES = {
    "tensor, pipeline and data": (Layout(tp=2, pp=2, dp=2), None, {}),
    "bound by the host": (Layout(tp=2, pp=2, dp=2), None, {"model": {**PLAIN, "hidden": 128, "sequence": 128}}),
    "sharded states, gathered ahead": (
        Layout(tp=2, dp=4, sharding="zero-1"),
        ModelParallel(exchange=DataExchange(overlap_weights=True)),
        {},
    ),
    "interleaved": (
        Layout(pp=2, dp=4),
        ModelParallel(schedule="interleaved", chunks=2, messages=StageMessages(overlap=True)),
        {"batch": 16},
    ),
    "split backward": (Layout(tp=2, pp=4), ModelParallel(schedule="zb-h1"), {}),
    "processes that wait for messages": (
        Layout(pp=4, dp=2),
        ModelParallel(messages=StageMessages(synchronous=True)),
        {},
    ),
    "both ends of a pipeline": (Layout(tp=2, pp=4), ModelParallel(schedule="dualpipe"), {"batch": 16, "model": DEEP}),
    "fully sharded": (Layout(dp=8, sharding="zero-3"), None, {}),
    "long sequences": (Layout(tp=2, cp=2, dp=2), None, {}),
    "uneven experts": (Layout(ep=2, dp=4), ModelParallel(routing=Routing(load="power-law-1")), {"model": MIXED}),
    "several servers": (Layout(tp=4, pp=2, dp=2), None, {"on": "dgx-a100-x4"}),
}

#: those in which kernels are beside collectives, of which another part is beside them where devices differ
BESIDE = (
    "tensor, pipeline and data",
    "sharded states, gathered ahead",
    "both ends of a pipeline",
    "fully sharded",
    "several servers",
)


@pytest.mark.parametrize("name", list(CASES))
def test_a_drawn_step_is_the_one_that_every_rank_plays_with_the_same_devices(name):
    layout, strategy, options = CASES[name]
    drawn = trained(layout, strategy, variation="3 %", **options)
    every = trained(layout, strategy, variation="3 %", exact="yes", **options)
    mean = "time per step with noise, mean"
    slack = 3e-3 if name in BESIDE else 1e-9
    assert drawn.metrics[mean].value == pytest.approx(every.metrics[mean].value, rel=slack)
    assert drawn.metrics[mean].value > drawn.metrics["time per step"].value
    assert told(drawn) == ["1 step with noise is drawn beside the one that is simulated without"]


def test_what_shares_links_is_told_where_it_differs():
    layout, strategy = Layout(tp=4, dp=8, pp=1), ModelParallel(exchange=DataExchange(bucket=1e6))
    result = trained(layout, strategy, on="dgx-a100-x4", variation="3 %", batch=16)
    differs = re.search(r"differs? from it by ([\d.e-]+) %|differ by", told(result)[0])
    assert differs is None or float(differs[1]) < 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    "noise",
    [
        {"kernel_deviation": "20 %"},
        {"launch_deviation": "20 %", "kernel_deviation": "10 %"},
        {"jitter": "lognormal", "cv": "5 %"},
        {"interrupted_every": "20 ms", "interrupted_for": "200 us"},
    ],
    ids=["kernels", "launches", "jitter", "interruptions"],
)
def test_percentiles_of_drawn_steps_are_those_of_64_that_are_played(noise):
    layout, small = Layout(tp=2, pp=2), {**PLAIN, "layers": 2}
    drawn = trained(layout, noise_draws=1024, model=small, batch=4, **noise)
    every = trained(layout, exact="yes", model=small, batch=4, **noise | {"steps": 65})
    for part, slack in (("mean", 0.01), ("p50", 0.01), ("p99", 0.02)):
        name = f"time per step with noise, {part}"
        assert drawn.metrics[name].value == pytest.approx(every.metrics[name].value, rel=slack), part


def test_the_mean_of_interruptions_is_that_of_their_share():
    one = trained(Layout(), interrupted_every="1 ms", interrupted_for="100 us", noise_draws=256, batch=32, steps=1)
    plain, noisy = (one.metrics[name].value for name in ("stage 0: kernels", "time per step with noise, mean"))
    idle = one.metrics["time per step"].value - plain
    assert noisy - idle == pytest.approx(1.1 * plain, rel=0.01)


def test_a_step_of_many_ranks_is_the_longest_of_their_paces():
    layout, cv = Layout(dp=8), 0.02
    alone = trained(Layout(), batch=4, steps=1)
    result = trained(layout, batch=32, steps=1, jitter="normal", cv="2 %", noise_draws=2000)
    excess = result.metrics["time per step with noise, mean"].value - result.metrics["time per step"].value
    kernels = alone.metrics["stage 0: kernels"].value
    assert excess == pytest.approx(kernels * cv * expected_deviation(8, 8), rel=0.1)


def test_kernels_that_follow_each_other_are_one_sum():
    times = [3e-5, 1e-4, 2e-6, 5e-5] * 4
    disturbances = Disturbances(noise=Noise(kernels=0.2))
    many = ArrayNoise(disturbances, [1.0], 20_000, np.random.default_rng(1))
    drawn = many.kernels(sum(times), sum(time * time for time in times))[1:]
    one = RankNoise(disturbances.noise, 1.0, Constant(), 1e-6, np.random.default_rng(2))
    played = [sum(one.kernel(Kernel("k", time)).time for time in times) for _ in range(4000)]
    for found in (drawn, played):
        assert np.mean(found) == pytest.approx(sum(times), rel=2e-3)
        assert np.std(found) == pytest.approx(0.2 * math.hypot(*times), rel=0.04)


def test_one_seed_gives_the_same_draws():
    def percentiles(seed):
        result = trained(Layout(tp=2, pp=2), kernel_deviation="10 %", noise_draws=8, seed=seed)
        return [one.value for name, one in result.metrics.items() if "with noise" in name]

    assert percentiles(1) == percentiles(1) != percentiles(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_deviation": "40 %"}, "kernel_deviation: such a deviation"),
        ({"noise_draws": 8}, "nothing varies from step to step"),
        ({"noise_draws": 8}, "kernel_deviation or jitter, or no noise_draws"),
        ({"optimizer": "sgd"}, 'strategy = "ddp", or no optimizer'),
        ({"interrupted_every": "1 s"}, "interrupted_for: interruptions need it"),
        ({"interrupted_for": "1 s"}, "nothing is interrupted"),
        ({"kernel_deviation": "5 %", "noise_draws": 8, "exact": "yes"}, "steps = 8"),
        ({"kernel_deviation": "5 %", "noise_draws": 10**9, "force": False}, "numbers would be drawn"),
    ],
)
def test_what_has_no_meaning_is_refused(options, message):
    force = options.pop("force", True)
    with pytest.raises(InputError, match=re.escape(message)):
        simperf.train(
            Transformer(**PLAIN),
            on="dgx-a100",
            layout=Layout(tp=2),
            strategy=ModelParallel(),
            precision="bf16-master",
            batch=8,
            set={"run.force": force, **{f"program.{key}": value for key, value in options.items()}},
            record=False,
        )


def test_other_strategies_have_no_noise_of_kernels():
    with pytest.raises(InputError, match="model-parallel"):
        Job(Layers(2, 1.0, 1.0, nbytes=1e6), disturbances=Disturbances(noise=Noise(kernels=0.1)))


def test_ranks_meet_when_the_last_of_their_communicator_has_come():
    owner, column = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    found = meetings([(0, 3), (1, 2)], owner, column)
    ends = {}
    for process, times in ((0, [[1.0, 5.0]]), (1, [[2.0, 3.0]])):
        meeting, party = found[process]
        meeting.enter(0, party, np.array(times), 0.5, lambda when, at=process: ends.update({at: when.tolist()}))
    assert ends == {0: [[3.5, 5.5]], 1: [[5.5, 3.5]]}


def test_draws_of_what_does_not_vary_are_refused_once(capsys):
    assert main(["run", "large/straggler-in-a-pipeline", "--set", "program.noise_draws=4"]) == 2
    told = capsys.readouterr().err
    assert told.count("nothing varies") == 1
    assert "program.noise_draws: nothing varies" in told
