"""Each strategy is a type with its own options: all have an effect, and no other can be given."""

from dataclasses import fields

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution import MODES
from simperf.execution.session import Session
from simperf.programs import PROGRAMS
from simperf.programs.training import OPTIONS
from simperf.training.driver import train
from simperf.training.strategies import REPLICATED, STRATEGIES, TRAINED, has_option
from tests.training.strategies import CATALOG, job, layers, run, star

#: a value of each option that changes a run of a strategy that has it
CHANGES = {
    "algorithm": "pipelined-tree",
    "options": {"chunks": 3},
    "accumulate": 2,
    "every": 2,
    "bucket": 1e6,
    "first_bucket": 50e6,
    "overlap": False,
    "slowdown": 1.5,
    "broadcast": True,
    "bucket_view": False,
    "watched": True,
    "waits": ("batch", "sums", "loss"),
}
WORK = layers(forward=1e-3, nbytes_input=1e3, launch=100e-6)


def play(strategy, **options):
    if "options" in options:
        options["algorithm"] = "pipelined-tree"
    return run(star(4), WORK, batch=16, steps=4, loop=1e-3, strategy=strategy, **options).now


@pytest.mark.parametrize("option", CHANGES)
@pytest.mark.parametrize("strategy", REPLICATED)
def test_an_option_has_an_effect_or_cannot_be_given(strategy, option):
    value = CHANGES[option]
    if has_option(strategy, option):
        without = play(strategy, **({"options": {}} if option == "options" else {}))
        assert play(strategy, **{option: value}) != pytest.approx(without, rel=1e-6)
        return
    with pytest.raises(TypeError, match=option):
        STRATEGIES[strategy](**{option: value})
    m = Session(Simulation(star(2)))
    with pytest.raises(InputError) as caught:
        m.play(PROGRAMS["train"].function(m, strategy=strategy, **{option: value}))
    (problem,) = caught.value.problems
    assert (problem.key, problem.value) == (option, str(value))
    assert problem.message == f"{strategy} has no use for it"
    owners = [name for name in TRAINED if OPTIONS.names.get((STRATEGIES[name], option)) == option]
    assert problem.expected == f"{option} with strategy {' or '.join(owners)}, or no {option}"


def test_every_option_is_tried():
    options = {one.name for strategy in REPLICATED for one in fields(STRATEGIES[strategy])}
    assert options == set(CHANGES)


def test_all_of_them_at_once():
    m = Session(Simulation(star(2)))
    with pytest.raises(InputError) as caught:
        m.play(PROGRAMS["train"].function(m, strategy="naive", bucket=1e6, overlap=False, every=3))
    assert [problem.key for problem in caught.value.problems] == ["bucket", "overlap", "every"]
    with pytest.raises(InputError, match="exact: naive is one process"):
        run(star(2), WORK, strategy="naive", exact=False)


@pytest.mark.parametrize("name", sorted(MODES))
def test_modes_that_would_change_nothing_are_refused(name):
    """Strategies launch kernels, and make no call of a network that could be fused or captured."""
    m = Session(Simulation(star(2)), mode=MODES[name], profile=CATALOG.frontend("pytorch"))
    work = layers(launch=None)
    if name in ("eager", "synchronous", "scripted"):
        m.play(train(m, job(work, m.machine.gpus, batch=2)))
        eager = Session(Simulation(star(2)), profile=CATALOG.frontend("pytorch"))
        eager.play(train(eager, job(work, m.machine.gpus, batch=2)))
        assert (m.now == eager.now) == (name == "eager")
        return
    with pytest.raises(InputError, match=r"execution\.mode: training launches kernel by kernel") as caught:
        m.play(train(m, job(work, m.machine.gpus, batch=2)))
    assert caught.value.problems[0].expected == "eager, synchronous or scripted"
