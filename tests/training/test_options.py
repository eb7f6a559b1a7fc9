"""Options that a strategy does not have are refused: none is ignored (simperf.training.options)."""

from dataclasses import fields

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution import MODES
from simperf.execution.session import Session
from simperf.training.options import STRATEGIES, owners
from simperf.training.trainer import Training, train
from tests.training.strategies import CATALOG, layers, run, star

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
}
WORK = layers(forward=1e-3, nbytes_input=1e3, launch=100e-6)


def play(strategy, **options):
    if "options" in options:
        options["algorithm"] = "pipelined-tree"
    return run(star(4), WORK, batch=16, steps=4, loop=1e-3, strategy=strategy, **options).now


@pytest.mark.parametrize("option", CHANGES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_option_has_an_effect_or_is_refused(strategy, option):
    value = CHANGES[option]
    if strategy in owners(option):
        without = play(strategy, **({"options": {}} if option == "options" else {}))
        assert play(strategy, **{option: value}) != pytest.approx(without, rel=1e-6)
        return
    with pytest.raises(InputError) as caught:
        Training(WORK, ("gpu0", "gpu1"), strategy=strategy, batch=4, **{option: value})
    (problem,) = caught.value.problems
    assert (problem.key, problem.value) == (option, str(value))
    assert problem.message == f"{strategy} has no use for it"
    assert problem.expected == f"{option} with strategy {' or '.join(owners(option))}, or without it"


def test_all_of_them_at_once():
    with pytest.raises(InputError) as caught:
        Training(WORK, ("gpu0", "gpu1"), strategy="naive", bucket=1e6, overlap=False, every=3, exact=False)
    assert [problem.key for problem in caught.value.problems] == ["bucket", "overlap", "every", "exact"]


def test_defaults_are_no_options():
    """What a strategy does not have may stand in a file as it is by default."""
    given = {one.name: one.default for one in fields(Training) if one.name in CHANGES and one.name != "options"}
    for strategy in STRATEGIES:
        Training(WORK, ("gpu0",), strategy=strategy, **given)


@pytest.mark.parametrize("name", sorted(MODES))
def test_modes_that_would_change_nothing_are_refused(name):
    """Strategies launch kernels, and make no call of a network that could be fused or captured."""
    m = Session(Simulation(star(2)), mode=MODES[name], profile=CATALOG.frontend("pytorch"))
    work = layers(launch=None)
    if name in ("eager", "synchronous", "scripted"):
        m.play(train(m, Training(work, m.machine.gpus, batch=2)))
        eager = Session(Simulation(star(2)), profile=CATALOG.frontend("pytorch"))
        eager.play(train(eager, Training(work, m.machine.gpus, batch=2)))
        assert (m.now == eager.now) == (name == "eager")
        return
    with pytest.raises(InputError, match=r"execution\.mode: training launches kernel by kernel") as caught:
        m.play(train(m, Training(work, m.machine.gpus, batch=2)))
    assert caught.value.problems[0].expected == "eager, synchronous or scripted"
