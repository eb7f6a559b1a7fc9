"""A table of sends of any program becomes a network stack that `run` plays: constants that were put in come out."""

import csv

import pytest
from typer.testing import CliRunner

from simperf.calibrate.cluster.sends import read_sends, sends_model
from simperf.cli.app import app
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.run import run
from simperf.scenario import make_scenario

pytest.importorskip("scipy")

SIZES = (4, 1024, 65536, 1 << 20, 1 << 22, 1 << 24)


def seconds(nbytes, *, bandwidth="1 TB/s", **machine):
    """Time of a send between two hosts [s]."""
    tables = {
        "node": [{"id": f"h{i}", "kind": "cpu", "server": f"h{i}"} for i in range(2)]
        + [{"id": "switch", "kind": "switch"}],
        "link": [{"a": "h{0..1}", "b": "switch", "bandwidth": bandwidth}],
        "shared_cores": 8.0,
    }
    stack = {"use": "linux-gloo", "byte_rate": "1e12 B/s", "bulk_rate": "1e12 B/s", **machine.pop("stack", {})}
    program = {"use": "sends", "source": "h0", "target": "h1", "nbytes": f"{nbytes} B"}
    data = {"machine": {**tables, "network_stack": stack}, "program": program, **machine}
    return run(make_scenario(data)).time


def table(path, rows, header=("nbytes", "seconds")):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_the_rate_of_a_connection_and_the_wake_up_come_out(tmp_path):
    truth = {"wake": "150 us", "rate": "40 MB/s"}
    file = table(tmp_path / "sends.csv", [(size, seconds(size, stack=truth)) for size in SIZES])
    model = sends_model(read_sends(file))["network-stack"]
    assert model.constant["wake"].value == pytest.approx(150e-6, rel=0.15)
    assert model.constant["rate"].value == pytest.approx(40e6, rel=0.01)
    assert set(model.constant) == {"wake", "rate"}


def test_where_the_rate_of_the_links_is_known_it_is_payload_a_byte(tmp_path):
    rows = [
        (size, seconds(size, bandwidth=f"{rate} B/s", stack={"efficiency": 0.9}), rate, 2)
        for rate in (25e6, 125e6)
        for size in SIZES
    ]
    file = table(tmp_path / "sends.csv", rows, ("nbytes", "seconds", "rate", "hosts"))
    model = sends_model(read_sends(file))["network-stack"]
    assert model.constant["efficiency"].value == pytest.approx(0.9, rel=0.02)


def test_from_the_table_to_a_run(tmp_path):
    """`calibrate fit` makes a profile, and a scenario that names it takes the times of the table."""
    truth = {"wake": "400 us", "rate": "30 MB/s"}
    times = {size: seconds(size, stack=truth) for size in SIZES}
    file = table(tmp_path / "sends.csv", times.items())
    profile = tmp_path / "mine.toml"
    done = CliRunner().invoke(app, ["calibrate", "fit", str(file), "-o", str(profile)])
    assert done.exit_code == 0, done.output
    for size, time in times.items():
        found = seconds(size, calibration={"use": str(profile)})
        assert found == pytest.approx(time, rel=0.05), size
    assert Catalog.load().profile(str(profile)).model["network-stack"].points == len(SIZES)


def test_a_message_faster_than_the_catalogue_s_cpu_time_is_less_of_it(tmp_path):
    fast = {"wake": "0 s", "message": "1 us", "call": "2 us", "cold": "0 s", "rate": "40 MB/s"}
    file = table(tmp_path / "sends.csv", [(size, seconds(size, stack=fast)) for size in SIZES])
    found = sends_model(read_sends(file))["network-stack"]
    assert found.constant["wake"].value == 0.0
    assert 0.0 < found.constant["call"].value < 17e-6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nbytes,time\n1,2\n", "seconds"),
        ("nbytes,seconds\n4,fast\n", "number"),
        ("nbytes,seconds\n4,-1\n", "above 0"),
        ("nbytes,seconds\n4,1\n8,1\n9,1\n", "far apart"),
        ("nbytes,seconds,hosts\n4,1,3\n", "two hosts"),
        ("", "the file is empty"),
    ],
)
def test_what_is_wrong_with_a_table_is_told(text, words, tmp_path):
    file = tmp_path / "sends.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_sends(file)


def test_a_profile_of_a_network_stack_is_refused_where_no_host_has_one(tmp_path):
    file = table(tmp_path / "sends.csv", [(size, seconds(size)) for size in SIZES])
    profile = tmp_path / "mine.toml"
    CliRunner().invoke(app, ["calibrate", "fit", str(file), "-o", str(profile)])
    data = {"machine": {"use": "dgx-1v"}, "program": {"use": "sends"}, "calibration": {"use": str(profile)}}
    with pytest.raises(InputError, match="changes nothing"):
        run(make_scenario(data))
