"""Every executor against the step-exact one, through the one interface, on random small machines."""

from dataclasses import replace
from functools import cache

import pytest
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simperf.collectives import Transport, algorithms, execute, make_plan, options_of
from simperf.collectives.execute import EXECUTORS, start
from simperf.collectives.executors import ChannelFlows, Collapsed, Context, HostThreads, PlacedPlan, Stepwise
from simperf.collectives.executors.isolated import WITHOUT_EVENTS, play
from simperf.collectives.machine_plans import plan_for
from simperf.collectives.nccl import Tuner
from simperf.collectives.placement import PLAIN, place
from simperf.collectives.settings import NcclSettings
from simperf.engine.network import FlowNetwork
from simperf.engine.simulation import Simulation
from simperf.errors import InputError
from simperf.hardware import Catalog, build_cluster, build_machine, build_topology
from tests.collectives.machines import pipelined

CATALOG = Catalog.load()
NAMES = ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "gather", "scatter", "all-to-all")
ALL = [f"{name}/{algorithm}" for name in NAMES for algorithm in algorithms(name)]
#: a network stack that costs nothing
FREE = {
    "use": "linux-gloo",
    **dict.fromkeys(("wake", "message", "call", "cold", "operation"), "0 s"),
    **dict.fromkeys(("byte_rate", "bulk_rate", "add_rate", "rate"), "1e18 B/s"),
    **dict.fromkeys(("header", "word", "window"), "0 B"),
}
SIZES = (0.0, 100.0, 1e5, 12345678.0)


@st.composite
def plans(draw, most=9):
    name = draw(st.sampled_from(ALL))
    n, options, accepted = draw(st.integers(2, most)), {}, options_of(*name.split("/"))
    if "chunks" in accepted:
        options["chunks"] = draw(st.integers(1, 6))
    if "group" in accepted:
        options["group"] = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    try:
        return make_plan(*name.split("/"), nranks=n, **options)
    except InputError:
        return make_plan("all-reduce", "ring", nranks=n)


@st.composite
def cases(draw):
    """A placed plan between nodes of a small wiring, its payload, and when each participant enters."""
    plan = draw(plans())
    kind = "star" if plan.nservers else draw(st.sampled_from(["star", "ring", "fully-connected"]))
    machine = build_topology(kind, plan.nranks, bandwidth=10e9, latency=1e-6, nservers=plan.nservers)
    if draw(st.booleans()):
        machine.topology.changed[draw(st.sampled_from(list(machine.resources)))] = draw(st.sampled_from([1e9, 9.9e9]))
    transport = Transport(
        step_latency=draw(st.sampled_from([0.0, 5e-6])),
        efficiency=draw(st.sampled_from([1.0, 0.5])),
        reduce_rate=draw(st.sampled_from([float("inf"), float("inf"), 40e9])),
        unit=draw(st.sampled_from([0.0, 4.0])),
        start=draw(st.sampled_from([0.0, 2e-6])),
    )
    late = st.lists(st.sampled_from([0.0, 0.0, 1e-5, 3e-4]), min_size=plan.nranks, max_size=plan.nranks)
    entry = [*draw(st.just([0.0] * plan.nranks) | late), *[0.0] * plan.nservers]
    return PlacedPlan(plan, place(plan, machine), transport), draw(st.sampled_from(SIZES)), entry


def run_in(context, placed, nbytes, entry, *, executor=None, exact=False, traffic=()):
    """Play in a context that others use too; the run after its end, and when it released each rank."""
    ends = {}

    def released(ranks):
        for rank in ranks:
            assert rank not in ends, "a rank is released once"
            ends[rank] = context.env.now

    def other(resources, nbytes, began):
        yield context.env.timeout(began)
        yield context.network.transfer(resources, nbytes)

    for one in traffic:
        context.env.process(other(*one))
    if executor is None:
        run = start(placed, nbytes, context, entry=entry, released=released, exact=exact)
    else:
        assert executor.accepts(placed, context)
        run = executor(placed, nbytes, context, entry=entry, released=released)
    context.env.run(run.done)
    assert sorted(ends) == list(range(placed.plan.nranks))
    assert [run.finish[rank] for rank in range(placed.plan.nranks)] == [ends[rank] for rank in sorted(ends)]
    assert run.done.value == max(run.finish)
    return run, [ends[rank] for rank in sorted(ends)]


