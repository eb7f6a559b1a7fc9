"""`simperf collective` (simperf.cli.collective, simperf.study.collective: request, machine, comparison, quantities):
tables, winners, files, and what it refuses."""

import json
import re

import pytest

from simperf.cli import main

RING = ["collective", "all-reduce", "--topology", "ring", "--ranks", "8"]
STAR = ["collective", "all-reduce", "--topology", "star", "--ranks", "8", "--latency", "250 ns"]


def run(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    return code, out, err


def titles(out):
    """Algorithms of the tables of idealised ones."""
    whole = re.sub(r"\n#   (?=\S)", " ", out)  # a comment that is longer than a line goes on in the next
    return re.findall(r"^# ([\w-]+), idealised: bandwidth and latency of the wires only, no library$", whole, re.M)


def test_the_table_of_a_ring(capsys):
    code, out, _ = run(capsys, *RING, "-b", "100M", "-e", "100M")
    assert code == 0
    assert "K, M, G are powers of 1024" in out
    (line,) = [line for line in out.splitlines() if not line.startswith("#")]
    size, time, algbw, busbw = line.split()[:4]
    assert (size, time) == ("104857600", "3677.02")
    assert float(busbw) == pytest.approx(1.75 * float(algbw), rel=1e-3)


def test_exact_and_collapsed_agree(capsys):
    rows = []
    for more in ([], ["--exact"]):
        _, out, _ = run(capsys, *RING, "-b", "1M", "-e", "1M", "--format", "json", *more)
        rows += json.loads(out)
    assert [row["executor"] for row in rows] == ["collapsed", "step-exact"]
    assert rows[0]["time"] == pytest.approx(rows[1]["time"], rel=1e-9)


def test_servers_of_the_catalogue(capsys):
    words = ["collective", "all-reduce", "--algo", "ring,tree,hierarchical", "--server", "dgx-a100", "--nodes", "2"]
    code, out, _ = run(capsys, *words, "-b", "8", "-e", "1M", "-f", "64")
    assert code == 0
    assert "16 ranks on 2 x dgx-a100" in out
    assert titles(out) == ["ring", "double-binary-tree", "hierarchical"]


def test_the_fastest_of_each_size(capsys):
    code, out, err = run(capsys, *STAR, "--best", "-b", "1K", "-e", "1M", "-f", "32")
    assert code == 0
    assert "sharded from 1K to 1M" in out
    assert "left out: hierarchical" in err
    code, out, _ = run(
        capsys, *STAR, "--best", "--algo", "recursive-doubling,ring", "-b", "1K", "-e", "64M", "-f", "256"
    )
    assert "recursive-doubling at 1K; ring from 256K to 64M" in out


def test_json_in_the_layout_of_nccl_tests(capsys):
    _, out, _ = run(capsys, *RING, "-b", "1M", "-e", "4M", "--json")
    document = json.loads(out)
    assert document["version"] == 2
    assert document["config"]["step_factor"] == 2
    assert [row["size"] for row in document["results"]] == [1 << 20, 1 << 21, 1 << 22]
    row = document["results"][0]
    assert set(row["out_of_place"]) == {"time", "alg_bw", "bus_bw", "nwrong"}
    assert row["out_of_place"]["bus_bw"] == pytest.approx(1.75 * row["in_place"]["alg_bw"], rel=1e-4)
    assert document["average_bus_bandwidth"]["bandwidth"] > 0


def test_csv_in_si_units(capsys):
    _, out, _ = run(capsys, *RING, "-b", "1M", "-e", "1M", "--format", "csv")
    header, line = out.splitlines()
    values = dict(zip(header.split(","), line.split(","), strict=True))
    assert float(values["time_s"]) == pytest.approx(14 * (131072 / 50e9 + 500e-9), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("all-to-all", "direct"), ("send-recv", "direct"), ("gather", "binomial-tree"), ("all-gather", "ring")],
)
def test_every_collective_has_an_algorithm_of_its_own(capsys, name, algorithm):
    code, out, _ = run(capsys, "collective", name, "--topology", "star", "--ranks", "4", "-e", "1M")
    assert (code, titles(out)) == (0, [algorithm])


