"""The program `train`: strategies by name, bad input, the same bytes for the same seed."""

import pytest

from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError, UnknownNameError
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.programs import PROGRAMS
from simperf.run import run
from simperf.scenario import load_scenario


@pytest.mark.parametrize("strategy", ["ddp", "data-parallel", "naive", "local-sgd"])
def test_every_strategy_trains_a_model_of_the_zoo(play, strategy):
    m = play("p3-8xlarge", "train", strategy=strategy, model="lenet", frontend="pytorch", steps=2)
    assert m.metrics["samples per second"][0] > 1e4
    assert m.metrics["GPUs"][0] == 4
    assert m.metrics["payload per step"][0] if strategy != "naive" else "payload per step" not in m.metrics


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ({"gpus": 9}, InputError, "gpus: the machine has 4"),
        ({"model": "resnet51"}, UnknownNameError, "resnet50"),
        ({"devices": ["gpu9"]}, ProgramError, "gpu9"),
        ({"devices": ["gpu0", "gpu0"]}, InputError, "once"),
        ({"batch": 3}, InputError, "split"),
        ({"batch": 0}, InputError, "split"),
        ({"steps": 0}, InputError, "steps"),
        ({"layers": 0}, InputError, "layer"),
    ],
)
def test_bad_input_is_told(play, bad, error, words):
    with pytest.raises(error, match=words):
        play("p3-8xlarge", "train", **bad)


@pytest.mark.parametrize("program", ["train", "recommender"])
def test_a_machine_without_gpus_is_told(program):
    node = {"id": "cpu0", "cpu": "xeon-8168"}
    machine = build_machine({"node": [node]}, Catalog.load())
    session = Session(Simulation(machine))
    with pytest.raises(ProgramError, match="the machine has no GPU to train on"):
        session.play(PROGRAMS[program].function(session))


def test_the_same_scenario_gives_the_same_bytes():
    scenario = load_scenario("training/ddp-or-dataparallel").variants[2]
    assert run(scenario).to_bytes() == run(scenario).to_bytes()


def test_a_gpu_of_a_parameter_is_a_device(play):
    one = play("p3-8xlarge", "train", devices=["gpu3"], steps=1)
    assert one.metrics["GPUs"][0] == 1


@pytest.mark.parametrize(("program", "options"), [("train", {}), ("parameter-server", {"backward": 10e-3})])
def test_a_machine_with_a_price_tells_what_training_costs(play, program, options):
    m = play("p3-8xlarge", program, steps=3, **options)
    a_second = 12.24 / 3600
    assert m.metrics["cost per step"] == (pytest.approx(a_second * m.metrics["time per step"][0]), "USD")
    rate = m.metrics["samples per second"][0]
    assert m.metrics["cost per million samples"] == (pytest.approx(a_second * 1e6 / rate), "USD")


@pytest.mark.parametrize("program", ["train", "parameter-server"])
def test_without_a_price_nothing_is_said_of_cost(play, program):
    assert not [name for name in play("dgx-1v", program, steps=1).metrics if "cost" in name]


def test_all_servers_of_a_cluster_are_paid_for(play):
    m = play("p3-16xlarge-x8", "train", gpus=8, steps=2)
    assert m.metrics["cost per step"][0] == pytest.approx(8 * 24.48 / 3600 * m.metrics["time per step"][0])


def test_servers_of_their_own_take_half_of_a_ring():
    """Where the network limits, a ring moves almost twice the gradients over an adapter, as many servers once."""
    vgg = load_scenario("measured/byteps-20g", ["program.batch=8", "machine.fabric.bandwidth=2 Gbit/s"]).variants[1]
    slow = run(vgg).metrics
    rates = [slow[f"{way}: samples per second"].value for way in ("servers", "ring")]
    assert slow["speed-up of servers"].value == pytest.approx(rates[0] / rates[1] - 1)
    assert 0.2 < slow["speed-up of servers"].value < 1.0, "half of a ring at best: pull waits for push"


@pytest.mark.parametrize("all_of_them", [False, True])
def test_servers_must_leave_machines_to_train(all_of_them):
    machines = len(load_scenario("measured/byteps-20g").machine.servers)
    servers = machines if all_of_them else 0
    with pytest.raises(ProgramError, match="at least one serves and one trains"):
        run(load_scenario("measured/byteps-20g", [f"program.servers={servers}"]).variants[0])