def wires(placed):
    env = simpy.Environment()
    return Context(env, FlowNetwork(env, dict(placed.placement.machine.resources)))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_without_events(case):
    placed, nbytes, entry = case
    reference = play(placed, nbytes, entry)
    assert reference.method == Stepwise.method
    for find in WITHOUT_EVENTS:
        run = find(placed, nbytes, entry)
        if run is None:
            continue
        assert run.time == pytest.approx(reference.time, rel=1e-9, abs=1e-18)
        assert run.finish[: placed.plan.nranks] == pytest.approx(
            reference.finish[: placed.plan.nranks], rel=1e-9, abs=1e-18
        )
        moved = {name: nbytes for name, nbytes in reference.moved.items() if nbytes}
        assert {name: nbytes for name, nbytes in run.moved.items() if nbytes} == pytest.approx(moved, rel=1e-9)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), data=st.data())
def test_collapsed_in_a_simulation(case, data):
    """Alone, and as something else comes to its links before, during or after it.

    Ranks enter one by one, so that each goes on at its own end; but none before the last one has come, unless there is
    other traffic: the root of a broadcast would be done before.
    """
    placed, nbytes, entry = case
    resources = sorted(placed.placement.machine.resources)
    when = st.sampled_from([0.0, 5e-6, 2e-4, 1.0])
    flows = st.tuples(st.lists(st.sampled_from(resources), min_size=1, max_size=1), st.sampled_from([1e3, 5e6]), when)
    traffic = data.draw(st.lists(flows, max_size=2), label="traffic")
    entry = [time + 1e-7 * rank for rank, time in enumerate(entry[: placed.plan.nranks])] + entry[placed.plan.nranks :]
    reference, ends = run_in(wires(placed), placed, nbytes, entry, executor=Stepwise, traffic=traffic)
    run, found = run_in(wires(placed), placed, nbytes, entry, executor=Collapsed, traffic=traffic)
    even = max(ends) - min(ends) <= 1e-10 * max(ends)
    last = max(entry)
    for end, time in zip([max(ends)] * len(ends) if even else ends, found, strict=True):
        assert time == pytest.approx(end, rel=1e-9, abs=1e-18) or end < time <= last * (1 + 1e-9)
    if placed.plan.collective in ("all-reduce", "reduce-scatter") or not any(end < last for end in ends):
        assert max(found) == pytest.approx(max(ends), rel=1e-9, abs=1e-18)
    assert (run.isolated is None) == run.disturbed
    if not traffic:
        assert not run.disturbed
        assert run.critical in (0.0, run.isolated.time)
    assert reference.isolated is None
    assert not reference.disturbed


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    algorithm=st.sampled_from(["ring", "gloo", "sharded", "binomial-tree", "pipelined-tree"]),
    n=st.integers(2, 6),
    nbytes=st.sampled_from(SIZES),
)
def test_threads_of_hosts(algorithm, n, nbytes):
    """Hosts whose network stacks cost nothing, by plans whose receives are asked for before they are sent.

    Where they are not, a message between hosts waits for its receiver, and one of the step-exact executor does not.
    """
    chunks = {"chunks": 4, "degree": 1, "overlap": False} if algorithm == "pipelined-tree" else {}
    plan = make_plan("all-reduce", algorithm, nranks=n, **chunks)
    tables = {
        "node": [{"id": f"h{i}", "kind": "cpu", "server": f"h{i}"} for i in range(n)]
        + [{"id": "switch", "kind": "switch"}],
        "link": [{"a": f"h{i}", "b": "switch", "bandwidth": "10 MB/s"} for i in range(n)],
    }
    threads = len(plan.channels)
    hosts = build_machine({**tables, "network_stack": {**FREE, "threads": threads}, "shared_cores": 2.0}, CATALOG)
    nodes = [f"h{i}" for i in range(n)]
    bare = build_machine(tables, CATALOG)
    placed, there = (PlacedPlan(plan, place(plan, one, ranks=nodes)) for one in (bare, hosts))
    context = Context.of(Simulation(hosts))
    assert not Stepwise.accepts(there, context)
    assert not Collapsed.accepts(there, context)
    entry = [0.0] * n
    _, ends = run_in(wires(placed), placed, nbytes, entry, executor=Stepwise)
    run, found = run_in(context, there, nbytes, entry, executor=HostThreads)
    assert max(found) == pytest.approx(max(ends), rel=1e-9, abs=1e-12)
    slow = PlacedPlan(plan, there.placement, Transport(step_latency=1e-6))
    with pytest.raises(InputError, match="network stack"):
        HostThreads(slow, nbytes, Context.of(Simulation(hosts)))
    assert run.method == "hosts"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(["all-reduce", "all-gather", "reduce-scatter"]),
    machine=st.sampled_from([CATALOG.machine("dgx-1v"), build_cluster("dgx-a100", 2, link="infiniband-hdr")]),
    nbytes=st.sampled_from([1e4, 1e6, 1e8]),
    late=st.sampled_from([0.0, 1e-4]),
)
def test_channels_of_a_library(name, machine, nbytes, late):
    """The rings of NCCL's channels in pipeline style, without the copies inside memory and launches at the end."""
    for choice in Tuner(machine, machine.gpus, collective=name, settings=NcclSettings(only=("ring",))).choices(nbytes):
        plan = pipelined(choice.plan)
        sends = PlacedPlan(plan, choice.placement, choice.transport)
        flows = replace(sends, channels=replace(choice.channels, last=0.0, least=0.0))
        entry = [late] * plan.nparticipants
        _, ends = run_in(wires(sends), sends, nbytes, entry, executor=Stepwise)
        run, found = run_in(wires(sends), flows, nbytes, entry, executor=ChannelFlows)
        assert max(found) == pytest.approx(max(ends), rel=1e-9)
        assert run.critical == pytest.approx(max(ends) - late, rel=1e-9)


