"""Runs and studies that would have no end, or take all memory: refused at once with the number and what to change."""

import importlib
from dataclasses import replace

import pytest

import simperf
from simperf.collectives.plan_bounds import PlanBounds
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError
from simperf.programs import PROGRAMS
from simperf.programs.event_limit import refuse_many_events
from simperf.programs.parameters import uncounted
from simperf.training.replica import Layers
from simperf.training.servers.placement import place_keys

RUN = importlib.import_module("simperf.run")  # the package has a function of that name

#: command -> what the message says: where, how much, what would do
CASES = {
    "run d2l/async --set program.n=1000000000000": [
        "--set: program.n: about 2e+12 events would be simulated, more than 3e+06 (read: 1,000,000,000,000)",
        "n of at most 1,500,000; or --force",
    ],
    "run training/buckets --set program.steps=1000000000": ["--set: program.steps: about 4e+09", "steps of at most"],
    "run training/jitter-stragglers --set program.steps=1000000000": ["--set: program.steps: about 4.8e+10"],
    "run d2l/disks --set program.n=1000000000": ["--set: program.n: about 8e+09 events"],
    "run d2l/memory-bursts --set program.access=1e-30~B": ["--set: program.access: about", "access of at least 1.49 B"],
    "run training/checkpoint-by-hand --set program.interval=1e-30~s": [
        "program.interval: about 8e+32",
        "0.000267 s or more",
    ],
    "run training/checkpoint-by-hand --set program.work=1e30~s": ["program.work: about 2e+28", "a shorter run"],
    "run training/fail-llama3 --set program.runs=1000000000": ["program.runs: about 1.87e+12", "at most 1,5"],
    "run training/checkpoint-by-hand --set program.nodes=1000000000000": [
        "program.nodes: about 1e+12",
        "at most 3,000,",
    ],
    "run training/async-saturation --set program.slice_size=1e-30~B": ["program.slice_size: about", "at least"],
    "run d2l/async --samples 1000000000": ["--samples: 1,000,000,000 samples", "more than 10,000", "--force"],
    "run training/jitter-stragglers --samples 1000000000": ["--samples: 1,000,000,000 samples"],
    "sweep d2l/async --vary program.n=1..5 --samples 1000000000": ["--samples: 1,000,000,000 samples"],
    "sweep d2l/async --vary program.n=1..900 --samples 9999": ["900 points of 9,999 samples are 9,000,000 runs"],
    "sweep d2l/async --vary program.n=1..5:1000000000": ["--vary: program.n: 1,000,000,000 values", "1..5:1000000000"],
    "sweep d2l/async --vary program.n=1..900 --vary run.seed=1..900": [
        "--vary: 810,000 points are more than 100,000",
        "fewer values, or --design lhs with --points N; or --force",
    ],
    "sweep d2l/async --vary program.n=1..5 --design lhs --points 2000000": [
        "--points: 2,000,000 points are more than 100,000",
        "100,000 at most; or --force",
    ],
    "compare d2l/async --vary program.n=1..900 --vary run.seed=1..900": ["--vary: 810,000 points"],
    "limits d2l/async --vary program.n=1..9 --vary program.t1=1..2~us --trajectories 1000000000": [
        "--trajectories: 3,000,000,000 points"
    ],
}


@pytest.mark.parametrize("words", CASES)
def test_it_is_refused_before_it_begins(words, simperf):
    code, out, err = simperf(*(word.replace("~", " ") for word in words.split()))
    assert (code, out) == (2, "")
    for text in CASES[words]:
        assert text in err, err


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_defaults_of_a_program_are_within_the_limit(name):
    given = {key: one.default for key, one in PROGRAMS[name].parameters.items()}
    assert 0 <= PROGRAMS[name].events(given) < 1e6


@pytest.mark.parametrize("name", ["n", "steps", "batches", "passes", "times"])
def test_what_repeats_the_work_of_a_program_is_in_its_estimate(name):
    """Ten thousand times as many of them are more events, where a program has a parameter of that name."""
    counted = 0
    for spec in map(PROGRAMS.__getitem__, PROGRAMS.modules):
        given = {key: one.default for key, one in spec.parameters.items()}
        if name in given and not isinstance(given[name], str):  # a word says no number of repeats
            more = spec.events({**given, name: 10_000 * given[name]})
            assert more > 1000 * spec.events(given) / 2, (spec.name, name)
            counted += 1
    assert counted


