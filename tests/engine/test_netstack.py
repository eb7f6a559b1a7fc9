"""Network stacks of hosts: what a message costs, in closed form; without one nothing changes."""

import math

import pytest

from simperf.collectives import Transport, collective_event, execute, make_plan
from simperf.collectives.bench import measure
from simperf.collectives.calls import Call
from simperf.engine.contention import cooled, found
from simperf.engine.host import Host
from simperf.engine.netstack import NetworkStacks
from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.hardware import Catalog, NetworkStackPart, build_machine, build_topology
from simperf.run import run
from simperf.scenario import make_scenario

KIB, MIB = 1024.0, float(1 << 20)
RATE = 10e6
#: a stack that costs nothing: every number is given, so that the catalogue's has no part in it
FREE = {
    "use": "linux-gloo",
    **dict.fromkeys(("wake", "message", "call", "cold", "operation"), "0 s"),
    **dict.fromkeys(("byte_rate", "bulk_rate", "add_rate", "rate"), "1e18 B/s"),
    **dict.fromkeys(("header", "word", "window"), "0 B"),
    "threads": 1,
}


def tables(hosts=3, *, rates=None, burst=0.0, peak=0.0, cores=2.0, **stack):
    """A machine of hosts behind a switch."""
    shaped = {"burst": f"{burst} B", "peak": f"{peak} B/s"} if burst else {}
    return {
        "node": [{"id": f"h{i}", "kind": "cpu", "server": f"h{i}"} for i in range(hosts)]
        + [{"id": "switch", "kind": "switch"}],
        "link": [
            {"a": f"h{i}", "b": "switch", "bandwidth": f"{(rates or {}).get(i, RATE)} B/s", **shaped}
            for i in range(hosts)
        ],
        "network_stack": {**FREE, **stack},
        "shared_cores": cores,
    }


def play(machine, **program):
    return run(make_scenario({"machine": machine, "program": program}))


def send(machine, nbytes, **more):
    return play(machine, use="sends", source="h0", target="h1", nbytes=f"{nbytes} B", **more).time


def test_a_stack_that_costs_nothing_leaves_a_send_to_its_link():
    assert send(tables(), MIB) == pytest.approx(MIB / RATE, rel=1e-9)


def test_a_token_bucket_lets_a_burst_pass_at_its_peak():
    """B + r t tokens pass at the peak p: the bucket is empty after B / (p - r), and the rest passes at the rate."""
    burst, peak = 32 * KIB, 100e6
    first = burst / (peak - RATE)
    wanted = first + (MIB - first * peak) / RATE
    assert send(tables(burst=burst, peak=peak), MIB) == pytest.approx(wanted, rel=1e-6)
    assert send(tables(burst=burst, peak=peak), 4 * KIB) == pytest.approx(4 * KIB / peak, rel=1e-6)


def test_calls_messages_and_wake_ups_of_an_empty_send_add_up():
    """Both ends ask at once; the word that there is room, the message itself; each wakes a sleeping core."""
    machine = tables(call="1 ms", message="2 ms", wake="0.5 ms")
    assert send(machine, 0.0) == pytest.approx(1e-3 + 2 * (2e-3 + 0.5e-3), rel=1e-9)


def test_bytes_are_work_for_the_cores_of_both_ends():
    """Faster links than cores: two threads share as many cores as there are."""
    fast = {0: 1e12, 1: 1e12}
    for cores, wanted in ((1.0, 1.0), (2.0, 0.5), (8.0, 0.5)):
        machine = tables(rates=fast, cores=cores, byte_rate="1 MB/s", bulk_rate="1 MB/s")
        assert send(machine, 1e6) == pytest.approx(wanted, rel=1e-6)


def test_hosts_with_cores_of_their_own_move_bytes_side_by_side():
    own = tables(rates={0: 1e12, 1: 1e12}, byte_rate="1 MB/s", bulk_rate="1 MB/s")
    del own["shared_cores"]
    assert send(own, 1e6) == pytest.approx(0.5, rel=1e-6)


def test_bytes_that_a_rate_holds_back_cost_no_time_beside_it():
    machine = tables(byte_rate="100 MB/s", bulk_rate="100 MB/s")
    assert send(machine, MIB) == pytest.approx(MIB / RATE, rel=1e-9)


def test_one_connection_carries_no_more_than_its_rate():
    assert send(tables(rate="1 MB/s"), 1e6) == pytest.approx(1.0, rel=1e-9)


def test_words_and_headers_take_room_on_the_link():
    machine = tables(word="48 B", header="66 B")
    assert send(machine, 1000.0) == pytest.approx((1000 + 2 * 48 + 2 * 66) / RATE, rel=1e-9)


