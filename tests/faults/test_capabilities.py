"""A request to end while the machine's capabilities are tried: the namespace of the trial is deleted."""

import os
import signal
import subprocess

import pytest

from simperf.calibrate.cluster import requirements
from simperf.cli import main

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.mark.parametrize(("name", "code"), [("SIGHUP", 129), ("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.parametrize("step", ["netns add", "link add v0", "qdisc add", "link add b0"])
def test_the_namespace_of_the_trial_does_not_stay(name, code, step, monkeypatch, tmp_path):
    there = set()

    def run(words, **_):
        line = " ".join(words)
        if "netns add" in line:
            there.add(words[-1])
        if step in line:
            os.kill(os.getpid(), getattr(signal, name))
        if "netns delete" in line:
            there.remove(words[-1])
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(requirements.subprocess, "run", run)
    monkeypatch.setattr(requirements, "find_spec", lambda name: True)
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 0, raising=False)
    monkeypatch.setattr(requirements.shutil, "which", lambda tool: tool)
    monkeypatch.setattr(requirements.sys, "platform", "linux")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["calibrate", "cluster", "-o", str(tmp_path / "recording.json")]) == code
    finally:
        signal.signal(signal.SIGINT, before)
    assert not there
    assert list(tmp_path.iterdir()) == []
