"""Parameters of programs that would have no effect are refused with what would give them one."""

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.programs import PROGRAMS
from simperf.scenario import load_scenario, shipped_scenarios


def defaults_of(name):
    return {key: one.default for key, one in PROGRAMS[name].parameters.items()}


@pytest.mark.parametrize(
    ("program", "given", "keys"),
    [
        ("train", {"model": "lenet", "layers": 5, "weights": 1e6, "states": 2.0}, ["layers", "weights", "states"]),
        ("train", {"precision": "fp16", "optimizer": "adam"}, ["precision", "optimizer"]),
        ("train", {"devices": ["gpu0"], "gpus": 1}, ["gpus"]),
        ("train", {"prefetch": 4, "cv": 0.3, "decode": 1e-3, "decode_cv": 0.2}, ["prefetch", "cv", "decode_cv"]),
        ("train", {"batch": 64, "batch_per_gpu": 64}, ["batch"]),
        ("train", {"strategy": "naive", "bucket": 1e6, "algorithm": "nccl"}, ["algorithm", "bucket"]),
        ("train", {"decode_jitter": "gamma", "slow_share": 0.5}, ["decode_jitter", "slow_share"]),
        ("input-pipeline", {"decode_cv": 0.3}, ["decode_cv"]),
        ("parameter-server", {"model": "lenet", "weights": 1e6, "forward": 1e-3}, ["weights", "forward"]),
        ("parameter-server", {"precision": "fp16", "nodes": ["cpu0"], "servers": 3}, ["precision", "servers"]),
        (
            "parameter-server",
            {"ratio": 0.1, "codec_on": "cpu", "free_codec": True},
            ["ratio", "codec_on", "free_codec"],
        ),
        ("parameter-server", {"ratio": 0.1, "compression": "8-bit"}, ["ratio"]),
        ("parameter-server", {"placement": "sliced", "slice_size": 1e6, "duplex": False}, ["slice_size", "duplex"]),
        ("parameter-server", {"grouped": 7, "reduction": "gpu"}, ["grouped"]),
        ("parameter-server", {"family": "gamma", "slowdown": 2.0, "stored": 1e5}, ["family", "slowdown", "stored"]),
        ("parameter-server", {"batch": 0, "bound": 2, "precision": "fp16"}, ["batch", "bound", "precision"]),
        ("epoch", {"cv": 0.3, "prefetch": 3, "disk": "ebs0"}, ["cv", "prefetch"]),
        ("failing-job", {"shape": 0.5, "observed": 1e6, "storage": 1e9}, ["shape", "observed", "storage"]),
        ("failing-job", {"to_host": 1e9, "least": 2}, ["to_host", "least"]),
        ("stragglers", {"factor": 3.0, "asynchronous": True, "backup": 1}, ["factor", "backup"]),
        ("link-flaps", {"up": 1.0, "down": 0.1, "at": 1.0}, ["at"]),
    ],
)
def test_what_would_have_no_effect_is_refused(play, program, given, keys):
    with pytest.raises(InputError) as caught:
        play("p3-8xlarge", program, **given)
    assert sorted(problem.key for problem in caught.value.problems) == sorted(keys)
    assert all(problem.value for problem in caught.value.problems)


def test_nobody_waits_for_the_slowest_of_asynchronous_workers(catalog):
    m = Session(Simulation(catalog.machine("p3-8xlarge")))
    with pytest.raises(InputError, match="variation: nobody waits"):
        m.play(PROGRAMS["parameter-server"].function(m, variation=0.01, mode="asynchronous"))


RULED = [name for name in PROGRAMS if list(PROGRAMS[name].rules(defaults_of(name)))]


@pytest.mark.parametrize("name", RULED)
def test_rules_name_parameters_that_are_there(name):
    """A parameter that is misspelt in a rule would never be refused."""
    spec = PROGRAMS[name]
    assert {one for rule in spec.rules(defaults_of(name)) for one in rule.names} <= set(spec.parameters)


@pytest.mark.parametrize("name", RULED)
def test_defaults_are_always_right(name):
    assert not PROGRAMS[name].unused(defaults_of(name))


def test_shipped_scenarios_give_nothing_that_has_no_effect():
    """Each as it stands, which is what `simperf run` plays; its variants are played by the tests of the book."""
    found = []
    for name in shipped_scenarios():
        scenario = load_scenario(name)
        if scenario.program.name in RULED:
            values = defaults_of(scenario.program.name) | dict(scenario.parameters)
            found += [(name, problem.key) for problem in scenario.program.unused(values)]
    assert not found


def test_what_has_no_effect_is_known():
    layers = {"layers", "forward", "backward", "weights"}
    assert layers.isdisjoint(PROGRAMS["train"].idle({"jitter": "gamma"}))
    assert layers | {"cv"} <= PROGRAMS["train"].idle({"model": "lenet"})
    assert not PROGRAMS["async-chain"].idle({})


@pytest.mark.parametrize(
    ("program", "given"), [("train", {}), ("parameter-server", {"backward": 1e-3}), ("recommender", {"tables": [1000]})]
)
def test_a_mode_that_changes_nothing_is_refused(play, program, given):
    with pytest.raises(InputError, match="training launches kernel by kernel"):
        play("p3-8xlarge", program, mode="captured", **given)
