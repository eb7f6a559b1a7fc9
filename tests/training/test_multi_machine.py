"""The seven steps across machines, and what the sites and lanes below them do."""

import pytest

from simperf.cost import CostSettings
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.execution.session import Session
from simperf.hardware import build_cluster
from simperf.training.servers.multi_machine import make_routes
from simperf.training.servers.transfers import Courier, Lane, Site


@pytest.fixture(scope="module")
def cluster(catalog):
    """Two machines that work and one that serves."""
    return build_cluster("p3-8xlarge", 3, catalog=catalog, link="ethernet-10g-jumbo")


def lower_bound(cluster, nbytes):
    """Each of the steps alone, one after the other, for one gradient of four GPUs a machine."""
    up = cluster.route("n0/gpu0", "n0/cpu0").bandwidth
    down = cluster.route("n0/cpu0", "n0/gpu0").bandwidth
    wire = cluster.route("n0/cpu0", "n2/cpu0").bandwidth
    return nbytes / up + 2 * nbytes / wire + nbytes / wire + nbytes / down


def test_seven_steps_take_their_time_one_after_the_other(cluster, with_servers):
    session = with_servers(cluster, steps=1, weights=100e6, where="dedicated", reduction="gpu")
    assert session.now >= lower_bound(cluster, 100e6)
    moved = session.simulation.network.moved
    assert moved["n0/nic0>switch0"] == pytest.approx(100e6), "one gradient leaves each machine"
    assert moved["switch0>n2/nic0"] == pytest.approx(200e6), "two reach the server"
    assert moved["n2/nic0>switch0"] == pytest.approx(200e6)


def test_every_step_is_on_the_timeline(cluster):
    from simperf.engine.recorder import Recorder
    from simperf.programs import PROGRAMS

    session = Session(Simulation(cluster, recorder=Recorder()), cost=CostSettings(sharp=True))
    plan = {"steps": 1, "layers": 1, "backward": 1e-3, "weights": 10e6, "where": "dedicated", "reduction": "gpu"}
    session.play(PROGRAMS["parameter-server"].function(session, **plan))
    spans = sorted(session.simulation.recorder.spans, key=lambda span: span.start)
    names = [span.name for span in spans if span.track.startswith(("n0/", "n2/"))]
    steps = ["backward layer0", "reduce", "to cpu", "push 0", "update", "pull 0", "to gpu", "broadcast"]
    assert [names.index(step) for step in steps] == sorted(names.index(step) for step in steps)


@pytest.mark.parametrize("slices", [1, 8])
def test_slices_let_the_steps_overlap(cluster, with_servers, slices):
    whole = with_servers(cluster, steps=1, weights=100e6, where="dedicated", reduction="gpu").now
    cut = with_servers(
        cluster, steps=1, weights=100e6, where="dedicated", reduction="gpu", slice_size=100e6 / slices
    ).now
    assert cut == whole if slices == 1 else cut < whole


def test_servers_on_the_workers_machines_share_their_ports(cluster, with_servers):
    """Two colocated servers: half of each machine's gradient never leaves it."""
    session = with_servers(
        cluster, steps=1, workers=8, servers=2, where="cpu", placement="sliced", weights=100e6, reduction="cpu"
    )
    moved = session.simulation.network.moved
    assert moved["n0/nic0>switch0"] == pytest.approx(100e6), "half a push and half an answer"


def test_teams(catalog):
    gpus = ("n0/gpu0", "n0/gpu1", "n1/gpu0")
    host = {"n0": "n0/cpu0", "n1": "n1/cpu0"}

    def host_of(gpu):
        return host[gpu[:2]]

    apart = make_routes(gpus, reduction="none", host_of=host_of)
    assert [route.gpus for route in apart] == [(gpu,) for gpu in gpus]
    assert not apart[0].via_host
    together = make_routes(gpus, reduction="gpu", host_of=host_of)
    assert [route.gpus for route in together] == [gpus[:2], gpus[2:]]
    assert (together[0].via_host, together[0].spread) == (True, True)
    with pytest.raises(InputError, match="did you mean 'sharded'"):
        make_routes(gpus, reduction="shard", host_of=host_of)


def test_a_cpus_memory_does_one_thing_after_the_other(catalog):
    session = Session(Simulation(catalog.machine("book-4gpu")))
    site, ends = Site(session, "cpu0", bandwidth=1e9), []
    for _ in range(3):
        site.work("add", 1e6, lambda: ends.append(session.now))
    site.work("nothing", 0.0, lambda: ends.append(session.now))
    session.simulation.run()
    assert ends == pytest.approx([0.0, 1e-3, 2e-3, 3e-3])
    assert site.busy == pytest.approx(3e-3)


def test_a_gpus_memory_shares_the_gpu(catalog):
    """A kernel of 1 ms beside 1 ms of service: both take twice as long."""
    session = Session(Simulation(catalog.machine("book-4gpu")), cost=CostSettings(sharp=True))
    site, ends = Site(session, "gpu0"), []
    from simperf.engine.kernel import Kernel

    gpu = session.gpu(0)
    gpu.stream(0).submit(Kernel("own", 1e-3))
    site.work("add", gpu.part.memory_bandwidth * 1e-3, lambda: ends.append(session.now))
    session.simulation.run()
    assert ends == pytest.approx([2e-3])


def test_couriers_wait_for_the_message_and_keep_to_their_rate(star):
    session = Session(Simulation(star(1, latency="0 s")))
    courier, ends = Courier(session, message=1e-3, rate=1e9), []
    courier.send("gpu0", "cpu0", 1e6, lambda: ends.append(session.now))
    courier.send("gpu0", "gpu0", 1e6, lambda: ends.append(session.now))
    session.simulation.run()
    assert ends == pytest.approx([0.0, 2e-3])
    assert courier.carried == 1e6


def test_lanes_let_so_many_go_at_a_time():
    lane, going = Lane(2), []
    for number in range(4):
        lane.submit(0, lambda number=number: going.append(number))
    assert going == [0, 1]
    lane.free()
    assert going == [0, 1, 2]


def test_threads_of_a_gpu_copy_to_the_cpu_last(catalog, with_servers):
    """All sums of all keys first, then what goes to the server, which waits meanwhile: the whole takes longer."""
    machine = catalog.machine("pcie-4gpu")
    plan = {"steps": 1, "layers": 16, "weights": 400e6, "reduction": "sharded", "nodes": ["cpu0"], "server_memory": 5e9}
    engines = with_servers(machine, **plan, apply=1.0)
    threads = with_servers(machine, **plan, apply=1.0, copiers=2)
    assert threads.now > engines.now + 0.5 * 3 * 400e6 / 4 / 12.3e9
    assert threads.simulation.network.moved == pytest.approx(engines.simulation.network.moved)


def test_taking_an_answer_from_the_network_takes_the_cpus_memory(cluster, with_servers):
    plan = {"steps": 1, "weights": 100e6, "where": "dedicated", "reduction": "gpu", "server_memory": 5e9}
    free, busy = (with_servers(cluster, take=take, **plan).now for take in (0.0, 2.0))
    assert busy - free == pytest.approx(2 * 100e6 / 5e9)
