"""Sends, receives, collectives and named streams, as torch.distributed and torch.cuda have them."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simperf
from simperf import Kernel, batch_isend_irecv, irecv, isend, launch, new_group, recv, run_ranks, send, wait_stream
from simperf.collectives.nccl import Tuner
from simperf.collectives.nccl_kernels import kernel_table
from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import DeadlockError, InputError, ProgramError, UnknownNameError
from simperf.execution import collective, compute, copy, item, record, run, synchronize, wait
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_cluster, build_machine

CATALOG = Catalog.load()


def star(n, *, bandwidth="10 GB/s", latency="1 us"):
    """GPUs on a hub that adds no limit of its own."""
    ids = f"gpu{{0..{n - 1}}}"
    nodes = [
        {"id": ids, "gpu": "v100-sxm2-16gb"},
        {"id": "hub", "kind": "switch"},
        {"id": "cpu0", "cpu": "xeon-8168"},
    ]
    links = [
        {"a": ids, "b": "hub", "bandwidth": bandwidth, "latency": latency},
        {"a": "cpu0", "b": "hub", "bandwidth": "10 GB/s", "latency": "1 us"},
    ]
    return build_machine({"node": nodes, "link": links}, CATALOG)


def play(machine, function, ranks=None, *, algorithm="ring", recorder=None):
    """Play a program a rank; the session after it."""
    m = Session(Simulation(machine, recorder=recorder))

    def main():
        yield from run_ranks(m, lambda rank: function(m, rank), ranks, algorithm=algorithm)

    m.play(main())
    return m


def wire(nbytes, *, bandwidth=10e9, latency=2e-6):
    return latency + nbytes / bandwidth


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.sampled_from([0.0, 1.0, 1e3, 1e6, 3.3e7]), min_size=1, max_size=6))
def test_ping_pong_takes_latency_and_bytes_over_rate_each_way(sizes):
    def program(m, rank):
        other = 1 - rank
        for nbytes in sizes:
            for sender in (0, 1):
                yield send(nbytes, to=other) if rank == sender else recv(nbytes, source=other)

    m = play(star(2), program)
    assert m.now == pytest.approx(2 * math.fsum(map(wire, sizes)), rel=1e-12)
    assert m.simulation.path == pytest.approx(m.now, rel=1e-9), "one message after the other is a critical path"
    moved = {name: nbytes for name, nbytes in m.simulation.network.moved.items() if nbytes}
    assert sum(moved.values()) == pytest.approx(4 * math.fsum(sizes), rel=1e-12)


@pytest.mark.parametrize(("name", "nbytes"), [("dgx-1v", 8e6), ("dgx-a100", 8e6), ("dgx-a100", 16e3)])
def test_a_send_by_nccl_is_one_of_its_all_to_all(name, nbytes):
    """Among two ranks an all-to-all sends half of the payload each way at once, and copies the other half."""
    machine = CATALOG.machine(name)

    def program(m, rank):
        other = 1 - rank
        yield batch_isend_irecv(isend(nbytes, to=other), irecv(nbytes, source=other))

    (row,) = simperf.collective("all-to-all", on=machine, sizes=[2 * int(nbytes)], ranks=2, exact=False)
    copied = 0.0
    if name == "dgx-a100":
        cost, tuner = kernel_table()["ampere", row.choice.replace("/", "-")], Tuner(machine, machine.gpus[:2])
        copied = nbytes / min(cost.copy, tuner.copy_rate)
    assert play(machine, program, 2, algorithm="nccl").now == pytest.approx(row.time - copied, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["nccl", "nccl-ring", "ring", "double-binary-tree"])
@pytest.mark.parametrize("machine", ["dgx-1v", "dgx-a100", "two servers"])
@pytest.mark.parametrize("nbytes", [1024, 25_000_000])
def test_a_collective_by_verb_is_the_table_and_the_program(algorithm, machine, nbytes):
    wired = (
        build_cluster("dgx-a100", 2, link="infiniband-hdr") if machine == "two servers" else CATALOG.machine(machine)
    )
    (row,) = simperf.collective("all-reduce", on=wired, sizes=[nbytes], algorithm=algorithm)
    m = play(wired, lambda m, rank: iter_of(collective(None, "all-reduce", nbytes)), algorithm=algorithm)
    assert m.now == pytest.approx(row.time, rel=1e-12)
    two = {"server": "dgx-a100", "count": 2, "fabric": {"type": "star", "link": "infiniband-hdr"}}
    table = two if machine == "two servers" else {"use": machine}
    parameters = {"use": "all-reduce", "nbytes": f"{nbytes} B", "algorithm": algorithm}
    scenario = simperf.make_scenario({"machine": table, "program": parameters})
    assert simperf.run(scenario).time == pytest.approx(m.now, rel=1e-12)


def iter_of(*verbs):
    for verb in verbs:  # noqa: UP028  (what a verb gives comes back)
        yield verb


@pytest.mark.parametrize("name", ["reduce-scatter", "all-gather", "broadcast", "reduce", "all-to-all"])
@pytest.mark.parametrize("algorithm", ["nccl", "ring"])
def test_every_collective_of_a_group(name, algorithm):
    m = play(CATALOG.machine("dgx-a100"), lambda m, rank: iter_of(collective(None, name, 8e6)), algorithm=algorithm)
    assert 0.0 < m.now < 1e-3


def test_what_a_group_does_not_have_is_refused():
    machine = CATALOG.machine("dgx-a100")
    with pytest.raises(UnknownNameError, match="all-reduce"):
        play(machine, lambda m, rank: iter_of(collective(None, "all-reduc", 8e6)))
    with pytest.raises(InputError, match="NCCL has no gather"):
        play(machine, lambda m, rank: iter_of(collective(None, "gather", 8e6)), algorithm="nccl")
    m = play(machine, lambda m, rank: iter_of(collective(None, "gather", 8e6)))
    assert m.now > 0.0


def together(machine, pairs, nbytes=40e6, algorithm="ring"):
    """Time of all-reduces of several groups of two that begin at one time."""
    m = Session(Simulation(machine))
    groups = [new_group(m, pair, algorithm=algorithm) for pair in pairs]

    def main():
        for group in groups:
            for member in group.members:
                yield collective(group, "all-reduce", nbytes, device=member.device, async_op=True)
        yield synchronize()

    m.play(main())
    return m.now


@pytest.mark.parametrize("algorithm", ["nccl", "ring"])
def test_two_groups_that_share_a_nic_slow_each_other(algorithm):
    machine = build_cluster("v100-8gpu-20g", 2, catalog=CATALOG, bandwidth="20 Gbit/s")
    pairs = [(0, 8), (1, 9)]
    alone = together(machine, pairs[:1], algorithm=algorithm)
    both = together(machine, pairs, algorithm=algorithm)
    assert both > 1.3 * alone, "one connection does not fill the NIC, two do"
    assert both == pytest.approx(2 * 40e6 / 2.5e9, rel=0.01)
    inside = [(0, 1), (2, 3)]
    assert together(machine, inside, algorithm=algorithm) == pytest.approx(
        max(together(machine, [one], algorithm=algorithm) for one in inside), rel=1e-9
    ), "groups of different links do not"


def test_the_process_goes_on_and_the_device_waits():
    """As in PyTorch: a send holds the default stream of the device, not the process; isend holds neither."""
    machine, seen = star(2), {}

    def program(m, rank):
        gpu = m.gpu(rank)
        if rank == 0:
            yield send(1e7, to=1)
            seen["host"] = m.now
            yield launch(Kernel("after", 1e-3), gpu)
            yield synchronize(gpu)
            seen["device"] = m.now
            work = yield isend(1e7, to=1)
            yield launch(Kernel("beside", 1e-4), gpu)
            seen["begun"] = m.now
            yield synchronize(gpu.stream("compute"))
            seen["beside"] = m.now
            yield wait(work)
            seen["work"] = m.now
        else:
            yield recv(1e7, source=0)
            yield recv(1e7, source=0)

    play(machine, program)
    assert seen["host"] == 0.0
    assert seen["device"] == pytest.approx(wire(1e7) + 1e-3, rel=1e-12)
    assert seen["beside"] - seen["begun"] == pytest.approx(1e-4, rel=1e-9)
    assert seen["work"] - seen["begun"] == pytest.approx(wire(1e7), rel=1e-9)


def test_work_wait_holds_the_default_stream():
    def program(m, rank):
        gpu = m.gpu(rank)
        work = yield (isend(1e7, to=1) if rank == 0 else irecv(1e7, source=0))
        yield work.wait()
        yield launch(Kernel("after", 1e-3), gpu)

    assert play(star(2), program).now == pytest.approx(wire(1e7) + 1e-3, rel=1e-12)


def test_messages_of_a_pair_are_matched_in_order_and_sizes_compared():
    def ordered(m, rank):
        for nbytes in (1e3, 2e3):
            yield send(nbytes, to=1) if rank == 0 else recv(nbytes, source=0)

    def crossed(m, rank):
        for nbytes in (1e3, 2e3) if rank == 0 else (2e3, 1e3):
            yield send(nbytes, to=1) if rank == 0 else recv(nbytes, source=0)

    play(star(2), ordered)
    with pytest.raises(ProgramError, match="gpu0 sends 1,000 B to gpu1, which receives 2,000 B"):
        play(star(2), crossed)


def test_a_batch_is_matched_whatever_its_order_and_a_ring_of_blocking_sends_is_a_deadlock():
    n = 4

    def batch(m, rank):
        ops = [isend(1e6, to=(rank + 1) % n), irecv(1e6, source=(rank - 1) % n)]
        for work in (yield batch_isend_irecv(*(ops if rank % 2 else ops[::-1]))):
            yield work.wait()

    assert play(star(n), batch).now == pytest.approx(wire(1e6), rel=1e-12), "all at once, each on ports of its own"

    def blocking(m, rank):
        yield send(1e6, to=(rank + 1) % n)
        yield recv(1e6, source=(rank - 1) % n)

    with pytest.raises(DeadlockError) as error:
        play(star(n), blocking)
    for rank in range(n):
        there = (rank + 1) % n
        line = f"gpu{rank} sends 1,000,000 B to gpu{there}, which has not come to a receive from gpu{rank}"
        assert line in str(error.value)


def test_what_is_not_matched_is_told():
    with pytest.raises(
        DeadlockError, match="gpu1 receives 1,000,000 B from gpu0, which has not come to a send to gpu1"
    ):
        play(star(2), lambda m, rank: iter_of(*([recv(1e6, source=0)] if rank else [])))
    with pytest.raises(
        DeadlockError, match="gpu0, gpu2 called all-reduce of 1,000,000 B, and gpu1 of their group did not"
    ):
        play(star(3), lambda m, rank: iter_of(*([collective(None, "all-reduce", 1e6)] if rank != 1 else [])))
    with pytest.raises(InputError, match="rank 1 starts all-gather of 1e\\+06 B while others do all-reduce"):
        play(star(2), lambda m, rank: iter_of(collective(None, ("all-reduce", "all-gather")[rank], 1e6)))
    with pytest.raises(InputError, match="rank 1 starts all-reduce of 2e\\+06 B while others do all-reduce"):
        play(star(2), lambda m, rank: iter_of(collective(None, "all-reduce", (rank + 1) * 1e6)))


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        (lambda: send(-1.0, to=1), "finite size"),
        (lambda: collective(None, "all-reduce", math.nan), "finite size"),
        (lambda: send(1.0, to=0), "other ranks of its group, from 0 to 1"),
        (lambda: recv(1.0, source=2), "other ranks of its group, from 0 to 1"),
        (batch_isend_irecv, "one or more"),
        (lambda: batch_isend_irecv(send(1.0, to=1)), "isend"),
        (lambda: batch_isend_irecv(isend(1.0, to=1), irecv(1.0, source=1, stream="other")), "one stream"),
    ],
)
def test_what_has_no_meaning_is_refused(verb, text):
    with pytest.raises(ProgramError, match=text):
        play(star(2), lambda m, rank: iter_of(verb()))


def test_a_group_is_of_devices_of_the_machine():
    m = Session(Simulation(star(3)))
    assert new_group(m, [0, 2]) is new_group(m, ["gpu0", m.gpu(2)])
    assert new_group(m).nodes == ("gpu0", "gpu1", "gpu2")
    for ranks, text in (([0, 0], "a device of its own"), ([], "one rank or more"), ([3], "no rank 3")):
        with pytest.raises(ProgramError, match=text):
            new_group(m, ranks)

    def outside(m, rank):
        yield collective(new_group(m, [0, 1]), "all-reduce", 1e6)

    with pytest.raises(ProgramError, match="gpu2 is not in the group of gpu0, gpu1"):
        play(star(3), outside)
    with pytest.raises(ProgramError, match="cpu0/python is not the process of a rank"):
        m.play(iter_of(send(1.0, to=1)))


def test_subgroups_are_those_of_a_mesh():
    from simperf.layout import Mesh

    mesh, seen = Mesh(("tp", "dp"), (2, 2)), {}

    def program(m, rank):
        for dimension in ("tp", "dp"):
            group = new_group(m, mesh.group(rank, dimension), algorithm="ring")
            yield collective(group, "all-reduce", 1e6)
            seen[rank, dimension] = group.nodes

    m = play(star(4), program)
    assert m.now == pytest.approx(2 * 2 * wire(0.5e6), rel=1e-9)
    assert seen[3, "tp"] == ("gpu2", "gpu3")
    assert seen[3, "dp"] == ("gpu1", "gpu3")


def test_cpus_with_network_stacks_are_ranks_too():
    """Where messages cost their hosts CPU time, a send blocks the process, as gloo's does."""
    nothing = dict.fromkeys(("wake", "message", "call", "cold", "operation"), "0 s")
    nothing |= dict.fromkeys(("byte_rate", "bulk_rate", "add_rate", "rate"), "1e18 B/s")
    nothing |= dict.fromkeys(("header", "word", "window"), "0 B")
    hosts = [{"id": f"h{i}", "kind": "cpu", "server": f"h{i}"} for i in range(2)]
    links = [{"a": host["id"], "b": "switch", "bandwidth": "10 MB/s"} for host in hosts]
    stack = {"use": "linux-gloo", "threads": 1, **nothing}
    tables = {"node": [*hosts, {"id": "switch", "kind": "switch"}], "link": links, "network_stack": stack}
    machine, seen = build_machine({**tables, "shared_cores": 2.0}, CATALOG), {}

    def program(m, rank):
        yield send(1e6, to=1) if rank == 0 else recv(1e6, source=0)
        seen[rank] = m.now
        yield collective(None, "all-reduce", 1e6)
        seen[rank, "all"] = m.now

    play(machine, program, algorithm="")
    assert seen[0] == seen[1] == pytest.approx(0.1, rel=1e-6)
    assert seen[0, "all"] - seen[0] == pytest.approx(0.1, rel=1e-6), "gloo's two rings of half the payload"