def test_messages_that_are_asked_for_together_follow_each_other():
    """Without waiting for any, one of n pays for the way; one after the other, all do."""
    machine = tables(wake="1 ms")
    one = send(machine, 1e4)
    assert send(machine, 1e4, n=8) == pytest.approx(8 * one, rel=1e-9)
    assert send(machine, 1e4, n=8, in_flight=8) == pytest.approx(one + 7e4 / RATE, rel=0.02)


def test_a_round_trip_is_two_sends():
    machine = tables(call="1 ms", message="2 ms", wake="0.5 ms")
    found = play(machine, use="round-trips", near="h0", far="h1", nbytes="0 B", reply="0 B")
    assert found.time == pytest.approx(2 * send(machine, 0.0), rel=1e-9)


@pytest.mark.parametrize("algorithm", ["ring", "gloo", "sharded", "binomial-tree"])
@pytest.mark.parametrize("hosts", [2, 3, 4, 7])
def test_collectives_of_free_hosts_take_what_links_alone_give(algorithm, hosts):
    """The executor of hosts is held to the step-exact one, which knows no threads."""
    machine = tables(hosts)
    plan = make_plan("all-reduce", algorithm, nranks=hosts)
    names = [f"h{i}" for i in range(hosts)]
    there = build_machine(machine, Catalog.load())
    bare = build_machine({key: machine[key] for key in ("node", "link")}, Catalog.load())
    by_hosts, by_links = (execute(plan, one, nbytes=MIB, ranks=names, exact=True) for one in (there, bare))
    assert (by_hosts.method, by_links.method) == ("hosts", "step-exact")
    assert by_hosts.time == pytest.approx(by_links.time, rel=1e-9)
    assert play(machine, use="all-reduce", algorithm=algorithm, nbytes="1 MiB").time == by_hosts.time


def test_a_pipeline_of_free_hosts_takes_what_links_alone_give():
    machine = tables(5)
    plan = make_plan("broadcast", "pipelined-tree", nranks=5, degree=1, chunks=8)
    names = [f"h{i}" for i in range(5)]
    there = build_machine(machine, Catalog.load())
    bare = build_machine({key: machine[key] for key in ("node", "link")}, Catalog.load())
    times = [execute(plan, one, nbytes=MIB, ranks=names, exact=True).time for one in (there, bare)]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


def test_processes_that_compute_share_the_cores():
    """Four processes on two cores take twice as long as two."""
    step = {"use": "train", "layers": 4, "forward": "10 ms", "backward": "20 ms", "weights": "4 B", "batch_per_gpu": 1}
    times = {n: play(tables(4), gpus=n, **step).metrics["time per step"].value for n in (1, 2, 4)}
    assert times[1] == pytest.approx(0.03, rel=1e-3)
    assert times[2] == pytest.approx(times[1], rel=0.01)
    assert times[4] == pytest.approx(2 * times[1], rel=0.01)


def test_a_slow_link_is_communication_and_buckets_overlap():
    step = {"use": "train", "gpus": 2, "layers": 8, "forward": "50 ms", "backward": "0.1 s", "weights": "1 MB"}
    step |= {"batch_per_gpu": 1, "algorithm": "gloo"}
    whole = play(tables(2), bucket="1 MB", first_bucket="1 MB", **step).metrics["time per step"].value
    parts = play(tables(2), bucket="125 kB", first_bucket="125 kB", **step).metrics["time per step"].value
    assert whole == pytest.approx(0.15 + 1e6 / RATE, rel=0.01)
    assert 0.15 + 1e6 / RATE / 8 < parts < whole - 0.05


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_server_s_link_is_shared_by_synchronous_workers(workers):
    """Pushes of all, then pulls of all: both are n payloads on the server's link."""
    machine = tables(workers + 1)
    program = {"use": "parameter-server", "workers": workers, "nodes": [f"h{workers}"], "layers": 1}
    program |= {"weights": "1 MB", "backward": "10 ms", "overlap": False, "steps": 2}
    found = play(machine, **program).metrics["time per step"].value
    assert found == pytest.approx(max(1.0, workers / 2) * 0.01 + 2 * workers * 1e6 / RATE, rel=0.02)


def test_a_machine_without_a_stack_has_none():
    simulation = Simulation(Catalog.load().machine("dgx-1v"))
    assert simulation.stacks is None
    assert not simulation.own_times
    assert simulation.buckets == {}


