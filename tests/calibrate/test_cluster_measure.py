"""What is measured on a boxed cluster, in which order, and how answers become measurements; no namespaces here."""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from simperf.calibrate.cluster import jobs
from simperf.calibrate.cluster import measure as measuring
from simperf.calibrate.cluster.experiments import FAMILIES, GOES, PASSES, Point, check_families, in_order, points
from simperf.calibrate.cluster.measure import measure, read
from simperf.calibrate.cluster.network import BoxError
from simperf.calibrate.cluster.priority import COMPUTING, ORDINARY, VARIABLE, promptly
from simperf.calibrate.cluster.shape import Shape, read_rate, read_shape, read_size
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.measure import remeasure
from simperf.errors import InputError, UnknownNameError

RATE = 25e6


def test_every_family_is_there_and_central_has_a_host_of_its_own():
    found = list(points(8, Shape(RATE), rates=(4 * RATE,)))
    assert {point.family for point in found} == set(FAMILIES)
    assert {point.at["ranks"] for point in found if point.family == "all-reduce"} == {2, 3, 4, 6, 8}
    assert all(point.hosts == point.at["ranks"] + 1 for point in found if point.series == "all-reduce/central")
    sizes = {point.at["nbytes"] for point in found if point.family == "all-reduce"}
    assert (min(sizes), max(sizes)) == (256 * 1024, 16 * 2**20)
    assert len({(point.series, tuple(sorted(point.conditions.items()))) for point in found}) == len(found)


def test_hosts_know_every_job_that_is_ordered():
    found = {point.job for point in points(8, Shape(RATE), rates=(4 * RATE,))}
    assert found == set(jobs.__all__) - {"HostOrder"}


def test_steps_alone_are_measured_right_before_the_training_that_they_tell_of():
    found = [point for point in points(4, Shape(RATE), rates=(4 * RATE,)) if "model" in point.at]
    order = list(dict.fromkeys((point.series.partition("/")[0], point.at["model"]) for point in found))
    assert order == [("step", "mlp-8x512"), ("ddp", "mlp-8x512"), ("step", "mlp-8x256"), ("server", "mlp-8x256")]


def test_constants_need_one_rate_only():
    found = points(4, Shape(RATE), rates=(2 * RATE,), only=("send", "step"))
    small = [point for point in found if point.series == "round-trip" and point.at["nbytes"] < 2**20]
    assert {point.shape.rate for point in small} == {RATE}


def test_a_slow_host_that_was_asked_for_is_the_one_that_is_measured():
    found = list(points(4, Shape(RATE, {2: 1e6}), only=("slow-host",), quick=True))
    assert {point.conditions["rate_of_2"] for point in found} == {1e6}
    assert not list(points(4, Shape(RATE), only=("slow-host",), quick=True))


def test_long_points_are_left_out_and_quick_is_quick():
    slow = points(8, Shape(1e6))
    assert max(point.estimate for point in slow) <= 2.5
    quick = list(points(4, Shape(RATE), quick=True))
    assert sum(point.estimate * (point.repeats + 1) for point in quick) < 60


def test_a_session_comes_back_to_the_sends_that_constants_are_fitted_to():
    every = list(points(8, Shape(RATE), rates=(4 * RATE,)))
    order = list(in_order(every))
    assert [point for point, go in order if not go] == every
    often = [point for point in every if point.goes > PASSES]
    assert {point.series for point in often} == {"send", "round-trip", "send-flood", "send-train", "add"}
    assert {point.shape.rate for point in often} == {RATE}
    assert [go for point, go in order if point == often[0]] == list(range(GOES))
    assert starts(order, often[0]) == pytest.approx([share / (GOES - 1) for share in range(GOES)], abs=0.02)
    assert order[-1] == (often[-1], GOES - 1)
    assert {point.goes for point in points(8, Shape(RATE), quick=True)} == {1}


def starts(order, point):
    """When each go of a point begins, over the duration of the session."""
    whole, passed, found = sum(one.duration for one, _ in order), 0.0, []
    for one, _ in order:
        found += [passed / whole] if one == point else []
        passed += one.duration
    return found


