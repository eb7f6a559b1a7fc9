"""Parameter servers against the chapter's numbers and closed forms."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simperf.errors import DeviceMemoryError, InputError, MachineError
from simperf.hardware import build_cluster, build_machine
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.training.servers.shard_server import ServerWork, ShardServer
from simperf.training.servers.transfers import CPU_STREAM

S = 104857600.0
B = 50e9


def test_e1_the_chapters_60_80_and_15_ms(catalog, with_servers):
    book, work = catalog.machine("book-4gpu"), {"steps": 1, "weights": 160e6}
    assert with_servers(book, where="gpu", **work).now == pytest.approx(60e-3, rel=1e-9)
    assert with_servers(book, where="cpu", **work).now == pytest.approx(80e-3, rel=1e-9)
    four = with_servers(book, where="gpu", servers=4, placement="sliced", **work)
    assert four.now == pytest.approx(15e-3, rel=1e-9)


@pytest.mark.parametrize(("workers", "time"), [(8, 33555.432e-6), (64, 268436.456e-6)])
def test_e5_one_dedicated_server_on_a_star(star, with_servers, workers, time):
    """An independent flow-level simulator gives these figures; 2 n S/B and four links' latency."""
    assert with_servers(star(workers), steps=1, weights=S).now == pytest.approx(time, rel=1e-9)


@pytest.mark.parametrize("servers", [1, 2, 4, 8, 16])
def test_e5_n_servers_until_the_workers_own_ports_limit(star, with_servers, servers):
    time = with_servers(star(8, servers), steps=1, weights=S, servers=servers, placement="sliced").now
    assert time == pytest.approx(2 * (S / B) * max(8 / servers, 1.0) + 1e-6, rel=1e-9)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_e5_one_server_grows_with_the_workers(star, with_servers, workers):
    time = with_servers(star(workers), steps=1, weights=S).now
    assert time == pytest.approx(2 * workers * S / B + 1e-6, rel=1e-9)


@pytest.mark.parametrize("mode", ["synchronous", "asynchronous"])
def test_free_communication_is_a_single_worker(star, with_servers, mode):
    machine = star(4, bandwidth="1e18 B/s", latency="0 s")
    work = {"steps": 5, "layers": 4, "forward": 1e-3, "backward": 2e-3, "weights": 1.0, "mode": mode}
    session = with_servers(machine, **work)
    assert session.now == pytest.approx(5 * 3e-3, rel=1e-9)
    assert session.metrics["scaling efficiency"][0] == pytest.approx(1.0, rel=1e-9)


def test_never_faster_than_computing_or_than_the_busiest_port(star, with_servers):
    """One layer's gradient is exposed at least, the rest hides behind the backward pass or not."""
    for backward in (1e-3, 10e-3, 100e-3):
        now = with_servers(star(4), steps=1, layers=10, backward=backward, weights=S).now
        assert now >= max(backward + 2 * S / 10 / B, backward / 10 + 2 * 4 * S / B * 0.5)
        late = with_servers(star(4), steps=1, layers=10, backward=backward, weights=S, overlap=False).now
        assert late == pytest.approx(backward + 2 * 4 * S / B + 1e-6, rel=1e-9)
        assert now < late


def test_servers_take_time_to_add_up_and_update(star, with_servers):
    """Three additions and one update of the last gradient follow its arrival where all arrive at once."""
    part = star(4).nodes["cpu0"].part
    rate = part.memory_bandwidth * CPU_STREAM
    free = with_servers(star(4), steps=1, weights=S).now
    busy = with_servers(star(4), steps=1, weights=S, add=3.0, apply=3.0).now
    assert busy - free == pytest.approx((3 * 3 + 3) * S / rate, rel=1e-9)


def test_a_server_on_a_gpu_shares_the_gpu_with_its_worker(catalog, with_servers):
    book = catalog.machine("book-4gpu")
    work = {"where": "gpu", "steps": 3, "layers": 8, "backward": 50e-3, "weights": 160e6, "add": 30.0, "apply": 30.0}
    assert with_servers(book, **work).now > with_servers(book, **{**work, "add": 0.0, "apply": 0.0}).now


