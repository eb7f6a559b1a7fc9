"""Virtual speed-ups: all at once by x give exactly x; the known bottleneck ranks first."""

import math
from pathlib import Path

import pytest

from simperf import limits, load_scenario, make_scenario, run
from simperf.errors import InputError, SimperfError, UnknownNameError
from simperf.programs import PROGRAMS
from simperf.scenario import shipped_scenarios
from simperf.study.limits import percent, speed_tasks
from simperf.study.run_point import run_task
from simperf.study.virtual import PROTOCOLS, resources, speed_up

#: parameters by whose values the scenarios of a program differ in kind, not only in their numbers
KINDS = ("strategy", "algorithm", "reduction", "mode", "compression", "what", "law", "asynchronous", "disk", "jitter")
#: programs whose shipped scenarios differ in so many kinds that all of them take half a minute
MANY_VARIANTS = ("parameter-server",)
#: programs whose times are a recording's, which no resource of a machine makes
RECORDED = ("recorded-step",)
#: exponent of time in the units of metrics
POWERS = {"s": -1, "USD": -1, "1/s": 1, "B/s": 1, "FLOP/s": 1}


def kinds(program):
    """The shipped variant on the fewest GPUs of each kind of scenario with that program."""
    found = {}
    for path in shipped_scenarios().values():
        if f'use = "{program}"' not in path.read_text("utf-8"):
            continue
        scenario = load_scenario(path)
        for variant in scenario.variants or (scenario,):
            gpus = len(variant.machine.gpus) if variant.machine is not None else 0
            key = *(str(variant.parameters.get(name)) for name in KINDS), variant.mode, min(gpus, 2)
            fits = variant.program.name == program and not any(one.key == "error" for one in variant.expectations)
            if fits and gpus < found.get(key, (math.inf, None))[0]:
                found[key] = gpus, variant
    return [variant for _, variant in found.values()]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(name, marks=pytest.mark.long if name in MANY_VARIANTS else ())
        for name in PROGRAMS
        if name not in RECORDED
    ],
)
def test_everything_at_once_by_x_gives_exactly_x(program):
    """All of time passes x times as fast: times are divided by x, rates multiplied, and all else stays."""
    factor = 1.1
    for scenario in kinds(program):
        base = run(scenario, record=False)
        row = run_task(speed_tasks(scenario, resources(scenario), factor)[-1])
        where = f"{scenario.path} [{scenario.name}]"
        assert row["error"] is None, where
        assert row["time"] * factor == pytest.approx(base.time, rel=1e-9), where
        assert set(row["metrics"]) == set(base.metrics), where
        for name, metric in base.metrics.items():
            expected = metric.value * factor ** POWERS.get(metric.unit, 0)
            slack = 1e-9 * (base.time if metric.unit == "s" else 1e-3)  # differences of times that are almost equal
            assert row["metrics"][name][0] == pytest.approx(expected, rel=1e-9, abs=slack), f"{where}: {name}"


def test_nccl_s_constants_are_a_resource_wherever_its_tuner_plays():
    program = {"use": "train", "model": "resnet18", "batch": 64, "steps": 2}
    for algorithm in ("", "nccl", "nccl-ring"):
        scenario = make_scenario({"machine": {"use": "dgx-1v"}, "program": {**program, "algorithm": algorithm}})
        assert PROTOCOLS in {one.name for one in resources(scenario)}
        found = limits(scenario, cache=False)
        assert found.together.time * 1.1 == pytest.approx(found.result.time, rel=1e-9)
        (constants,) = (one for one in found.speed_ups if one.resource.name == PROTOCOLS)
        assert constants.change != 0
    ring = make_scenario({"machine": {"use": "dgx-1v"}, "program": {**program, "algorithm": "ring"}})
    assert PROTOCOLS not in {one.name for one in resources(ring)}


