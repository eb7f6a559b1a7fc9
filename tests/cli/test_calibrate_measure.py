"""What `simperf calibrate measure` says and how it ends, on a pretended machine: nothing here runs torch."""

import os
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.measure import allocator, bench, clock, facts, remeasure, session, task
from simperf.cli import main
from simperf.cli.calibrate_measure import measure


class Machine:
    """Points that take no time, and which share of it is taken away from each in turn."""

    def __init__(self):
        self.shares, self.moment, self.time, self.calls = [], lambda name: None, 0.0, []

    def lap(self):
        return self.shares.pop(0) if self.shares else 0.0

    def tasks(self, bench, only):
        for name in ("a", "b", "c"):
            yield "gemm", task.point("op/gemm", {"name": name}, lambda name=name: self.take(name))

    def take(self, name):
        self.calls.append(name)
        self.moment(name)
        return [1.0] * 5


@pytest.fixture
def machine(monkeypatch, tmp_path):
    made = Machine()
    fake = SimpleNamespace(torch=None, device="cpu", threads=2, cuda=False, recover=lambda: None)
    monkeypatch.setattr(bench, "Bench", lambda *_, **__: fake)
    monkeypatch.setattr(facts, "machine_facts", lambda *_: {"cpu": "Test CPU 1"})
    monkeypatch.setattr(facts, "version_facts", lambda _: {"torch": "2.9.0"})
    monkeypatch.setattr(facts, "busy", lambda: "")
    monkeypatch.setattr(allocator, "keep_memory", lambda: True)
    monkeypatch.setattr(task, "tasks", made.tasks)
    monkeypatch.setattr(session, "Stolen", lambda: made)
    monkeypatch.setattr(remeasure, "calm_now", lambda: True)
    monkeypatch.chdir(tmp_path)
    return made


def run(capsys, *arguments):
    code = main(["calibrate", "measure", "-o", "m.json", *arguments])
    return code, capsys.readouterr().err


def test_a_calm_session_says_nothing_of_disturbances(machine, capsys):
    code, said = run(capsys, "--quick")
    assert code == 0
    assert "wrote m.json: 3 points" in said
    assert "disturbed" not in said
    assert "again" not in said
    assert "next: simperf calibrate fit m.json" in said


def test_what_was_measured_again_is_told(machine, capsys):
    machine.shares = [0.3, 0.0, 0.2]
    code, said = run(capsys)
    assert code == 0
    assert machine.calls == ["a", "b", "c", "a", "c"]
    assert "[3/3] gemm, again" in said
    assert "measured again because it was disturbed: 2 points, 2 of them calm now" in said
    assert "the same command" not in said


def test_what_stays_disturbed_is_told_with_what_to_do(machine, capsys):
    machine.shares = [0.3] * 100
    _, said = run(capsys, "--fresh")
    assert "measured again because it was disturbed: 3 points, 0 of them calm now" in said
    told = "on 3 of 3 points this machine's host gave over 2% of the time to others"
    assert f"{told}; the same command without --fresh measures them again" in said
    machine.shares, machine.calls = [], []
    _, said = run(capsys, "--only", "gemm")
    assert "m.json holds 3 points: they are kept, if calm" in said
    assert machine.calls == ["a", "b", "c"]
    assert "3 of them calm now" in said
    assert not any(point.stolen for point in Dataset.load("m.json"))


def test_a_session_without_time_left_says_so_and_measures_nothing_again(machine, capsys, monkeypatch):
    machine.shares = [0.3, 0.0, 0.3]
    monkeypatch.setattr(clock, "QUICK", replace(clock.QUICK, session=0.0))
    _, said = run(capsys, "--quick")
    assert machine.calls == ["a", "b", "c"]
    assert "measured again" not in said
    told = "on 2 of 3 points this machine's host gave over 2% of the time to others"
    assert f"{told}; no time was left to measure all of them again; the same command measures them again" in said


def test_what_could_not_be_measured_again_is_told_with_the_reason(machine, capsys):
    machine.shares = [0.3]

    def moment(name):
        if machine.calls.count(name) > 1:
            raise RuntimeError("out of memory")

    machine.moment = moment
    code, said = run(capsys)
    assert code == 0
    assert "could not be measured again, earlier readings stay: op/gemm at name a: RuntimeError: out of memory" in said
    assert "on 1 of 3 points this machine's host gave over 2% of the time to others" in said
    assert [point.median for point in Dataset.load("m.json")] == [1.0] * 3


def test_a_session_is_as_long_as_the_documents_say():
    assert 90.0 < clock.QUICK.session < 120.0
    assert 540.0 < clock.FULL.session < 600.0


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
@pytest.mark.parametrize("where", ["b", "again"])
def test_the_exit_code_tells_which_signal_ended_it_and_all_points_are_kept(machine, capsys, name, code, where):
    machine.shares = [0.3]

    def moment(at):
        if (at == where) if where == "b" else len(machine.calls) == 4:
            os.kill(os.getpid(), getattr(signal, name))
            time.sleep(5)

    machine.moment = moment
    usual = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    try:
        ended, said = run(capsys)
        assert {number: signal.getsignal(number) for number in usual} == usual
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ended == code
    points = 1 if where == "b" else 3
    assert f"interrupted: m.json has {points} points; the same command continues" in said
    assert len(Dataset.load("m.json")) == points


def test_the_command_is_documented():
    assert measure.__doc__