# Streams by name --------------------------------------------------------------------


def test_streams_by_name_run_beside_each_other_and_wait_for_each_other():
    m = Session(Simulation(star(1), recorder=Recorder()))
    gpu = m.gpu()
    half = Kernel("half", 1e-3, demand=0.5)

    def program():
        yield launch(half, gpu, stream="compute")
        yield launch(half, gpu, stream="side")
        yield synchronize(gpu)
        assert m.now == pytest.approx(1e-3)
        yield launch(half, gpu)
        yield wait_stream(gpu.stream("side"), gpu.stream("compute"))
        yield launch(half, gpu, stream="side")
        done = yield record(gpu, stream="side")
        yield wait(done, gpu, stream="third")
        yield launch(half, gpu, stream="third")
        yield copy(gpu, "cpu0", nbytes=1e6, stream="third")
        yield item(gpu, stream="third")

    m.play(program())
    assert m.now == pytest.approx(4e-3 + 2e-6 + 1e-4, rel=1e-9)
    assert gpu.stream("compute") is gpu.stream(0)
    assert {span.track for span in m.simulation.recorder.spans} >= {"gpu0/stream0", "gpu0/side", "gpu0/third"}


def test_a_stream_is_asked_for_of_a_device():
    m = Session(Simulation(star(1)))
    with pytest.raises(ProgramError, match="'side' is asked for beside gpu0/stream0"):
        launch(Kernel("k", 1e-3), m.gpu().stream(0), stream="side")
    with pytest.raises(ProgramError, match="its device is not given"):
        wait(m.simulation.env.event(), stream="side")


