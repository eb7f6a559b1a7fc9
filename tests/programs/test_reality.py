"""Programs of failures, stragglers, epochs and checkpoints (reality, loss, epochs, uneven), and what they refuse."""

import pytest

from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_machine
from simperf.programs import PROGRAMS

LONG = {"nodes": 8, "duration": 1e6, "interval": 1000.0, "node_mtbf": 4e5, "size": 20e9, "storage": 1e9, "spares": 2}


def value(session, name):
    return session.metrics[name][0]


def test_e9_the_parts_add_up_on_the_clock(play):
    m = play("", "failing-job", **LONG, timeout=30.0, restart=60.0)
    parts = [value(m, name) for name in m.metrics if name.endswith(" time") and "between" not in name]
    assert m.now == pytest.approx(1e6)
    assert sum(parts) == pytest.approx(1e6, rel=1e-9)
    assert value(m, "goodput") == pytest.approx(value(m, "useful time") / 1e6)


def test_e9_the_timeline_shows_what_the_ledger_says(catalog):
    m = Session(Simulation(recorder=Recorder()))
    m.play(PROGRAMS["failing-job"].function(m, **LONG, timeout=30.0, restart=60.0))
    for part in ("checkpoint", "detection", "restart"):
        shown = sum(span.end - span.start for span in m.simulation.recorder.spans if span.name == part)
        assert shown == pytest.approx(value(m, f"{part} time"), rel=1e-6)
    training = sum(span.end - span.start for span in m.simulation.recorder.spans if span.name == "training")
    assert training == pytest.approx(value(m, "useful time") + value(m, "redone time"), rel=1e-6)


def test_e9_youngs_interval_unless_one_is_given(play):
    m = play("", "failing-job", **{**LONG, "interval": 0.0})
    assert value(m, "checkpoint interval") == value(m, "interval by Young") == pytest.approx((2 * 20 * 5e4) ** 0.5)


def test_e9_a_seed_is_a_history(play):
    first, again, other = (play("", "failing-job", **LONG, seed=seed).metrics for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": 0}, "nodes: 1 node or more"),
        ({"interval": 2e6}, "ends before its first checkpoint"),
        ({"spares": 9}, "more spares than the 8 nodes"),
        ({"interval": 0.0, "node_mtbf": 0.0}, "give an interval"),
        ({"counts": {"GPU": 3}}, "time in which they were taken"),
        ({"in_place": ["bug"]}, "no such cause"),
        ({"duration": 0.0}, "either its work or the time"),
        ({"search": True}, "a search needs 1 run"),
        ({"heartbeat": 10.0, "timeout": 1.0}, "shorter than the time between heartbeats"),
    ],
)
def test_e9_what_has_no_meaning(play, change, words):
    with pytest.raises(InputError, match=words):
        play("", "failing-job", **{**LONG, **change})


SERVERS = {"workers": ["gpu2", "gpu3"], "servers": ["gpu0", "gpu1"], "store": "cpu0", "shards": 8}


def test_e9_a_server_is_lost_in_the_middle_of_a_push(play):
    """Lost at 55 ms, halfway through the first push; all 160 MB of the step are sent again, to one server."""
    m = play("book-4gpu", "server-loss", **SERVERS, steps=1, lost="gpu1", fails_at=55e-3, heartbeat=0.0, timeout=0.1)
    assert m.now == pytest.approx(0.055 + 0.1 + 0.005 + 0.050 + 0.020 + 0.020, rel=1e-9)


def test_e9_a_run_that_is_over_before(play):
    m = play("book-4gpu", "server-loss", **SERVERS, steps=1, lost="gpu1", fails_at=10.0)
    assert m.notes == ["the run was over before gpu1 was lost"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lost": "gpu3"}, "none of the servers"),
        ({"steps": 0}, "steps"),
        ({"shards": 1}, "as many shards"),
        ({"store": "", "lost": "gpu1"}, "no replica"),
        ({"servers": []}, "one server or more"),
    ],
)
def test_e9_servers_that_cannot_be(play, change, words):
    with pytest.raises((InputError, ProgramError), match=words):
        play("book-4gpu", "server-loss", **{**SERVERS, "fails_at": 0.1, **change})


def test_e9_nobody_to_train_is_told():
    nodes = [{"id": "n{0..1}", "kind": "cpu"}]
    machine = build_machine({"node": nodes, "link": [{"a": "n0", "b": "n1", "bandwidth": "1 GB/s"}]}, Catalog.load())
    session = Session(Simulation(machine))
    with pytest.raises(ProgramError, match="no GPU to be a worker"):
        session.play(PROGRAMS["server-loss"].function(session, servers=["n0"]))