def test_servers_of_a_cluster_have_stacks_between_them_and_not_inside():
    costs = {**FREE, "message": "1 ms"}
    fabric = {"type": "star", "bandwidth": "1 GB/s"}
    machine = build_machine(
        {"server": "desktop-2gpu", "count": 2, "fabric": fabric, "network_stack": costs}, Catalog.load()
    )
    far, near = (
        execute(make_plan("send-recv", "direct", nranks=2), machine, nbytes=8.0, ranks=ranks).time
        for ranks in (("n0/gpu0", "n1/gpu0"), ("n0/gpu0", "n0/gpu1"))
    )
    assert far > 1e-3 > near


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("network_stack", "linux-glo", "linux-gloo"),
        ("network_stack", {"use": "linux-gloo", "wake": "5 MB"}, "time"),
        ("shared_cores", -1.0, "0"),
    ],
)
def test_what_makes_no_sense_is_refused(key, value, words):
    with pytest.raises(InputError, match=words):
        make_scenario(
            {"machine": {**tables(), key: value}, "program": {"use": "sends", "source": "h0", "target": "h1"}}
        )


def test_half_a_bucket_is_refused():
    machine = tables()
    machine["link"][0]["burst"] = "32 KiB"
    with pytest.raises(InputError, match="peak"):
        make_scenario({"machine": machine, "program": {"use": "sends", "source": "h0", "target": "h1"}})


@pytest.mark.parametrize(("offered", "together", "most"), [(0.5, 0.4, 6), (1.5, 0.4, 6), (3.0, 0.4, 6), (0.1, 0.0, 9)])
def test_segments_found_together_are_those_that_came_while_a_thread_waited(offered, together, most):
    """u = offered (together + (1 - together) (1 - u)), and 1 / (1 - u) segments, at most those that there are."""
    segments = found(offered, together, most)
    assert 1.0 <= segments <= most
    if segments < most:
        used = 1.0 - 1.0 / segments
        assert used == pytest.approx(offered * (together + (1.0 - together) / segments))


def test_a_thread_is_cold_after_a_long_sleep():
    assert cooled(0.0, 200e-6) == 0.0
    assert cooled(200e-6, 200e-6) == pytest.approx(1.0 - math.exp(-1.0))
    assert cooled(math.inf, 200e-6) == 1.0
    warm, cold = (
        send(tables(cold="1 ms", rates={0: 1e12, 1: 1e12}, rate=f"{rate} B/s"), 1e4) - 1e4 / rate
        for rate in (1e10, 1e4)
    )
    assert warm < 0.01e-3
    assert cold == pytest.approx(1e-3, rel=0.01)


def test_a_message_that_arrives_is_as_large_as_it_was_whatever_waits_behind_it():
    """A busy core knows nothing of a first message, however large the next one is: all of `cold`, on half a core."""
    cold, small, large = 10e-3, 1e3, 1e6
    machine = tables(cores=1.0, cold=f"{cold} s", segment="10 kB")
    simulation = Simulation(build_machine(machine, Catalog.load()))
    simulation.host("h1").work(1e3)
    stacks = simulation.stacks
    arrived = [stacks.receive("h0", "h1") for _ in range(2)]
    for nbytes in (small, large):
        stacks.send("h0", "h1", nbytes)
    assert simulation.env.run(arrived[0]) == pytest.approx(small / RATE + 2 * cold, rel=1e-9)


def test_nothing_is_kept_of_messages_that_have_arrived():
    simulation = Simulation(build_machine(tables(), Catalog.load()))
    stacks = simulation.stacks
    for _ in range(5):
        simulation.env.run(stacks.carry("h0", "h1", 1e3))
    late = stacks.send("h1", "h0", 1e3)
    simulation.env.run(simulation.now + 1.0)
    assert not late.triggered  # nobody has asked for it, so that it is kept
    simulation.env.run(stacks.receive("h1", "h0"))
    assert not stacks._slots


def test_transfers_inside_a_host_offer_its_network_stack_no_work():
    """What threads find together is as without transfers inside both hosts."""
    costs = {**FREE, "byte_rate": "15 MB/s", "bulk_rate": "60 MB/s", "segment": "10 kB"}
    fabric = {"type": "star", "bandwidth": "100 MB/s"}
    cluster = {"server": "desktop-2gpu", "count": 2, "fabric": fabric, "network_stack": costs}
    times = []
    for inside in (0, 1):
        simulation = Simulation(build_machine(cluster, Catalog.load()))
        stacks = simulation.stacks
        if inside:
            for server in ("n0", "n1"):
                stacks.carry(f"{server}/gpu0", f"{server}/gpu1", 1e12)
            simulation.env.run(simulation.now + 1.0)
        began = simulation.now
        simulation.env.run(stacks.carry("n0/gpu0", "n1/gpu0", 1e6))
        times.append(simulation.now - began)
    assert times[1] == pytest.approx(times[0], rel=1e-6)