@pytest.mark.parametrize(
    "program",
    [
        {"use": "train", "devices": ["n0/cpu0", "n1/cpu0"], "batch": 4, "weights": "20 MB", "forward": "2 ms"},
        {"use": "sends", "source": "n0/cpu0", "target": "n1/cpu0", "nbytes": "5 MB", "n": 4},
    ],
)
def test_network_stacks_and_token_buckets_are_resources(program):
    port = {"bandwidth": "100 MB/s", "latency": "50 us", "burst": "2 MB", "peak": "300 MB/s"}
    fabric = {"type": "star", "switch": "ethernet-switch", **port}
    machine = {"server": "desktop-1gpu", "count": 2, "fabric": fabric, "network_stack": "linux-gloo"}
    scenario = make_scenario({"machine": machine, "program": program})
    assert "linux-gloo" in {one.name for one in resources(scenario)}
    found = limits(scenario, cache=False)
    assert found.together.time * 1.1 == pytest.approx(found.result.time, rel=1e-9)
    (stack,) = (one for one in found.speed_ups if one.resource.name == "linux-gloo")
    assert stack.change < 0


def test_hosts_that_share_cores_are_exactly_twice_as_fast():
    """Equal hosts ask for a core at the same instant; only a power of two leaves the order of such events alone."""
    hosts = [{"id": f"h{i}", "kind": "cpu", "server": f"h{i}"} for i in range(3)]
    wire = {"bandwidth": "50 MB/s", "burst": "1 MB", "peak": "200 MB/s"}
    links = [{"a": one["id"], "b": "switch", **wire} for one in hosts]
    nodes = [*hosts, {"id": "switch", "kind": "switch"}]
    machine = {"node": nodes, "link": links, "network_stack": "linux-gloo", "shared_cores": 2}
    program = {"use": "train", "devices": ["h0", "h1", "h2"], "batch": 6, "weights": "20 MB", "forward": "2 ms"}
    scenario = make_scenario({"machine": machine, "program": program})
    faster = speed_up(scenario, {one.name: 2.0 for one in resources(scenario)})
    assert run(faster, record=False).time * 2.0 == run(scenario, record=False).time


def test_nothing_made_faster_changes_nothing():
    for name in ("training/overlap", "d2l/copy-overlap"):
        scenario = load_scenario(name)
        scenario = (scenario.variants or (scenario,))[-1]
        assert run(speed_up(scenario, {}), record=False).time == run(scenario, record=False).time


@pytest.mark.parametrize(
    ("data", "first"),
    [
        ({"program": {"use": "async-chain", "n": 200, "t1": "1 us", "t2": "9 us"}}, "program.t2"),
        ({"program": {"use": "async-chain", "n": 200, "t1": "9 us", "t2": "1 us"}}, "program.t1"),
        (
            {
                "machine": {"use": "book-4gpu"},
                "program": {"use": "all-reduce", "nbytes": "160 MB", "algorithm": "naive"},
            },
            "book-pcie3-x16",
        ),
        (
            {"machine": {"use": "dgx-1v"}, "program": {"use": "two-devices", "size": 4096, "n": 5}},
            "v100-sxm2-16gb compute",
        ),
    ],
)
def test_the_known_bottleneck_ranks_first(data, first):
    found = limits(make_scenario(data), cache=False)
    assert found.limiting is not None
    assert found.limiting.resource.name == first
    assert found.together.time * 1.1 == pytest.approx(found.result.time, rel=1e-9)
    assert found.limiting.share > 0.8


def test_a_share_is_what_the_resource_has_of_the_time():
    data = {
        "execution": {"mode": "synchronous"},
        "program": {"use": "async-chain", "n": 50, "t1": "2 us", "t2": "5 us", "t3": "3 us"},
    }
    shares = {one.resource.name: one.share for one in limits(make_scenario(data), cache=False).speed_ups}
    total = 50 * (2 + 5 + 3) + 3  # the last result is fetched twice: by its operation, and by the final synchronisation
    expected = {"program.t1": 50 * 2 / total, "program.t2": 50 * 5 / total, "program.t3": 51 * 3 / total}
    assert shares == pytest.approx(expected, rel=1e-6)


def test_the_time_of_every_speed_up_is_that_of_a_run():
    scenario = load_scenario("d2l/sync-160mb", ["program.algorithm=ring"])
    found = limits(scenario, faster=2.0, cache=False)
    one = found.speed_ups[0]
    assert one.time == run(speed_up(scenario, {one.resource.name: 2.0}), record=False).time
    assert one.change == pytest.approx(-0.5)