def test_a_network_runs_over_streams_after_one_that_is_named():
    from simperf.execution import MODES
    from simperf.workload import mlp

    times = []
    for stream in (None, "side"):
        m = Session(Simulation(CATALOG.machine("desktop-1gpu")), mode=MODES["dataflow"])
        network = m.module(mlp([512, 256, 10], batch=32))
        m.play(iter_of(compute(1e-6), run(network, m.gpu(), stream=stream), synchronize(m.gpu())))
        times.append(m.now)
    assert times[0] == times[1]


@pytest.mark.parametrize(
    ("name", "algorithm", "options"),
    [
        ("broadcast", "ring", {}),
        ("broadcast", "naive", {}),
        ("reduce", "binomial-tree", {}),
        ("all-gather", "ring", {}),
        ("reduce-scatter", "halving-doubling", {}),
        ("broadcast", "pipelined-tree", {"chunks": 7, "degree": 2}),
    ],
)
def test_a_group_does_each_collective_by_its_algorithm_where_it_has_it(name, algorithm, options):
    machine = star(8)

    def program(m, rank):
        group = new_group(m, algorithm=algorithm, options=options)
        yield collective(group, name, 3e6)

    row = simperf.collective(name, on=machine, sizes=[3_000_000], algorithm=algorithm, **options)[0]
    assert play(machine, program).now == pytest.approx(row.time, rel=1e-12)


def test_one_process_drives_no_more_gpus_than_a_server_has_of_the_ranks():
    machine = CATALOG.machine("dgx-a100-x4")
    ranks = machine.gpus[4:12]  # four of each of two servers
    calls = {"on": machine, "sizes": ["8K"], "ranks": ranks}
    assert simperf.collective("all-reduce", launches=4, **calls)[0].time > 0
    with pytest.raises(InputError, match=r"options\.launches: one process drives GPUs of one server, which has 4 of"):
        simperf.collective("all-reduce", launches=5, **calls)
