"""The machine at work in a terminal (simperf.report.live)."""

import io

import pytest
from rich.console import Console

from simperf.cli import main
from simperf.report.live import Frames, play_back
from simperf.results import Result
from simperf.run import run
from simperf.scenario import load_scenario


@pytest.fixture(scope="module")
def result():
    return run(load_scenario("d2l/copy-overlap"))


def shown(view):
    stream = io.StringIO()
    Console(file=stream, width=120).print(view)
    return stream.getvalue()


def test_rows_queues_and_links_at_an_instant(result):
    frames = Frames(result)
    middle = shown(frames.at(result.time / 2))
    for word in ("gpu0 stream0", "queue", "link", "206.4 ms of 412.8 ms", "% full"):
        assert word in middle
    assert "idle" in shown(frames.at(result.time * 2))


def test_instants_begin_at_0_and_end_at_the_end(result):
    instants = list(Frames(result).instants(1.0, rate=4))
    assert instants[0] == 0
    assert instants[-1] == result.time
    assert len(instants) == 5


def test_a_run_is_played_back_at_the_pace_that_was_asked_for(result, capsys):
    naps = []
    play_back(result, 0.5, sleep=naps.append)
    assert sum(naps) == pytest.approx(0.5, abs=0.1)
    assert "412.8 ms" in capsys.readouterr().err


def test_a_run_without_a_timeline_has_a_clock_at_least():
    assert "1.000 s of 1.000 s" in shown(Frames(Result("bare", 1.0)).at(1.0))


def test_the_command(capsys):
    assert main(["run", "d2l/two-devices", "--live", "--pace", "0.2 s"]) == 0
    shown = capsys.readouterr()
    assert "gpu1" in shown.err
    assert "Where the time went" in shown.out
    assert main(["run", "d2l/two-devices", "--live", "--pace", "fast"]) == 2
    assert "--pace" in capsys.readouterr().err