def test_direct_is_no_other_name_where_it_is_a_name(capsys):
    words = ["--topology", "star", "--ranks", "4", "-b", "1M", "-e", "1M", "--algo", "direct"]
    assert titles(run(capsys, "collective", "all-to-all", *words)[1]) == ["direct"]
    assert titles(run(capsys, "collective", "all-reduce", *words)[1]) == ["sharded"]


def test_dedicated_servers(capsys):
    words = ["--algo", "sharded", "--servers", "2", "-b", "1M", "-e", "1M", "--format", "json"]
    (row,) = json.loads(run(capsys, *STAR, *words)[1])
    # Each server takes half of the payload of eight, then hands it back; a route crosses two links.
    assert row["time"] == pytest.approx(2 * (8 * (1 << 19) / 50e9 + 500e-9), rel=1e-9)


def test_protocols_and_options(capsys):
    times = {}
    words = ["collective", "all-reduce", "--server", "dgx-a100", "-b", "8", "-e", "8", "--format", "json"]
    for algorithm in ("nccl", "ring"):
        for protocol in ("LL", "Simple"):
            (row,) = json.loads(run(capsys, *words, "--algo", algorithm, "--protocol", protocol)[1])
            assert row["idealised"] or row["choice"] == f"ring/{protocol}"
            times[protocol] = row["time"]
        assert times["LL"] < times["Simple"] / 3
    slow = json.loads(run(capsys, *RING, "--step-latency", "10 us", "-b", "8", "-e", "8", "--format", "json")[1])
    assert slow[0]["time"] == pytest.approx(14 * 10.5e-6, rel=1e-3)


def test_in_network_reduction(capsys):
    words = ["collective", "all-reduce", "--server", "dgx-h100", "--algo", "in-network,ring", "-b", "1G", "-e", "1G"]
    code, out, _ = run(capsys, *words, "--format", "json")
    assert code == 0
    switch, ring = json.loads(out)
    assert switch["time"] < ring["time"]