def test_one_place_chooses():
    plan = make_plan("all-reduce", "ring", nranks=4)
    placed = PlacedPlan(plan, place(plan, build_topology("star", 4, bandwidth=1e9)), PLAIN)
    for exact, method in ((False, "collapsed"), (True, "step-exact")):
        run, _ = run_in(wires(placed), placed, 1e6, [0.0] * 4, exact=exact)
        assert run.method == method
        assert [one.accepts(placed, wires(placed), exact=exact) for one in EXECUTORS] == [False, False, not exact, True]
    shaped = replace(wires(placed), shaped=True)
    assert start(placed, 1e6, shaped, entry=[0.0] * 4).method == "step-exact"
    assert {one.method for one in EXECUTORS} == {"channels", "hosts", "collapsed", "step-exact"}


# The executor that `execute` takes, with all that it may be given -------------------------


@st.composite
def random_plans(draw):
    name = draw(st.sampled_from(ALL))
    kind = draw(st.sampled_from(["star", "ring", "fully-connected"]))
    n = draw(st.integers(1, 13))
    options = {}
    accepted = options_of(*name.split("/"))
    if "chunks" in accepted:
        options["chunks"] = draw(st.integers(1, 9))
    if "group" in accepted:
        options["group"] = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
    if "inner" in accepted:
        options["inner"] = draw(st.sampled_from(["ring", "sharded", "binomial-tree", "pipelined-tree"]))
        options["outer"] = draw(st.sampled_from(["ring", "double-binary-tree", "recursive-doubling"]))
    if "root" in accepted:
        options["root"] = draw(st.integers(0, n - 1))
    return name, kind, n, options


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=random_plans(), data=st.data())
def test_what_execute_chooses_without_being_told(case, data):
    name, kind, n, options = case
    try:
        plan = make_plan(*name.split("/"), nranks=n, **options)
    except InputError:
        return
    kind = "star" if plan.nservers else kind
    machine = build_topology(kind, n, bandwidth=10e9, latency=1e-6, nservers=plan.nservers)
    links = list(machine.resources)
    if links and data.draw(st.booleans(), label="slow link"):
        machine.topology.changed[data.draw(st.sampled_from(links))] = data.draw(st.sampled_from([1e9, 2.5e9, 9.9e9]))
    entry = None
    if data.draw(st.booleans(), label="late"):
        entry = data.draw(st.lists(st.sampled_from([0.0, 0.0, 1e-5, 3e-4]), min_size=n, max_size=n))
    background = []
    if n > 1 and data.draw(st.integers(0, 3), label="traffic") == 0:
        background = [("r0", f"r{data.draw(st.integers(1, n - 1))}", data.draw(st.sampled_from([1e9, 20e9])))]
    transport = Transport(
        step_latency=data.draw(st.sampled_from([0.0, 5e-6])),
        efficiency=data.draw(st.sampled_from([1.0, 0.5])),
        cap=data.draw(st.sampled_from([float("inf"), 3e9])),
        reduce_rate=data.draw(st.sampled_from([float("inf"), float("inf"), 40e9])),
        unit=data.draw(st.sampled_from([0.0, 0.0, 1.0, 4.0])),
        start=data.draw(st.sampled_from([0.0, 2e-6])),
        caps=data.draw(st.sampled_from([(), (1e9,), (2e9, 0.5e9), (4e9, 4e9)])),
    )
    nbytes = data.draw(st.sampled_from([0.0, 3.0, 100.0, 1e5, 1 << 20, 12345678.0]))
    kwargs = {"nbytes": nbytes, "entry_times": entry, "transport": transport, "background": background}
    fast = execute(plan, machine, **kwargs)
    reference = execute(plan, machine, exact=True, **kwargs)
    assert reference.method == "step-exact"
    assert fast.time == pytest.approx(reference.time, rel=1e-9, abs=1e-18)
    assert fast.finish == pytest.approx(reference.finish, rel=1e-9, abs=1e-18)
    if not background:
        used = {key: value for key, value in fast.moved.items() if value}
        assert used == pytest.approx({key: value for key, value in reference.moved.items() if value}, rel=1e-9)