@pytest.mark.parametrize(
    ("algorithm", "transport"),
    [("ring", {"step_latency": 5e-6}), ("gloo", {"reduce_rate": 1e9}), ("pipelined-tree", {"cap": 1e9, "start": 1e-6})],
)
def test_a_transport_that_a_network_stack_would_drop_is_refused(algorithm, transport):
    machine = build_machine(tables(), Catalog.load())
    plan, names = make_plan("all-reduce", algorithm, nranks=3), ["h0", "h1", "h2"]
    with pytest.raises(InputError) as error:
        execute(plan, machine, nbytes=MIB, ranks=names, transport=Transport(**transport))
    (problem,) = error.value.problems
    assert problem.key == "transport"
    assert all(f"{key} = {value}" in problem.value for key, value in transport.items())
    assert "network_stack" in problem.expected
    assert execute(plan, machine, nbytes=MIB, ranks=names, transport=Transport()).method == "hosts"


def test_a_protocol_that_a_network_stack_would_drop_is_refused():
    machine = build_machine(tables(), Catalog.load())
    with pytest.raises(InputError) as error:
        measure(Call(machine, "all-reduce", "ring", nbytes=1024, ranks=["h0", "h1"], protocol="LL"))
    assert [(one.key, one.value) for one in error.value.problems] == [("protocol", "LL")]


def test_every_send_between_hosts_is_in_the_timeline():
    recorder = Recorder()
    simulation = Simulation(build_machine(tables(), Catalog.load()), recorder=recorder)
    plan = make_plan("all-reduce", "ring", nranks=3)
    end = simulation.env.run(collective_event(simulation, plan, ["h0", "h1", "h2"], MIB))
    spans = [span for span in recorder.spans if span.track.endswith("/send")]
    assert sorted((span.track, span.name) for span in spans) == sorted(
        (f"h{i}/send", f"to h{(i + 1) % 3}") for i in range(3) for _ in range(4)
    )
    assert all(span.end - span.start == pytest.approx(MIB / 3 / RATE, rel=1e-9) for span in spans)
    assert max(span.end for span in spans) == pytest.approx(end)


# the stacks alone -----------------------------------------------------------------------


def stacks(**costs):
    """Stacks of two hosts with one core each, on a link of 1 MB/s and 1 ms each way; all that is left out is free."""
    simulation = Simulation(build_topology("fully-connected", 1, bandwidth=1e6, latency=1e-3, nservers=2))
    machine, env = simulation.machine, simulation.env
    hosts = {name: Host(env, name, 1.0) for name in machine.cpus}
    made = NetworkStacks(
        env,
        simulation.network,
        NetworkStackPart(name="test", title="", sources={}, **costs),
        host=hosts.__getitem__,
        route=machine.route,
        capacities=machine.resources,
        buckets={},
    )
    return env, made


def test_a_message_waits_until_its_receiver_has_asked():
    env, made = stacks()
    ends = {}
    sent = made.send("s0", "s1", 1e6)
    env.run(until=5.0)
    assert not sent.triggered
    assert made.used
    received = made.receive("s0", "s1")
    received.callbacks.append(lambda event: ends.update(received=env.now))
    env.run()
    assert ends["received"] == pytest.approx(5.0 + 1e-3 + 1e-3 + 1.0), "it says that it has room, and the bytes come"


def test_slots_keep_sends_and_receives_apart():
    env, made = stacks()
    first, second = made.slot(), made.slot()
    assert first != second
    made.send("s0", "s1", 10.0, first)
    other = made.receive("s0", "s1", second)
    env.run()
    assert not other.triggered, "what is sent under one number is not received under another"
    mine = made.receive("s0", "s1", first)
    env.run()
    assert mine.processed


def test_asking_and_adding_are_work_on_the_nodes_core():
    env, made = stacks(call=0.25, add_rate=1e3)
    made.call("s0")
    added = made.add("s0", 500.0)
    env.run(added)
    assert env.now == pytest.approx(0.75), "two threads share one core: 0.25 s of both, and what is left"
    free = made.call("s1")
    env.run(free)
    assert env.now == pytest.approx(1.0)


def test_nothing_to_do_takes_no_time():
    env, made = stacks()
    env.run(made.call("s0"))
    assert env.now == 0.0
    assert not made.used