def test_each_third_of_a_session_passes_over_what_is_predicted():
    every = list(points(8, Shape(RATE), rates=(4 * RATE,)))
    order = list(in_order(every))
    assert all(sum(one == point for one, _ in order) == point.goes for point in every)
    trained = [point for point in every if point.family in ("ddp", "server")]
    assert min(point.goes for point in trained) > 1
    for point in [*trained, *(point for point in every if point.goes == PASSES)]:
        each = starts(order, point)
        assert min(after - before for before, after in itertools.pairwise(each)) > 0.1
    long = [point for point in every if point.family in ("send", "all-reduce") and point.estimate > 0.3]
    assert {point.goes for point in long} == {1}
    for point in every:
        assert point.goes * point.repeats >= (12 if point.family == "step" else 3)


def test_sends_alone_are_taken_as_often():
    order = list(in_order(points(2, Shape(RATE), only=("send",))))
    goes = {id(point): [go for one, go in order if one is point] for point, _ in order}
    assert all(each == sorted(each) for each in goes.values())
    assert order[-1][1] == GOES - 1


def collective(series="all-reduce/ring", family="all-reduce", **at):
    return Point(family, series, "plan", Shape(RATE), 2, {"ranks": 2, "nbytes": 4, **at})


def test_a_collective_counts_from_the_first_to_the_last():
    answers = [[[1.0, 2.0, 0.1, 0.1]], [[0.5, 1.75, 0.2, 0.1]], None]
    (made,) = read(collective(), answers)
    assert made.samples == (1.5,)
    assert made.at["rate"] == RATE
    assert not made.warnings


def test_sends_tell_cpu_time_and_when_the_sender_went_on():
    answers = [[[0.0, 1.0, 0.1, 0.05]], [[0.25, 2.0, 0.2, 0.05]]]
    made = {point.series: point.samples for point in read(collective("send", "send"), answers)}
    assert made["send"] == (2.0,)
    assert made["send/left"] == (1.0,)
    assert made["cpu/send"] == pytest.approx((0.3,))
    made = {point.series: point.samples for point in read(collective("send-train", "send", messages=4), answers)}
    assert made["cpu/call"] == pytest.approx((0.1,))


def test_a_server_counts_updates_and_ddp_steps():
    answers = [[[0.0, 2.0, 0.0, 0.0]], [[0.0, 1.0, 0.0, 0.0]], [[0.0, 2.0, 0.0, 0.0]]]
    (made,) = read(collective("server/asynchronous", "server", steps=6), answers)
    assert (made.samples, made.unit) == ((6.0,), "updates/s")
    (made,) = read(collective("ddp", "ddp"), [[[0.0, 1.0], [1.0, 3.0]], [[0.0, 1.0], [1.0, 3.0]]])
    assert made.samples == (1.0, 2.0)
    forward, backward, update = read(collective("step", "step"), [[[0.0, 1.0, 3.0, 3.5]]])
    assert (forward.samples, backward.samples, update.samples) == ((1.0,), (2.0,), (0.5,))


def test_unsteady_readings_are_called_so():
    answers = [[[0.0, 1.0 + index % 2, 0.0, 0.0] for index in range(8)]] * 2
    assert "unsteady" in read(collective(), answers)[0].warnings[0]


class FakeBox:
    """Answers as if every order took 10 ms on every host; breaks at the order that it is told."""

    fail: int | None = None
    orders: list[str]

    def __init__(self, hosts, shape, *, alone, priority):
        assert alone
        self.hosts = hosts
        FakeBox.orders = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        FakeBox.orders.append("down")

    def reshape(self, shape):
        pass

    def order(self, job, **details):
        if FakeBox.fail == len(FakeBox.orders):
            raise BoxError("a host has ended")
        FakeBox.orders.append(job)
        row = [0.0, 0.01] if job == "ddp" else [0.0, 0.01, 0.001, 0.0005]
        return [[row] * int(details["repeats"])] * int(details["ranks"])


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(measuring, "Box", FakeBox)
    monkeypatch.setattr(measuring, "_empty", lambda hosts, command, priority: Dataset("box", made={"command": command}))
    FakeBox.fail = None


def test_an_interrupted_run_keeps_its_points_and_goes_on(fake, tmp_path):
    wanted = list(points(2, Shape(RATE), only=("all-reduce",), quick=True))
    FakeBox.fail = 3
    path = tmp_path / "cluster.json.gz"
    with pytest.raises(BoxError):
        measure(3, Shape(RATE), wanted, output=path)
    kept = Dataset.load(path)
    assert len(kept) == 3
    assert FakeBox.orders[-1] == "down"
    FakeBox.fail = None
    whole = measure(3, Shape(RATE), wanted, output=path, before=kept)
    assert len(whole) == len(wanted)
    assert len(FakeBox.orders) - 1 == len(wanted) - 3