def test_balanced_placement_beats_round_robin_on_uneven_layers(star, with_servers):
    sizes = [8.0, 1.0, 8.0, 1.0, 8.0, 1.0]
    work = {"steps": 1, "layers": 6, "sizes": sizes, "weights": S, "servers": 2}
    robin = with_servers(star(4, 2), placement="round-robin", **work).now
    balanced = with_servers(star(4, 2), placement="balanced", **work).now
    sliced = with_servers(star(4, 2), placement="sliced", **work).now
    assert sliced <= balanced < robin


def test_adding_up_in_the_machine_first_saves_the_network(catalog, with_servers):
    """Eight GPUs send one gradient through their adapter instead of eight."""
    cluster = build_cluster("p3-16xlarge", 3, catalog=catalog, link="ethernet-25g-jumbo")
    work = {"steps": 1, "weights": 100e6, "where": "dedicated"}
    alone = with_servers(cluster, **work)
    nic = cluster.route("n0/gpu0", "n2/cpu0").bandwidth
    assert alone.now > 16 * 2 * 100e6 / nic
    for reduction in ("gpu", "cpu", "sharded"):
        first = with_servers(cluster, reduction=reduction, slice_size=10e6, **work)
        assert 2 * 100e6 / nic < first.now < alone.now / 3
        carried = first.simulation.network.moved
        assert max(carried.values()) < 7 * 100e6 * (1 + 1e-9)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 5),
    st.integers(1, 4),
    st.lists(st.floats(1.0, 9.0), min_size=4, max_size=6),
    st.sampled_from(["synchronous", "asynchronous", "bounded"]),
    st.sampled_from([0, 1, 3]),
    st.booleans(),
)
def test_bytes_are_conserved_and_no_port_exceeds_its_capacity(
    star, with_servers, workers, servers, sizes, mode, window, duplex
):
    """Every worker pushes and pulls every byte once a step, whatever the placement, order and rule."""
    plan = {"layers": len(sizes), "sizes": sizes, "weights": 50e6, "backward": 1e-3, "steps": 2, "mode": mode}
    if window:
        plan["duplex"] = duplex
    session = with_servers(star(workers, servers), servers=servers, window=window, **plan)
    moved, peak = session.simulation.network.moved, session.simulation.network.peak
    assert sum(moved[f"gpu{i}>hub"] for i in range(workers)) == pytest.approx(2 * workers * 50e6)
    assert sum(moved[f"hub>cpu{i}"] for i in range(servers)) == pytest.approx(2 * workers * 50e6)
    assert sum(moved[f"cpu{i}>hub"] for i in range(servers)) == pytest.approx(2 * workers * 50e6)
    assert max(peak.values()) <= B * (1 + 1e-9)
    assert session.now >= max(session.simulation.floors().values()) * (1 - 1e-9)
    assert session.now >= 2 * (1e-3 / len(sizes) + 1e-6)


def test_workers_of_a_star_are_interchangeable(star, with_servers):
    """Which worker is the straggler changes nothing: the last is here, the first under another order of nodes."""
    plan = {
        "steps": 3,
        "layers": 4,
        "backward": 5e-3,
        "weights": 40e6,
        "mode": "asynchronous",
        "stragglers": 1,
        "slowdown": 3.0,
    }
    machine = star(3)
    reversed_nodes = type(
        "Reordered", (), {"gpus": machine.gpus[::-1], "__getattr__": lambda self, name: getattr(machine, name)}
    )()
    assert with_servers(machine, **plan).now == pytest.approx(with_servers(reversed_nodes, **plan).now, rel=1e-9)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"servers": 0}, "at least one server"),
        ({"workers": 99}, "99 workers wanted, but the machine has 4"),
        ({"servers": 2}, "2 servers for 1 shards"),
        ({"where": "dedicated"}, "leave none of"),
        ({"mode": "bounded", "bound": -1}, "0 or more"),
        ({"steps": 0}, "at least one step"),
        ({"priority": True}, "needs a window"),
        ({"stragglers": 5}, "5 stragglers of 4 workers"),
        ({"disk": "tape0"}, "no disk 'tape0'"),
        ({"nodes": ["hub"]}, "no memory that could add up"),
        ({"workers": -1}, "a number of GPUs is expected, or 0 for all"),
        ({"batch": 0}, "one sample a GPU or more"),
        ({"backward": -1e-3}, "a time of 0 or more is expected"),
        ({"message": -1e-6}, "a time of 0 or more is expected"),
        ({"rate": -1.0}, "a rate above 0 is expected"),
        ({"server_memory": -1.0}, "a rate above 0 is expected"),
        ({"layers": 2, "sizes": [1.0]}, "a size for each"),
        ({"layers": 3, "slice_size": 50e6, "servers": 4, "weights": 90e6}, "4 servers for 3 shards"),
    ],
)
def test_settings_without_meaning_are_refused(star, with_servers, bad, words):
    with pytest.raises(InputError, match=words):
        with_servers(star(4), **bad)


