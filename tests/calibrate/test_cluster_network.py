"""Real namespaces: set up, shaped, and gone afterwards, whatever happens; skipped where the kernel refuses them."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import wraps
from importlib.util import find_spec
from pathlib import Path

import pytest

from simperf.calibrate.cluster import network, requirements
from simperf.calibrate.cluster.box import Box
from simperf.calibrate.cluster.network import BoxError, Network, remove_stale
from simperf.calibrate.cluster.shape import Shape

RATE = 25e6


def lacking():
    found = [problem for problem in requirements.missing() if "torch" not in problem.message]
    return found[0].message if found else ""


REASON = lacking()
LOCK = Path(tempfile.gettempdir()) / f"{network.PREFIX}-boxed-tests-{os.getuid()}"


def boxed(test):
    """A test of real namespaces; one at a time on a machine, for a second process would remove what this one left."""

    @wraps(test)
    def locked(*arguments, **options):
        with LOCK.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            test(*arguments, **options)

    return pytest.mark.skipif(bool(REASON), reason=f"no boxed cluster here: {REASON}")(locked)


with_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def namespaces():
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in done.stdout.splitlines() if line.strip()}


def ours(process):
    return {name for name in namespaces() if name.startswith(f"{network.PREFIX}-{process}-")}


@boxed
def test_hosts_reach_each_other_and_are_shaped_in_both_directions():
    with Network(3, Shape(RATE, {1: RATE / 4})) as net:
        assert len(ours(os.getpid())) == 4
        done = subprocess.run(net.inside(0, ["ip", "-br", "address"]), capture_output=True, text=True, check=True)
        assert "10.77.0.1/24" in done.stdout
        for where, device, rate in (
            (net.name(0), "eth0", "200Mbit"),
            (net.name(1), "eth0", "50Mbit"),
            (net.switch, "p1", "50Mbit"),
        ):
            words = ["tc", "-n", where, "qdisc", "show", "dev", device]
            shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            assert "tbf" in shown
            assert f"rate {rate} burst 32" in shown
        net.reshape(Shape(2 * RATE))
        words = ["tc", "-n", net.name(1), "qdisc", "show", "dev", "eth0"]
        assert "400Mbit" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert not ours(os.getpid())


@boxed
def test_an_error_inside_takes_everything_down():
    with pytest.raises(RuntimeError, match="inside"), Network(2, Shape(RATE)):
        raise RuntimeError("inside")
    assert not ours(os.getpid())


@boxed
def test_a_link_that_the_kernel_refuses_takes_everything_down():
    with pytest.raises(BoxError, match="tc"), Network(2, Shape(RATE, burst=1e30)):
        pass
    assert not ours(os.getpid())


SCRIPT = """
import sys, time
from simperf.calibrate.cluster.network import Network
from simperf.calibrate.cluster.shape import Shape
with Network(2, Shape(25e6)):
    print("up", flush=True)
    time.sleep(60)
"""


@boxed
def test_what_a_killed_run_leaves_is_removed_by_the_next():
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE) as victim:
        assert victim.stdout.readline().strip() == b"up"
        assert len(ours(victim.pid)) == 3
        assert not remove_stale()  # it lives
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    assert len(remove_stale()) == 3
    assert not ours(victim.pid)


@boxed
@with_torch
def test_torch_on_two_hosts_takes_what_the_link_allows():
    with Box(2, Shape(RATE)) as box:
        read = box.order("send", ranks=2, nbytes=1 << 20, repeats=3, gap=3e-3)
        times = [max(row[1] for row in turn) - min(row[0] for row in turn) for turn in zip(*read, strict=True)]
        assert min(times) == pytest.approx(0.0428, rel=0.1)
        plan = box.order("plan", ranks=2, workers=2, algorithm="ring", nbytes=4096, repeats=2)
        assert all(len(one) == 2 for one in plan)
        started = time.monotonic()
        with pytest.raises(BoxError, match="has ended"):
            box.order("no_such_job", ranks=2, repeats=1)
        assert time.monotonic() - started < 20
    assert not ours(os.getpid())


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(requirements.shutil, "which", lambda tool: None if tool == "tc" else f"/sbin/{tool}")
    monkeypatch.setattr(requirements, "find_spec", lambda name: None)
    messages = " ".join(problem.message for problem in requirements.missing())
    assert "root" in messages
    assert "commands are missing: tc" in messages
    assert "torch" in messages
    monkeypatch.setattr(requirements.sys, "platform", "darwin")
    assert [problem.message for problem in requirements.missing()] == [
        "a boxed cluster needs Linux: its hosts are network namespaces"
    ]