def test_nodes_that_had_a_part_in_common_still_do():
    machine = speed_up(
        load_scenario("training/ddp-or-dataparallel").variants[-1], {"v100-sxm2-16gb compute": 2.0}
    ).machine
    assert machine is not None
    assert len({id(machine.nodes[gpu].part) for gpu in machine.gpus}) == 1


@pytest.mark.parametrize(("factors", "error"), [({"warp": 2.0}, UnknownNameError), ({"program.t1": 0.0}, InputError)])
def test_what_cannot_be_made_faster(factors, error):
    with pytest.raises(error):
        speed_up(make_scenario({"program": {"use": "async-chain"}}), factors)


def test_a_factor_that_makes_nothing_faster():
    with pytest.raises(SimperfError, match="above 1"):
        limits(make_scenario({"program": {"use": "async-chain"}}), faster=1.0)


def test_changes_are_written_for_people():
    assert [percent(x) for x in (-0.0611, 0.0, 0.5)] == ["-6.11 %", "0 %", "+50 %"]


def test_limits_are_plain_data_and_a_table():
    found = limits(make_scenario({"program": {"use": "async-chain", "n": 20}}), cache=False)
    assert found.to_dict()["speed_ups"][0]["resource"] == "program.t2"
    assert "program.t2 limits" in repr(found)
    assert "<table>" in found._repr_html_()


def test_draws_give_intervals_of_the_changes():
    data = {"program": {"use": "async-chain", "n": 20, "t1": "9 us", "t2": "10 us", "jitter": 0.4}}
    found = limits(make_scenario(data), samples=10, cache=False)
    one = found.limiting
    assert one is not None
    assert one.low < one.high <= 0
    # what all have in common does not blur: all at once is exact in every draw
    assert (found.together.low, found.together.high) == pytest.approx((1 / 1.1 - 1, 1 / 1.1 - 1), rel=1e-9)
    assert " .. " in found.rows()[1][0][4]


def test_constants_of_a_profile_are_a_resource():
    profile = Path(__file__).parents[2] / "calibration" / "cpu-epyc-zen5-2c.toml"
    program = {"use": "train", "model": "lenet", "gpus": 2, "batch_per_gpu": 8}
    data = {"machine": {"use": "dgx-1v"}, "calibration": {"use": str(profile)}, "program": program}
    scenario = make_scenario(data)
    assert "fitted kernels" in [one.name for one in resources(scenario)]
    row = run_task(speed_tasks(scenario, resources(scenario), 1.5)[-1])
    assert row["time"] * 1.5 == pytest.approx(run(scenario, record=False).time, rel=1e-9)
    found = limits(scenario, samples=3, cache=False)
    assert found.limiting is not None
    assert (found.together.low, found.together.high) == pytest.approx((1 / 1.1 - 1, 1 / 1.1 - 1), rel=1e-9)


@pytest.mark.parametrize("machine", ["dgx-h100", "dgx-1v"])
@pytest.mark.parametrize("copies", [0, 3])
def test_kernels_by_shape_are_exactly_x_times_as_fast(machine, copies):
    """Fixed times and rates of caches that hold on all GPUs pass faster, too."""
    expert = {"op": "moe", "hidden": 1024, "intermediate": 512, "experts": 16, "top_k": 2, "dtype": "fp16"}
    ops = [
        *({**expert, "tokens": tokens} for tokens in (16, 4096)),
        {"op": "matmul", "m": 512, "n": 512, "k": 4096, "dtype": "fp16"},
        {"op": "attention", "batch": 1, "heads": 8, "queries": 512, "head_dim": 64, "dtype": "fp16"},
    ]
    program = {"use": "operations", "ops": ops, "copies": copies}
    scenario = make_scenario({"machine": {"use": machine}, "program": program})
    row = run_task(speed_tasks(scenario, resources(scenario), 1.25)[-1])
    assert row["time"] * 1.25 == pytest.approx(run(scenario, record=False).time, rel=1e-9)