def test_a_machine_without_gpus_has_nobody_to_train(catalog, with_servers):
    machine = build_machine(
        {
            "node": [{"id": "cpu{0,1}", "cpu": "xeon-8168"}],
            "link": [{"a": "cpu0", "b": "cpu1", "part": "upi"}],
        },
        catalog,
    )
    with pytest.raises(InputError, match="no workers wanted, but the machine has 0 GPUs"):
        with_servers(machine)


def test_rings_below_switches_need_as_many_gpus_below_each(catalog, with_servers):
    machine = catalog.machine("p3-8xlarge")
    with pytest.raises(MachineError, match="equal numbers of GPUs below them"):
        with_servers(machine, workers=3, reduction="switch-rings")


def test_a_measured_speed_is_that_of_the_whole_step_in_every_program():
    """`train` and `parameter-server` scale the kernels by the same factor, launches, copies and update included."""
    model = {"model": "lenet", "alone": "20000 1/s"}
    common = {"machine": {"use": "p3-8xlarge"}, "frontend": {"use": "pytorch"}}

    def notes(program):
        found = run(make_scenario({**common, "program": {**program, **model}}), record=False).notes
        return [re.search(r"kernels at ([0-9.]+) times", note)[1] for note in found if "kernels at" in note]

    train = notes({"use": "train", "batch_per_gpu": 256})
    servers = notes({"use": "parameter-server", "batch": 256})
    assert len(train) == 1
    assert servers == train


@pytest.mark.parametrize("update", [0.0, 1e-3])
def test_a_worker_that_waits_for_nothing_does_what_one_gpu_was_measured_to_do(star, with_servers, update):
    """Without time for the servers and the wires, the speed comes back, and the efficiency is 1."""
    machine = star(4, bandwidth="1e18 B/s", latency="0 s")
    work = {"layers": 4, "forward": 1e-3, "backward": 2e-3, "update": update, "weights": 1.0}
    session = with_servers(machine, steps=5, alone=500.0, **work, **({"apply": 3.0} if update else {}))
    assert session.metrics["samples per second"][0] == pytest.approx(4 * 500.0, rel=1e-6)
    assert session.metrics["scaling efficiency"][0] == pytest.approx(1.0, rel=1e-6)


def test_a_speed_needs_something_to_scale(star, with_servers):
    with pytest.raises(InputError, match=r"alone: .*take no time"):
        with_servers(star(2), alone=100.0)


def test_a_machine_without_the_links(star, with_servers):
    """The way that is missing is named before anything runs."""

    class OneWay:
        def __init__(self, machine):
            self._machine = machine

        def __getattr__(self, name):
            return getattr(self._machine, name)

        def route(self, src, dst):
            if dst == "cpu0":
                raise MachineError(f"there is no route from {src} to {dst} in the star")
            return self._machine.route(src, dst)

    with pytest.raises(MachineError, match="no route from gpu0 to cpu0"):
        with_servers(OneWay(star(2)))


def test_a_model_that_does_not_fit_says_what_would(catalog, with_servers):
    with pytest.raises(
        DeviceMemoryError, match=r"gpu0 is out of memory: 4096 samples need .*; at most \d+ samples fit"
    ):
        with_servers(catalog.machine("book-4gpu"), model="vgg16", batch=4096, steps=1)


def test_names_of_the_room():
    assert ServerWork().add == 3.0
    assert {"push", "pull", "leave"} <= set(dir(ShardServer))


def test_results_name_use_and_memory(catalog, with_servers):
    """What data parallelism tells of its devices, servers' workers tell too."""
    m = with_servers(catalog.machine("book-4gpu"), model="lenet", batch=64, steps=2)
    told = {name: value for name, (value, _) in m.metrics.items()}
    assert 0 < told["device busy, min over ranks"] <= told["device busy, max over ranks"] <= 1
    held = {name: value for name, value in told.items() if name.startswith("memory: ")}
    assert {"memory: weights", "memory: activations"} <= set(held)
    assert sum(held.values()) == pytest.approx(m.gpus[0].memory.held)