def test_pictures(capsys, tmp_path):
    for name in ("star.png", "star.svg"):
        assert run(capsys, *STAR, "-b", "1M", "-e", "1M", "--plot", str(tmp_path / name))[0] == 0
    code, _, err = run(
        capsys,
        *STAR,
        "--map",
        str(tmp_path / "map.png"),
        "--algo",
        "ring,recursive-doubling",
        "-b",
        "1K",
        "-e",
        "1M",
        "-f",
        "32",
    )
    assert code == 0
    assert "wrote" in err
    words = [
        "collective",
        "all-reduce",
        "--server",
        "dgx-1v",
        "-b",
        "1M",
        "-e",
        "1M",
        "--plot",
        str(tmp_path / "dgx.svg"),
    ]
    assert run(capsys, *words)[0] == 0
    assert all(path.stat().st_size > 5000 for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["all-reduce"], "name one machine"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--server", "dgx-1v"], "two machines"),
        (["allreduce", "--server", "dgx-1v"], "did you mean 'all-reduce'"),
        (["all-reduce", "--server", "dgx1v"], "did you mean"),
        (["all-reduce", "--server", "dgx-1v", "--algo", "rign"], "did you mean 'ring'"),
        (["all-reduce", "--server", "dgx-1v", "--algo", "nccl-rign"], "did you mean 'nccl-ring'"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--algo", "nccl"], "--algo: NCCL runs on the GPUs"),
        (["gather", "--server", "dgx-1v", "--algo", "nccl"], "unknown gather algorithm 'nccl'"),
        (["all-reduce", "--server", "dgx-1v", "--chunks", "4"], "--chunks: none of nccl has this option"),
        (["broadcast", "--server", "dgx-1v", "--root", "2"], "--root: none of nccl has this option"),
        (["all-reduce", "--server", "dgx-1v", "--exact"], "--exact: NCCL's channels are flows"),
        (["all-reduce", "--server", "dgx-1v", "--algo", "ring,nccl", "--exact"], "--exact: NCCL's channels are flows"),
        (["all-reduce", "--server", "dgx-1v", "--step-latency", "1 us"], "--step-latency: NCCL brings"),
        (["all-reduce", "--server", "dgx-1v", "--reduce-rate", "1 GB/s"], "--reduce-rate: NCCL brings"),
        (["all-reduce", "--server", "dgx-1v", "--network", "ef"], "--network: no such network of NCCL; did you mean"),
        (["all-reduce", "--server", "dgx-1v", "--nccl-version", "2"], "--nccl-version: a version of NCCL"),
        (["all-reduce", "--server", "dgx-1v", "--launches", "0"], "--launches"),
        (["all-reduce", "--server", "dgx-1v", "--protocol", "LL12"], "--protocol: no such protocol of NCCL"),
        (["all-to-all", "--server", "dgx-1v", "--protocol", "LL"], "runs under this protocol"),
        (["all-reduce", "--server", "dgx-1v", "--algo", "ring", "--network", "efa"], "--network: none of ring has"),
        (["all-reduce", "--server", "dgx-1v", "--algo", "ring", "--no-in-network"], "--in-network: none of ring has"),
        (["all-gather", "--server", "dgx-h100", "--in-network"], "--in-network: switches add up in an all-reduce, and"),
        (["all-reduce", "--server", "dgx-a100", "--in-network"], "nvswitch2 cannot add up, on dgx-a100 (read: true)"),
        (["all-reduce", "--server", "dgx-1v", "--algo", "ring", "--launches", "8"], "--launches: none of ring has"),
        (
            ["all-reduce", "--topology", "star", "--ranks", "4", "--nccl-version", "2.4"],
            "--nccl-version: none of ring has",
        ),
        (["all-reduce", "--server", "dgx-1v", "--algo", "nccl,ring", "--map", "m.svg"], "either, not both"),
        (["all-reduce", "--server", "dgx-1v", "--map", "m.svg", "--launches", "8"], "--launches: a map of idealised"),
        (["all-reduce", "--server", "dgx-1v", "--ranks", "9"], "8 GPUs"),
        (["all-reduce", "--server", "dgx-1v", "--nodes", "0"], "at least one server"),
        (["all-reduce", "--topology", "ring"], "number of its ranks"),
        (["all-reduce", "--topology", "ring", "--ranks", "0"], "at least one rank"),
        (["all-reduce", "--topology", "rng", "--ranks", "4"], "did you mean 'ring'"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--bandwidth", "50 Gb/s"], "bits or bytes"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--latency", "5"], "unit is missing"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "-b", "2M", "-e", "1M"], "larger than the largest"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "-f", "1"], "factor above 1"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "-f", "nan"], "factor above 1"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "-f", "inf"], "factor above 1"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "-b", "-5"], "0 or more"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--nodes", "2"], "a topology has none"),
        (["all-reduce", "--server", "dgx-1v", "--latency", "1 us"], "--latency: it belongs to --topology"),
        (["all-reduce", "--server", "dgx-1v", "--fabric", "rail"], "give --nodes"),
        (["all-reduce", "--server", "dgx-1v", "--nodes", "2", "--oversubscription", "2"], "fat-tree"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--chunks", "4"], "has this option"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--protocol", "LL12"], "did you mean"),
        (["all-reduce", "--topology", "ring", "--ranks", "4", "--algo", "central"], "servers"),
        (["reduce-scatter", "--topology", "star", "--ranks", "6", "--algo", "halving-doubling"], "power of two"),
        (
            ["broadcast", "--topology", "star", "--ranks", "6", "--algo", "binomial-tree", "--root", "6"],
            "none of the ranks",
        ),
        (
            ["all-reduce", "--topology", "star", "--ranks", "6", "--algo", "hierarchical", "--group", "4"],
            "servers of 4",
        ),
    ],
)
def test_what_is_refused_with_a_reason(capsys, words, text):
    code, out, err = run(capsys, "collective", *words)
    assert code == 2
    assert text in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.parametrize("words", [["--ranks", "1"], ["--ranks", "2"], ["--ranks", "7"]])
def test_odd_numbers_of_ranks_and_tiny_sizes(capsys, words):
    code, out, _ = run(
        capsys, "collective", "all-reduce", "--topology", "star", *words, "--algo", "all", "-b", "0", "-e", "4"
    )
    assert code == 0
    assert "nan" not in out
    assert "inf" not in out


