"""`simperf calibrate cluster` on the command line, without a cluster."""

import pytest
from typer.testing import CliRunner

from simperf.calibrate.cluster import needs
from simperf.cli.calibrate import app
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
        (["--replay", "no-such.json"], "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_set_up(arguments, message, monkeypatch):
    monkeypatch.setattr(needs, "check", lambda: pytest.fail("the machine was looked at"))
    found = call(*arguments).exception
    assert isinstance(found, SimperfError)
    assert found.exit_code == 2
    assert message in str(found)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(needs, "missing", lambda: [Problem("network namespaces need root")])
    found = call("--quick").exception
    assert isinstance(found, InputError)
    assert "root" in str(found)


def test_an_unknown_family_is_named_with_the_nearest():
    assert isinstance(call("--only", "all-reduces").exception, UnknownNameError)


def test_a_recorded_cluster_is_shown_beside_its_prediction(tmp_path):
    pytest.importorskip("lmfit")
    path = tmp_path / "cluster.json.gz"
    synthesise().save(path)
    found = call("--replay", path)
    assert found.exit_code == 0
    assert "prediction meets reality" in found.stdout
    assert "efficiency" in found.stdout
    every = call("--replay", path, "--points").stdout
    assert "ranks=3 nbytes=256KiB rate=800Mbit/s" in every
    assert len(every.splitlines()) > len(found.stdout.splitlines()) + 40