def test_a_run_ends_when_its_time_is_over(fake):
    wanted = list(points(2, Shape(RATE), only=("all-reduce",), quick=True))
    told = []
    data = measure(3, Shape(RATE), wanted, seconds=-1.0, progress=lambda done, of, what: told.append(what))
    assert len(data) == 0
    assert not told
    measure(3, Shape(RATE), wanted, progress=lambda done, of, what: told.append((done, of, what)))
    assert told[-1] == (len(wanted), len(wanted), "done")


class Shares:
    """Says in turn which share of the time was taken away, and nothing was once it has said all."""

    said = ()

    def lap(self):
        share, Shares.said = (Shares.said[0], Shares.said[1:]) if Shares.said else (0.0, ())
        return share


@pytest.fixture
def shares(fake, monkeypatch):
    monkeypatch.setattr(measuring, "Stolen", Shares)
    monkeypatch.setattr(measuring.time, "monotonic", lambda: 0.0)
    Shares.said = ()


def test_what_the_host_disturbed_is_measured_again_when_all_else_is_done(shares):
    wanted = list(points(2, Shape(RATE), only=("ddp", "send"), quick=True))[::-1]
    Shares.said = (0.3,)
    data = measure(3, Shape(RATE), wanted)
    assert FakeBox.orders == [*(point.job for point in wanted), "ddp", "down"]
    assert not any(point.warnings for point in data)
    assert {point.stolen for point in data} == {0.0}


def test_the_calmer_readings_are_kept_and_what_stays_disturbed_says_so(shares):
    wanted = list(points(2, Shape(RATE), only=("ddp",), quick=True))[:1]
    Shares.said = (0.3, 0.1, 0.2)
    (kept,) = measure(3, Shape(RATE), wanted)
    assert kept.stolen == 0.1
    assert kept.warnings == ("disturbed: 10.0 % of the working time was taken away by the host of this machine",)
    assert len(FakeBox.orders) == 3 + 1
    Shares.said = ()
    (calm,) = measure(3, Shape(RATE), wanted, before=Dataset("box", measurements=(kept,)))
    assert calm.stolen == 0.0
    assert FakeBox.orders == ["ddp", "down"]


def one_send():
    return next(point for point in points(2, Shape(RATE), only=("send",)) if point.goes == GOES)


def test_the_readings_of_all_goes_are_joined_but_for_disturbed_ones(shares):
    point = one_send()
    Shares.said = (0.0, 0.3, 0.01)
    data = measure(2, Shape(RATE), [point])
    assert FakeBox.orders == ["send"] * GOES + ["down"]
    for series in ("send", "send/left", "cpu/send"):
        (found,) = data.select(series)
        assert len(found.samples) == (GOES - 1) * point.repeats
        assert found.stolen == pytest.approx(0.01 / (GOES - 1))
        assert not found.warnings
    Shares.said = (0.3, 0.1)
    found = measure(2, Shape(RATE), [point]).select("send")[0]
    assert (len(found.samples), found.stolen) == ((GOES - 2) * point.repeats, 0.0)


def test_readings_that_differ_from_go_to_go_say_so_and_stay(fake, monkeypatch):
    """A machine that is not the same a quarter of an hour later is no reason to keep one of the goes only."""
    turns = iter(range(1, 1000))

    def order(self, job, **details):
        FakeBox.orders.append(job)
        now = next(turns)
        return [[[0.0, 0.01 * now, 0.001, 0.0005]] * int(details["repeats"])] * 2

    monkeypatch.setattr(FakeBox, "order", order)
    monkeypatch.setattr(measuring.time, "monotonic", lambda: 0.0)
    found = measure(2, Shape(RATE), [one_send()]).select("send")[0]
    assert FakeBox.orders == ["send"] * GOES + ["down"]
    assert "unsteady" in found.warnings[0]
    assert found.median == pytest.approx(0.005 * (GOES + 1))


def test_a_run_that_was_interrupted_between_two_goes_takes_those_that_it_lacks(fake, monkeypatch, tmp_path):
    monkeypatch.setattr(measuring.time, "monotonic", lambda: 0.0)
    wanted, path = [one_send()], tmp_path / "cluster.json"
    FakeBox.fail = 2
    with pytest.raises(BoxError):
        measure(2, Shape(RATE), wanted, output=path)
    FakeBox.fail = None
    whole = measure(2, Shape(RATE), wanted, before=Dataset.load(path))
    assert FakeBox.orders == ["send"] * (GOES - 2) + ["down"]
    assert len(whole.select("send")[0].samples) == GOES * wanted[0].repeats
    measure(2, Shape(RATE), wanted, before=whole)
    assert FakeBox.orders == ["down"]


