"""A boxed cluster is taken down whatever happens, and two at a time are refused.

What needs root or torch is skipped without; the rest plays the kernel.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from simperf.calibrate.cluster import box as boxes
from simperf.calibrate.cluster import network, requirements
from simperf.calibrate.cluster.box import Box
from simperf.calibrate.cluster.network import BoxError, Network, others, remove_stale
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset
from tests.calibrate.test_cluster_network import RATE, SCRIPT, boxed, ours, with_torch


class Kernel:
    """Keeps namespaces like the kernel; interrupts at the calls that it is told."""

    def __init__(self, *interrupts):
        self.names, self.calls, self.interrupts = [], 0, set(interrupts)

    def __call__(self, *words):
        self.calls += 1
        done = self.calls - 1 not in self.interrupts
        if words[:3] == ("ip", "netns", "add"):
            self.names.append(words[3])
        if words[:3] == ("ip", "netns", "delete") and done:
            if words[3] not in self.names:
                raise BoxError("no such namespace")
            self.names.remove(words[3])
        if not done:
            raise KeyboardInterrupt
        return "\n".join(self.names) if words == ("ip", "netns", "list") else ""


@pytest.fixture
def kernel(monkeypatch):
    def made(*interrupts):
        fake = Kernel(*interrupts)
        monkeypatch.setattr(network, "_call", fake)
        return fake

    return made


def test_an_interrupt_at_any_moment_of_setting_up_leaves_nothing(kernel):
    whole = kernel()
    with Network(2, Shape(RATE)):
        calls = whole.calls
        assert len(whole.names) == 3
    assert not whole.names
    assert calls > 20
    for moment in range(calls):
        fake = kernel(moment)
        with pytest.raises(KeyboardInterrupt), Network(2, Shape(RATE)):
            pytest.fail("it was interrupted before")
        assert not fake.names, moment


def test_an_interrupt_while_all_is_taken_down_leaves_nothing(kernel):
    fake = kernel()
    with Network(2, Shape(RATE)):
        before = fake.calls
    down = fake.calls - before
    for moment in range(before, before + down):
        fake = kernel(moment, moment + 2)  # whoever waits presses Ctrl-C twice
        with pytest.raises(KeyboardInterrupt), Network(2, Shape(RATE)):
            pass
        assert not fake.names, moment


def test_one_process_has_one_cluster(kernel):
    fake = kernel()
    with Network(2, Shape(RATE)):
        with pytest.raises(BoxError, match="already"), Network(2, Shape(RATE)):
            pass
        assert len(fake.names) == 3
    assert not fake.names


def test_names_of_living_ended_and_foreign_processes_are_told_apart(kernel):
    fake = kernel()
    parent, started = os.getppid(), network._started(os.getppid())
    foreign = ["other-1-2-s", "simperf-x", f"simperf-{parent}-{started}-h0-x"]
    fake.names += [f"simperf-{parent}-{started}-s", f"simperf-{parent}-{started - 1}-h0", *foreign]
    assert others() == [parent]
    assert remove_stale() == [f"simperf-{parent}-{started - 1}-h0"]
    assert fake.names == [f"simperf-{parent}-{started}-s", *foreign]


def test_folders_of_runs_that_were_killed_are_told_from_those_of_others(tmp_path):
    own, started = os.getpid(), network._started(os.getpid())
    names = [f"simperf-{own}-{started}-ab_1", f"simperf-{own}-{started - 1}-cd2", "simperf-x7y8", "other-1-2-z"]
    for name in names:
        (tmp_path / name).mkdir()
    assert network.remains(tmp_path) == [tmp_path / names[1]]


@pytest.mark.parametrize(("word", "said"), [("tbf", "token bucket"), ("veth", "veth"), ("bridge", "bridges")])
def test_a_kernel_without_a_part_says_which_and_keeps_nothing(word, said, monkeypatch):
    names = []

    def run(words, **_):
        if words[:3] == ["ip", "netns", "add"]:
            names.append(words[3])
        if words[:3] == ["ip", "netns", "delete"]:
            names.remove(words[3])
        refused = word in words
        return subprocess.CompletedProcess(words, int(refused), "", "Error: Specified qdisc kind is unknown.")

    monkeypatch.setattr(requirements.subprocess, "run", run)
    (problem,) = requirements._kernel()
    assert said in problem.message
    assert "unknown" in str(problem.value)
    assert not names


@boxed
def test_a_second_run_is_refused_while_the_first_is_up():
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE) as first:
        assert first.stdout.readline().strip() == b"up"
        with (
            pytest.raises(BoxError, match=f"another boxed cluster.*process {first.pid}"),
            Box(2, Shape(RATE), alone=True),
        ):
            pass
        assert len(ours(first.pid)) == 3
        first.send_signal(signal.SIGINT)
        first.wait()
    assert not ours(first.pid)


@boxed
@with_torch
def test_ctrl_c_takes_a_run_down_and_keeps_its_points(tmp_path):
    path = tmp_path / "cluster.json.gz"
    words = [sys.executable, "-m", "simperf", "calibrate", "cluster", "--hosts", "2", "--only", "send", "-o", str(path)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True) as run:
        assert any(b"[0/" in line for line in iter(run.stderr.readline, b""))
        assert ours(run.pid)
        time.sleep(1.0)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        said = run.stderr.read().decode()
        assert run.wait(timeout=20) == 130
    assert "taken down" in said
    assert "Traceback" not in said
    assert not ours(run.pid)
    assert len(Dataset.load(path)) > 0


@boxed
@with_torch
def test_a_host_that_hangs_is_named_and_all_is_taken_down(monkeypatch):
    with pytest.raises(BoxError, match=r"hosts \[1\].*not answered"), Box(2, Shape(RATE)) as box:
        monkeypatch.setattr(boxes, "PATIENCE", 1.0)
        box.workers[1].send_signal(signal.SIGSTOP)
        box.order("step", ranks=0)  # nobody's work: those who are well answer at once
    assert not ours(os.getpid())
    assert not box.workers


BOX = """
import time
from simperf.calibrate.cluster.box import Box
from simperf.calibrate.cluster.shape import Shape
with Box(2, Shape(25e6)) as box:
    print(*(worker.pid for worker in box.workers), flush=True)
    time.sleep(60)
"""


@boxed
@with_torch
def test_hosts_end_with_a_killed_run_and_the_next_removes_the_rest():
    with subprocess.Popen([sys.executable, "-c", BOX], stdout=subprocess.PIPE) as victim:
        workers = [int(word) for word in victim.stdout.readline().split()]
        assert len(workers) == 2
        victim.kill()
        victim.wait()
    limit = time.monotonic() + 10.0
    while any(network._started(worker) for worker in workers) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(network._started(worker) for worker in workers)
    assert len(remove_stale()) == 3
    assert not ours(victim.pid)