OWN = """
import numpy as np

from simperf.collectives import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round


@collective("all-reduce", "over-rank-0")
def over_rank_0(nranks):
    others, zero = np.arange(1, nranks), np.zeros(nranks - 1, dtype=np.int64)
    up = Phase(1, lambda index: Round(others, zero, zero, reduce=True))
    down = Phase(1, lambda index: Round(zero, others, zero, reduce=False))
    return Plan("all-reduce", "over-rank-0", nranks, (Channel((up, down), 1),), 2, float(nranks - 1))
"""


def test_an_algorithm_of_ones_own(capsys, tmp_path):
    from simperf.collectives.algorithms import ALGORITHMS
    from simperf.testing import check_collective

    path = tmp_path / "own_plan.py"
    path.write_text(OWN)
    words = [*STAR, "--python", str(path), "--algo", "over-rank-0,naive", "-b", "1M", "-e", "1M", "--format", "json"]
    with ALGORITHMS.temporary_entries():
        code, out, err = run(capsys, *words)
        assert (code, err) == (0, "")
        own, naive = json.loads(out)
        assert own["time"] == pytest.approx(naive["time"], rel=1e-9)
        assert (own["size"], type(own["size"])) == (1048576, int)
        check_collective("all-reduce/over-rank-0", ns=[2, 3, 8])
    code, out, err = run(capsys, *STAR, "--python", str(tmp_path / "no_plan.py"))
    assert (code, out) == (2, "")
    assert "did you mean 'own_plan.py'" in err


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (
            ["--bandwidth", "5 Gb/s", "--latency", "5", "--step-latency", "-1 s"],
            ["--bandwidth: 'Gb/s'", "--latency: the", "--step-latency: it cannot"],
        ),
        (["-b", "1X", "-e", "3 s"], ["-b: unknown unit 'X'", "-e: 's' is a unit of time"]),
        (["-i", "0"], ["-i: sizes grow by a step"]),
        (["--ranks", "99999999999"], ["--ranks: more than", "at most 1,048,576"]),
        (["--json", "--format", "csv"], ["--format: nccl-tests"]),
        (["--map", "m.png", "--plot", "p.png", "--best"], ["--plot: a map", "--best: a map"]),
    ],
)
def test_all_that_is_wrong_with_the_options_with_their_names(capsys, words, texts):
    code, out, err = run(capsys, *STAR, *words)
    assert (code, out) == (2, "")
    for text in texts:
        assert f"error: {text}" in err or text in err


def test_one_rank_and_nodes_beyond_reason(capsys):
    _, out, _ = run(capsys, "collective", "all-reduce", "--topology", "ring", "--ranks", "1", "-b", "8", "-e", "8")
    assert "1 rank on" in out
    code, _, err = run(capsys, "collective", "all-reduce", "--server", "dgx-1v", "--nodes", "100000")
    assert code == 2
    assert "--nodes: more than" in err


def test_short_names_are_known_inside_a_hierarchy_too(capsys):
    words = ["collective", "all-reduce", "--server", "dgx-1v", "--nodes", "2", "--algo", "hierarchical"]
    assert run(capsys, *words, "--outer", "tree", "-b", "1K", "-e", "1K")[0] == 0


def test_costs_of_sends_are_those_of_the_hosts_network_stack(capsys, tmp_path):
    (tmp_path / "cluster").mkdir()
    fabric = 'fabric = {type = "star", bandwidth = "1 GB/s"}'
    lines = [
        'kind = "cluster"',
        'title = "two"',
        'server = "dgx-1v"',
        "count = 2",
        fabric,
        'network_stack = "linux-gloo"',
    ]
    (tmp_path / "cluster" / "pair.toml").write_text("\n".join(lines) + "\n")
    words = ["collective", "all-reduce", "--cluster", "pair", "--folder", str(tmp_path), "--algo", "ring", "-b", "1K"]
    words += ["-e", "1K"]
    assert run(capsys, *words)[0] == 0
    code, _, err = run(capsys, *words, "--step-latency", "5us", "--reduce-rate", "1GB/s", "--protocol", "LL")
    assert code == 2
    for told in ("--step-latency", "5us", "--reduce-rate", "1GB/s", "--protocol", "LL", "network_stack"):
        assert told in err
