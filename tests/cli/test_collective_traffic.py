"""Late ranks, background traffic (simperf.study.collective.disturbances) and bounds of `simperf collective`."""

import json

import pytest

from simperf.collectives.plan_bounds import PlanBounds
from tests.cli.test_collective import run

RING = ["collective", "all-reduce", "--topology", "ring", "--ranks", "4", "-b", "4M", "-e", "4M"]
STAR = ["collective", "all-reduce", "--topology", "star", "--ranks", "8", "-b", "1M", "-e", "1M"]


def time_of(capsys, *words):
    code, out, err = run(capsys, *words, "--format", "json")
    assert code == 0, err
    return json.loads(out)[0]["time"]


@pytest.mark.parametrize(
    "words", [["--late", "2=1 ms"], ["--late", "r2=1 ms"], ["--late", "2=1ms", "--late", "0=3 us"]]
)
def test_a_late_rank_delays_everybody(capsys, words):
    assert time_of(capsys, *RING, *words) == pytest.approx(1e-3 + time_of(capsys, *RING), rel=1e-9)


def test_background_traffic_takes_its_share(capsys):
    alone = time_of(capsys, *RING, "--latency", "0 s")
    flow = ["--background", "r0>r1=10 GB/s"]
    assert time_of(capsys, *RING, "--latency", "0 s", *flow) == pytest.approx(alone * 50 / 40, rel=1e-9)
    assert time_of(capsys, *RING, "--latency", "0 s", *flow, *flow) == pytest.approx(alone * 50 / 30, rel=1e-9)
    assert time_of(capsys, *RING, "--latency", "0 s", "--background", "r1>r0=10 GB/s") == alone
    _, out, _ = run(capsys, *RING, *flow, "--late", "1=5 us")
    assert "# late: 1=5 us\n# background: r0>r1=10 GB/s" in out


def test_nodes_of_a_server_by_name(capsys):
    dgx = ["collective", "all-reduce", "--algo", "ring", "--server", "dgx-1v", "-b", "16M", "-e", "16M"]
    alone = time_of(capsys, *dgx)
    assert time_of(capsys, *dgx, "--late", "gpu3=2 ms") == pytest.approx(alone + 2e-3, rel=0.01)
    assert time_of(capsys, *dgx, *(f"--background=gpu{i}>gpu{j}=9 GB/s" for i in range(4) for j in range(4, 8))) > alone


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (["--late", "4=1 ms"], ["no such rank", "0 to 3"]),
        (["--late", "-1=1 ms"], ["no such rank"]),
        (["--late", "r9=1 ms"], ["no such rank"]),
        (["--late", "2"], ["RANK=TIME"]),
        (["--late", "2=5"], ["unit is missing", "--late"]),
        (["--late", "2=5 GB"], ["--late"]),
        (["--late", "2=-5 us"], ["0 or more"]),
        (["--late", "2=5 us", "--late", "r2=6 us"], ["already"]),
        (["--late", "8=5 us", "--late", "2=6"], ["no such rank", "unit is missing"]),
        (["--background", "r0>r7=1 GB/s"], ["no such node", "r7"]),
        (["--background", "r0>r0=1 GB/s"], ["stays on its node"]),
        (["--background", "r0>r1"], ["SRC>DST=RATE"]),
        (["--background", "r0>r1=5 Gb/s"], ["bits or bytes", "--background"]),
        (["--late", "2=5 us", "--map", "m.svg"], ["has no place"]),
    ],
)
def test_what_is_refused_with_a_reason(capsys, words, texts):
    code, out, err = run(capsys, *RING, *words)
    assert code == 2
    assert out == ""
    for text in texts:
        assert text in err


def test_what_is_too_large_is_left_out_and_said(capsys, monkeypatch):
    monkeypatch.setattr("simperf.study.collective.comparison.SURVEY", PlanBounds(events=100, crossings=90))
    code, out, err = run(capsys, *STAR, "--best")
    assert code == 0
    assert "sharded at 1M" in out
    assert "left out: halving-doubling: its sends over 8 ranks cross more than 90 links" in err
    assert "--algo halving-doubling grants it more, and --force all" in err
    assert run(capsys, *STAR, "--algo", "halving-doubling")[0] == 0
    code, out, err = run(capsys, *STAR, "--best", "--force")
    assert "sharded at 1M" in out
    assert "cross more than" not in err


def test_a_map_leaves_out_what_is_too_large(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("simperf.study.collective.comparison.MAP", PlanBounds(crossings=50))
    code, _, err = run(capsys, *STAR, "--map", str(tmp_path / "m.svg"), "--algo", "ring,halving-doubling")
    assert code == 0
    assert "left out: halving-doubling over 8:" in err
    assert "halving-doubling over 2:" not in err