@pytest.mark.parametrize(
    ("program", "given"),
    [
        ("async-chain", {"n": 3000}),
        ("what-blocks", {"n": 3000}),
        ("run-ahead", {}),
        ("additions", {"n": 3000}),
        ("stragglers", {"steps": 500}),
        ("epoch", {"samples": 256_000, "jitter": "lognormal"}),
    ],
)
def test_the_estimate_is_about_what_is_played(program, given):
    seen = []
    scenario = simperf.make_scenario({"machine": {"use": "p3-2xlarge"}, "program": {"use": program, **given}})
    simperf.run(scenario, watch=seen.append)
    played = next(seen[0].env._eid)
    assert 0.3 < scenario.program.events(scenario.parameters) / played < 3.0


def test_force_plays_it_and_checks_what_the_file_expects(simperf, monkeypatch):
    monkeypatch.setattr(RUN, "MOST_EVENTS", 1000)
    code, _, err = simperf("run", "d2l/async")
    assert code == 2
    assert "async.toml" in err, "the value is the file's"
    code, out, err = simperf("run", "d2l/async", "--force")
    assert code == 0
    assert "ok  time is as expected" in out


PLAN = """\
[plan]
model = "lenet"
samples = 100_000
deadline = "20 h"
[candidates]
instances = ["p3-2xlarge"]
nodes = [1]
batch_per_gpu = [32]
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Writes a plan's file, with changes, into the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def write(text="", **changes):
        whole = PLAN
        for old, new in changes.items():
            whole = whole.replace(old, new)
        (tmp_path / "plan.toml").write_text(whole + text)
        return "plan.toml"

    return write


def test_a_plan_says_the_number_before_it_begins(plan, simperf, monkeypatch):
    monkeypatch.setattr("simperf.study.planning.planner.run_tasks", None)
    many = plan(batch_per_gpu=f"batch_per_gpu = {[*range(1, 400)]}\n#", nodes=f"nodes = {[*range(1, 400)]}\n#")
    code, _, err = simperf("plan", many)
    assert code == 2
    assert "plan.toml:5: candidates: 159,201 candidates are more than 100,000" in err
    assert "--force (plan.force = true)" in err
    code, _, err = simperf("plan", plan(), "--samples", "1000000000")
    assert (code, "--samples: 1,000,000,000 samples" in err, "(plan.force = true)" in err) == (2, True, True)
    often = plan('[failures]\nnode_mtbf = "1000 h"\nruns = 1000000000\n')
    code, _, err = simperf("plan", often)
    assert code == 2
    assert "plan.toml:11: failures.runs: histories of about" in err
    assert "at most" in err
    assert simperf("plan", plan('[failures]\nnode_mtbf = "1000 h"\nruns = 320000\n'))[0] == 2


def test_force_plays_candidates_of_a_plan_however_many_events_they_have(plan, simperf, monkeypatch):
    monkeypatch.setattr(RUN, "MOST_EVENTS", 10)
    code, _, err = simperf("plan", plan(), "--no-cache")
    assert code == 2
    assert "events" in err
    assert "--force" in err
    code, out, err = simperf("plan", plan(), "--no-cache", "--force", "--explain", "1")
    assert (code, "p3-2xlarge" in out) == (0, True), err
    head = plan(deadline="force = true\ndeadline")
    assert simperf("plan", head, "--no-cache")[0] == 0
    code, _, err = simperf("plan", plan(deadline='force = "x"\ndeadline'), "--no-cache")
    assert "plan.force: true or false is expected" in err


def test_force_plays_a_collective_of_too_many_sends(simperf, monkeypatch):
    small = PlanBounds(crossings=50, events=10, memory=1.0)
    monkeypatch.setattr("simperf.study.collective.comparison.ASKED", small)
    monkeypatch.setattr("simperf.study.collective.comparison.SURVEY", small)
    words = ["collective", "all-reduce", "--topology", "star", "--ranks", "8", "-b", "1M", "-e", "1M"]
    words += ["--background", "r0>r1=0.1 GB/s", "--algo"]  # without it a round is played once
    code, _, err = simperf(*words, "sharded")
    assert code == 2
    assert "--algo: " in err
    assert "or --force, which simulates it all the same" in err
    code, out, _ = simperf(*words, "sharded", "--force")
    assert (code, "sharded" in out) == (0, True)
    code, out, err = simperf(*words, "all")
    assert "--algo sharded grants it more, and --force all" in out + err
    code, out, err = simperf(*words, "all", "--force")
    assert "--force" not in out + err


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("--vary speed.zzz=1..:3", "--vary: speed.zzz"),
        ("--vary program.zzz=1..5 --vary program.n=1..5", "--vary: program.zzz"),
        ("--vary program.n=1..5", "--vary: two ranges or more are expected"),
        ("--crossover program.zzz=1..5", "--crossover: program.zzz"),
        ("--crossover program.n=1,2", "--crossover: program.n: a range is expected"),
        ("--engine abacus:3", "--engine: unknown engine 'abacus'"),
        ("--engine local:0", "--engine: the engine cannot be read"),
        ("--samples 1000000", "--samples: 1,000,000 samples"),
        ("--faster 0.5", "--faster: a factor above 1 is expected"),
    ],
)
def test_what_limits_is_not_asked_before_all_is_known_to_be_right(words, place, simperf, monkeypatch):
    monkeypatch.setattr("simperf.cli.terminal.play", None)
    code, out, err = simperf("limits", "d2l/async", *words.split())
    assert (code, out) == (2, "")
    assert place in err


def test_what_no_estimate_tells_ends_at_the_limit(monkeypatch):
    monkeypatch.setattr(RUN, "MOST_EVENTS", 1000)
    scenario = simperf.load_scenario("d2l/async")
    silent = replace(scenario, program=replace(scenario.program, events=uncounted))
    with pytest.raises(ProgramError, match=r"1,000 events are simulated, the clock is at .* --force"):
        simperf.run(silent)
    assert simperf.run(silent, set={"run.force": True}).time == pytest.approx(0.20002)


def test_a_simulation_counts_its_events_only_where_it_is_told_to():
    def ticks(env, count):
        for _ in range(count):
            yield env.timeout(1.0)

    free = Simulation()
    assert free.run(free.env.process(ticks(free.env, 100))) == 100.0
    held = Simulation(most=50)
    with pytest.raises(ProgramError, match="50 events are simulated, the clock is at 4"):
        held.run(held.env.process(ticks(held.env, 100)))
    enough = Simulation(most=500)
    done = enough.env.process(ticks(enough.env, 100))
    assert enough.run(done) == enough.run(done) == 100.0


def test_a_program_of_ones_own_may_say_nothing_of_its_events():
    refuse_many_events(PROGRAMS["training-step"], {}, RUN.MOST_EVENTS)
    scenario = simperf.make_scenario({"machine": {"use": "p3-2xlarge"}, "program": {"use": "training-step"}})
    assert scenario.program.events(scenario.parameters) == 0.0


def test_slices_without_number_are_refused_by_their_size():
    with pytest.raises(InputError, match=r"slice_size: 1e\+32 slices are more than 1,000,000"):
        place_keys([100.0], servers=1, slice_size=1e-30)


# Values that gave an answer which cannot be.

WRONG = {
    "run training/overlap --set program.states=-1": ["--set: program.states: it cannot be negative"],
    "run training/epoch-imagenet --set program.disk=nvme7": ["--set: program.disk: the machine has no disk", "ebs0"],
    "run d2l/async --set program.jitter=1e18": ["--set: program.jitter: no time is negative", "0 to 1"],
    "run training/checkpoint-by-hand --set program.storage=0~GB/s": ["program.storage: above 0 B/s", "without the key"],
    "run measured/byteps-100g-pcie --set program.batch=0": ["--set: program.batch: a sample or more a GPU is expected"],
    "run training/async-saturation --set program.uneven=1e18": ["--set: program.uneven: a spread from 0 to 10"],
    "run training/async-saturation --set program.servers=1000000000000": ["program.servers: at most 100,000 servers"],
    "run training/slowed-kernels --set program.slowdown=1e18": ["--set: program.slowdown: kernels get slower", "1e15"],
}


@pytest.mark.parametrize("words", WRONG)
def test_it_is_refused_by_its_key(words, simperf):
    code, out, err = simperf(*(word.replace("~", " ") for word in words.split()))
    assert (code, out) == (2, "")
    for text in WRONG[words]:
        assert text in err, err


def test_a_bandwidth_so_small_that_it_is_nearly_none_takes_nearly_for_ever():
    slow = simperf.run("training/checkpoint-by-hand", set={"program.storage": "1 B/s", "program.fails_at": []})
    assert slow.time > 1e10


def test_a_link_that_is_never_slow_loses_no_time():
    result = simperf.run("training/jitter-link-flap", variant="a good link")
    assert result.metrics["time lost"].value == 0.0


def test_layers_in_python_are_held_to_the_same():
    with pytest.raises(InputError, match="states: states of the optimizer"):
        Layers(2, 1e-3, 2e-3, 1e6, states=-1.0)