def test_e7_all_wait_for_one_slow_worker_and_nobody_does(play):
    waiting = play("", "stragglers", workers=4, steps=10, slow=0, factor=3.0, communicate=0.05)
    assert waiting.now == pytest.approx(10 * (0.3 + 0.05), rel=1e-9)
    free = play("", "stragglers", workers=4, steps=30, slow=0, factor=3.0, asynchronous=True)
    assert value(free, "steps per second of all workers") == pytest.approx((3 + 1 / 3) / 0.1, rel=0.01)


def test_e7_jitter_of_many_costs_more_than_jitter_of_few(play):
    options = {"steps": 200, "jitter": "lognormal", "cv": 0.2}
    efficiency = [value(play("", "stragglers", workers=n, **options), "efficiency") for n in (1, 4, 64)]
    assert efficiency[0] == pytest.approx(1.0, rel=0.05)
    assert efficiency[0] > efficiency[1] > efficiency[2]


@pytest.mark.parametrize("change", [{"workers": 0}, {"steps": 0}, {"backup": 4}, {"slow": 4}])
def test_e7_workers_that_cannot_be(play, change):
    with pytest.raises(InputError) as caught:
        play("", "stragglers", **{"workers": 4, **change})
    assert [problem.key for problem in caught.value.problems] == list(change)


def test_e7_all_that_cannot_be_is_told_at_once(play):
    with pytest.raises(InputError) as caught:
        play("", "stragglers", workers=0, steps=0, slow=1, cv=0.3)
    assert [problem.key for problem in caught.value.problems] == ["workers", "steps", "slow", "cv"]


def test_a_link_that_never_comes_back(play):
    with pytest.raises(InputError, match="until: a link that is down for ever"):
        play("book-4gpu", "link-flaps")
    with pytest.raises(InputError, match=r"until: an end after 2 s, when it begins, is expected \(read: 1\)"):
        play("book-4gpu", "link-flaps", at=2.0, until=1.0)
    with pytest.raises(InputError, match="share: a share from 0"):
        play("book-4gpu", "link-flaps", share=1.5, until=1.0)
    with pytest.raises(ProgramError, match="n must be"):
        play("book-4gpu", "link-flaps", n=0, until=1.0)
    with pytest.raises(InputError, match=r"down: .*both are expected"):
        play("book-4gpu", "link-flaps", up=1.0)


def test_an_epoch_is_the_same_simulated_or_continued(play):
    long = play("p3-8xlarge", "epoch", samples=4000, batch=10, step=0.3, settle=400)
    short = play("p3-8xlarge", "epoch", samples=4000, batch=10, step=0.3)
    assert value(short, "simulated steps") == 8
    assert value(long, "simulated steps") == 400
    assert value(long, "epoch time") == pytest.approx(value(short, "epoch time"), rel=1e-9)


def test_an_epoch_with_an_input_pipeline_is_continued_exactly(play):
    data = {"samples": 40_000, "batch": 100, "step": 0.1, "disk": "ebs0", "workers": 3, "decode": 4e-3}
    long = play("p3-8xlarge", "epoch", **data, settle=400)
    short = play("p3-8xlarge", "epoch", **data)
    assert value(short, "simulated steps") < 100
    assert value(long, "epoch time") == pytest.approx(value(short, "epoch time"), rel=1e-3)
    assert value(short, "starved steps") > 0


def test_an_epoch_without_a_mini_batch(play):
    with pytest.raises(InputError, match="no mini-batch of 256"):
        play("", "epoch", samples=255)


def test_an_asynchronous_checkpoint_stops_for_the_copy_alone(play):
    save = {"steps": 3000, "every": 1000, "size": 4e9, "disk": "ebs0"}
    waits = play("p3-8xlarge", "checkpointed-training", **save)
    goes_on = play("p3-8xlarge", "checkpointed-training", **save, asynchronous=True)
    assert waits.now == pytest.approx(300.0 + value(waits, "training stopped"), rel=1e-6)
    assert goes_on.now == pytest.approx(300.0 + value(goes_on, "training stopped"), rel=1e-6)
    disk = goes_on.machine.nodes["ebs0"].part
    wrote = value(waits, "stopped for one checkpoint") - value(goes_on, "stopped for one checkpoint")
    assert wrote == pytest.approx(4e9 / disk.write_bandwidth, rel=0.01)


@pytest.mark.parametrize(
    ("change", "words"), [({"every": 0}, "every: no such step"), ({"disk": "tape0"}, "no disk 'tape0'")]
)
def test_checkpoints_that_cannot_be(play, change, words):
    with pytest.raises(InputError, match=words):
        play("p3-8xlarge", "checkpointed-training", **{"disk": "ebs0", **change})
