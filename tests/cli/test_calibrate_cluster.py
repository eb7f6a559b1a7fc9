"""`simperf calibrate cluster` on the command line, without a cluster."""

import os
import signal
import time
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from simperf.calibrate.cluster import measure, requirements
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.cli.calibrate import app
from simperf.cli.calibrate_cluster import cluster
from simperf.errors import InputError, Problem, SimperfError, UnknownNameError
from tests.calibrate.test_cluster_fitting import synthesise

RUN = CliRunner()


def call(*arguments):
    return RUN.invoke(app, ["cluster", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "fast"], "200mbit"),
        (["--rate-of", "9=50mbit"], "host 0 to 3"),
        (["--rate-of", "1"], "HOST=RATE"),
        (["--only", "sends"], "send"),
        (["--burst", "a lot"], "32kb"),
        (["--replay", "no-such.json"], "no such file"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_set_up(arguments, message, monkeypatch):
    monkeypatch.setattr(requirements, "check", lambda: pytest.fail("the machine was looked at"))
    found = call(*arguments).exception
    assert isinstance(found, SimperfError)
    assert found.exit_code == 2
    assert message in str(found)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(requirements, "missing", lambda: [Problem("network namespaces need root")])
    found = call("--quick").exception
    assert isinstance(found, InputError)
    assert "root" in str(found)


def test_an_unknown_family_is_named_with_the_nearest():
    assert isinstance(call("--only", "all-reduces").exception, UnknownNameError)


def test_a_recorded_cluster_is_shown_beside_its_prediction(tmp_path):
    pytest.importorskip("scipy")
    path = tmp_path / "cluster.json.gz"
    synthesise().save(path)
    found = call("--replay", path)
    assert found.exit_code == 0
    assert "prediction meets reality" in found.stdout
    assert "CPU a byte" in found.stdout
    every = call("--replay", path, "--points").stdout
    assert "ranks=3 nbytes=256KiB rate=800Mbit/s" in every
    assert len(every.splitlines()) > len(found.stdout.splitlines()) + 40


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"priority": "ordinary"}, "of ordinary priority"),
        ({"priority": "real-time"}, "of real-time priority"),
        ({}, "of real-time priority, as all were when this file was made"),
    ],
)
def test_a_recorded_cluster_is_shown_with_the_priority_of_its_hosts(tmp_path, made, told):
    pytest.importorskip("scipy")
    path = tmp_path / "cluster.json.gz"
    replace(synthesise(), made=made).save(path)
    assert call("--replay", path).stdout.splitlines()[0] == f"measured with hosts {told}"


def test_a_file_of_something_else_is_told_with_its_name(tmp_path):
    pytest.importorskip("scipy")
    other, few, good = tmp_path / "machine.json", tmp_path / "few.json", tmp_path / "cluster.json"
    Dataset("a CPU", measurements=(Measurement("op/gemm", {"device": "cpu"}, (1.0,)),)).save(other)
    synthesise().save(good)
    for arguments in (("--replay", other), ("--replay", good, "--beside", other)):
        assert "machine.json: holds measurements that are of no boxed cluster" in str(call(*arguments).exception)
    Dataset("begun", measurements=(Measurement("send", {"nbytes": 4, "burst": 1.0}, (1.0,)),)).save(few)
    assert "few.json: the data set has no point of series 'add'" in str(call("--replay", few).exception)


@pytest.fixture
def machine(monkeypatch):
    """A machine that can box a cluster, in which nothing is measured; gives what would have been asked for."""
    asked = {}

    def pretend(hosts, shape, wanted, **given):
        asked.update(given, hosts=hosts, shape=shape, wanted=wanted)
        given["progress"](len(wanted), len(wanted), "done")
        if asked.get("interrupt"):
            os.kill(os.getpid(), asked["interrupt"])
            time.sleep(5)
        points = (Measurement("add", {"nbytes": 4}, (1.0,), warnings=("unsteady",)),)
        return Dataset("pretended", measurements=points)

    monkeypatch.setattr(requirements, "missing", list)
    monkeypatch.setattr(measure, "measure", pretend)
    monkeypatch.setattr(measure, "machine_and_versions", lambda: ({"cpu": "Test CPU 1"}, {"torch": "2.9.0"}))
    return asked


def test_what_was_asked_for_is_measured(machine, tmp_path):
    path = tmp_path / "c.json"
    found = call("--hosts", 3, "--rate-of", "2=50mbit", "--rates", "100mbit, 80mbit", "--only", "send", "-o", path)
    assert found.exit_code == 0, found.exception
    assert machine["hosts"] == 3
    assert machine["shape"].rate == 25e6
    assert machine["shape"].rate_of == {2: 6.25e6}
    assert {point.family for point in machine["wanted"]} == {"send"}
    assert "1 points, 1 of them unsteady" in found.output
    assert f"--replay {path}" in found.output
    # the record: no file, which may have a user's name in it
    asked = "--hosts 3 --rate 200mbit --rates 100mbit, 80mbit --burst 32kb --queue 512kb --only send --rate-of 2=50mbit"
    assert machine["command"] == f"simperf calibrate cluster {asked}"


def test_a_file_that_is_there_is_continued_unless_it_is_to_begin_anew(machine, tmp_path):
    path = tmp_path / "c.json"
    point = Measurement("add", {"nbytes": 8, "burst": 1.0}, (1.0,))
    begun = Dataset("begun", {"cpu": "Test CPU 1"}, {"torch": "2.9.0"}, measurements=(point,))
    begun.save(path)
    assert "holds 1 points: they are kept" in call("--only", "send", "-o", path).output
    assert machine["before"].title == "begun"
    call("--only", "send", "-o", path, "--fresh")
    assert machine["before"] is None
    machine.clear()
    replace(begun, versions={"torch": "2.8.0"}).save(path)
    assert "another machine or set-up" in str(call("--only", "send", "-o", path).exception)
    replace(begun, measurements=(Measurement("op/gemm", {"device": "cpu"}, (1.0,)),)).save(path)
    assert "of no boxed cluster" in str(call("--only", "send", "-o", path).exception)
    assert not machine, "nothing is measured"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_says_how_to_go_on_and_which_signal_it_was(machine, tmp_path, name):
    machine["interrupt"] = number = getattr(signal, name)
    found = call("--only", "send", "-o", tmp_path / "c.json")
    assert found.exit_code == 128 + number
    assert "the same command continues with" in found.output
    found = call("--only", "send", "-o", tmp_path / "c.json", "--fresh")
    assert "the same command without --fresh continues with" in found.output


def test_the_command_is_documented():
    assert cluster.__doc__