def test_the_end_of_a_disturbance_is_waited_for(shares, monkeypatch):
    slept, looks, now = [], iter((False, False, True)), iter(range(10_000))
    monkeypatch.setattr(measuring.time, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(measuring, "AGAIN", 10.0)
    monkeypatch.setattr(remeasure.time, "sleep", slept.append)
    monkeypatch.setattr(remeasure, "calm_now", lambda: next(looks))
    told = []
    wanted = list(points(2, Shape(RATE), only=("ddp",), quick=True))
    Shares.said = (0.3, 0.3, 0.3, 0.0, 0.0)
    data = measure(3, Shape(RATE), wanted, progress=lambda done, of, what: told.append((done, of, what)))
    assert slept == [remeasure.PAUSE] * 2
    assert (1, 2, "the host of this machine is elsewhere: waiting") in told
    assert not any(point.warnings for point in data)


def test_calm_readings_are_never_measured_again(shares):
    wanted = list(points(2, Shape(RATE), only=("all-reduce",), quick=True))
    measure(3, Shape(RATE), wanted, before=measure(3, Shape(RATE), wanted))
    assert FakeBox.orders == ["down"]


def test_a_disturbed_machine_does_not_make_a_run_endless(shares, monkeypatch):
    """Rounds after the first together take half of its time at most."""
    now = iter(range(10_000))
    monkeypatch.setattr(measuring.time, "monotonic", lambda: float(next(now)))
    wanted = list(points(2, Shape(RATE), only=("ddp", "server"), quick=True))
    Shares.said = (0.3,) * 1000
    measure(3, Shape(RATE), wanted)
    assert len(wanted) < len(FakeBox.orders) - 1 <= 1.5 * len(wanted) + 1


def test_rates_and_sizes_as_tc_writes_them():
    assert (read_rate("1gbit"), read_rate("25 MB/s"), read_size("32kb"), read_size("1mb")) == (
        125e6,
        25e6,
        32768,
        2**20,
    )
    for wrong in ("fast", "10", "5 GiB"):
        with pytest.raises(InputError, match="200mbit"):
            read_rate(wrong)
    with pytest.raises(InputError, match="32kb"):
        read_size("big")
    with pytest.raises(InputError, match="rate_of"):
        Shape(RATE, {1: 0.0})


def test_asking_for_priority_never_fails():
    """A thread of its own keeps the priority; the process of the tests would keep it for all tests after it."""
    before = os.sched_getscheduler(0)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(promptly, COMPUTING).result()
    assert os.sched_getscheduler(0) == before


def test_hosts_of_ordinary_priority_are_told_so_and_recorded(monkeypatch, tmp_path):
    """A thread that asks for priority has none, and a file of the other kind is not continued."""
    monkeypatch.setenv(VARIABLE, ORDINARY)
    monkeypatch.setattr(os, "sched_setscheduler", lambda *given: pytest.fail("it asked for priority"))
    promptly(COMPUTING)
    facts = {"cpu": "a CPU"}, {"torch": "2"}
    monkeypatch.setattr(measuring, "machine_and_versions", lambda: facts)
    made = measuring._empty(2, "command", ORDINARY)
    assert made.made["priority"] == ORDINARY
    measuring.goes_on(made, tmp_path / "a.json", ORDINARY)
    with pytest.raises(InputError, match="ordinary priority"):
        measuring.goes_on(made, tmp_path / "a.json")


def test_a_shape_is_read_from_options_and_hosts_that_are_not_there_are_refused():
    shape = read_shape("200mbit", ["1=50mbit"], burst="32kb", queue="512kb", hosts=2)
    assert (shape.rate, shape.rate_of, shape.burst, shape.queue) == (25e6, {1: 6.25e6}, 32768.0, 524288.0)
    for text in ("2=50mbit", "50mbit", "a=50mbit"):
        with pytest.raises(InputError, match="--rate-of: no host and rate"):
            read_shape("200mbit", [text], burst="32kb", queue="512kb", hosts=2)


def test_families_are_checked_by_name():
    assert check_families(["send", "ddp"]) == ("send", "ddp")
    with pytest.raises(UnknownNameError, match="snd"):
        check_families(["snd"])