#: hybrid meshes of NVLinks, with PCIe switches and sockets that ranks share where no NVLink joins them
MESHES = ("dgx-1v", "p3dn-24xlarge", "p3-16xlarge")

#: collectives whose chunks follow each other
PIPELINED = ("all-reduce/double-binary-tree", "all-reduce/pipelined-tree", "all-reduce/server-trees", "broadcast/ring")


@cache
def mesh(server, count):
    return build_cluster(server, count, link="ethernet-25g-jumbo")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    machine=st.builds(mesh, st.sampled_from(MESHES), st.integers(1, 2)),
    name=st.sampled_from(PIPELINED),
    chunks=st.sampled_from([1, 2, 3, 8]),
    nbytes=st.floats(1e3, 3e8),
    step_latency=st.sampled_from([0.0, 5e-6, 2e-5]),
    reduce_rate=st.sampled_from([float("inf"), float("inf"), 50e9]),
    data=st.data(),
)
def test_pipelines_on_hybrid_meshes(machine, name, chunks, nbytes, step_latency, reduce_rate, data):
    """Where sends of a tree share links, the fast executor is exact or leaves it to the step-exact one."""
    ranks = machine.gpus
    if data.draw(st.booleans(), label="some ranks"):
        ranks = data.draw(st.permutations(ranks), label="order")[: data.draw(st.integers(2, 8), label="ranks")]
    options = {"chunks": chunks} | ({"degree": data.draw(st.integers(1, 3))} if "pipelined" in name else {})
    transport = Transport(step_latency=step_latency, reduce_rate=reduce_rate)
    given = {"ranks": ranks, "nbytes": nbytes, "transport": transport}
    try:
        plan = plan_for(machine, *name.split("/"), **given, **options)
    except InputError:
        return
    late = st.lists(st.sampled_from([0.0, 0.0, 1e-5, 3e-5]), min_size=len(ranks), max_size=len(ranks))
    entry = data.draw(st.none() | late, label="late")
    fast = execute(plan, machine, entry_times=entry, **given)
    reference = execute(plan, machine, entry_times=entry, exact=True, **given)
    assert fast.time == pytest.approx(reference.time, rel=1e-9)
    assert fast.finish == pytest.approx(reference.finish, rel=1e-9)
