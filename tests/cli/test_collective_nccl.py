"""`simperf collective` as NCCL would run it: options, tables, and the one path of `simperf.collective`
(simperf.study.collective, simperf.collectives.calls)."""

import csv
import io
import json
from dataclasses import replace

import pytest

import simperf
from simperf.cli import main
from simperf.collectives.nccl import COLLECTIVES, Tuner
from simperf.errors import InputError
from simperf.hardware import Catalog, build_cluster

DGX = ["collective", "all-reduce", "--server", "dgx-a100"]


def run(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def rows_of(capsys, *words):
    return json.loads(run(capsys, *words, "--format", "json"))


def test_the_default_is_what_nccl_would_take(capsys):
    out = run(capsys, *DGX, "-b", "8K", "-e", "1G", "-f", "512")
    assert "# nccl: as NCCL would, algorithm/protocol chosen for each size" in out
    assert "idealised" not in out
    lines = [line.split() for line in out.splitlines() if not line.startswith("#")]
    machine = Catalog.load().machine("dgx-a100")
    for size, time, _, _, choice, channels, *_ in lines:
        best = Tuner(machine, machine.gpus).best(float(size))
        assert float(time) == pytest.approx(best.time * 1e6, rel=1e-3)
        assert (choice, int(channels)) == (best.name, len(best.plan.channels))


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_of_nccl_by_default(collective):
    (row,) = simperf.collective(collective, on="dgx-h100", sizes=["16M"])
    machine = Catalog.load().machine("dgx-h100")
    best = Tuner(machine, machine.gpus, collective=collective).best(float(1 << 24))
    assert (row.algorithm, row.choice, row.idealised) == ("nccl", best.name, False)
    assert row.time == pytest.approx(best.time, rel=1e-12, abs=0.0)


@pytest.mark.parametrize(
    "words",
    [["--topology", "star", "--ranks", "4"], ["--server", "mi300x-8gpu"], ["--server", "dgx-a100", "--algo", "ring"]],
)
def test_where_it_does_not_run_or_is_not_asked_for_the_table_says_that_it_is_idealised(capsys, words):
    out = run(capsys, "collective", "all-reduce", *words, "-e", "1M")
    assert "# ring, idealised: bandwidth and latency of the wires only, no library" in out


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--no-in-network"], {"in_network": False}),
        (["--launches", "8"], {"launches": 8}),
        (["--nccl-version", "2.10"], {"version": "2.10"}),
        (["--algo", "nccl-ring"], {"algorithm": "nccl-ring"}),
        (["--protocol", "LL128"], {"protocol": "LL128"}),
    ],
)
def test_an_option_has_the_effect_that_it_has_in_python_and_in_a_run(capsys, words, options):
    where = ["collective", "all-reduce", "--server", "dgx-h100", "-b", "16M", "-e", "16M"]
    (row,) = rows_of(capsys, *where, *words)
    (same,) = simperf.collective("all-reduce", on="dgx-h100", sizes=[1 << 24], **options)
    algorithm = options.pop("algorithm", "nccl")
    program = {"use": "all-reduce", "nbytes": "16 MiB", "algorithm": algorithm, "options": options}
    played = simperf.run(simperf.make_scenario({"machine": {"use": "dgx-h100"}, "program": program}))
    (plain,) = rows_of(capsys, *where)
    assert row["time"] == same.time
    assert row["time"] == pytest.approx(played.time, rel=1e-12, abs=0.0)
    assert (row["time"] != plain["time"]) == (options != {"launches": 8}), "16 MiB take longer than eight launches"


def test_launches_bound_a_small_collective(capsys):
    (row,) = rows_of(capsys, *DGX, "-b", "8", "-e", "8", "--launches", "8")
    assert row["time"] == pytest.approx(8 * 4.5e-6)


def test_a_network_of_its_own(capsys):
    cluster = ["collective", "all-reduce", "--server", "p4d-24xlarge", "--nodes", "2", "-b", "8", "-e", "8"]
    slow, fast = (rows_of(capsys, *cluster, "--network", name)[0]["time"] for name in ("efa", "rdma"))
    assert 2 * 60e-6 < slow - fast < 2 * 75e-6
    assert "# nccl: network efa" in run(capsys, *cluster, "--network", "efa")


def test_a_map_of_what_is_chosen(capsys, tmp_path, monkeypatch):
    drawn = {}

    def crossover_map(winners, *, title):
        drawn.update(winners=winners, title=title)

    monkeypatch.setattr("simperf.report.collective_pictures.crossover_map", crossover_map)
    monkeypatch.setattr("simperf.report.style.save", lambda *given: None)
    words = ["collective", "all-reduce", "--server", "dgx-a100", "--nodes", "2", "-b", "1K", "-e", "1G", "-f", "1024"]
    run(capsys, *words, "--map", str(tmp_path / "map.svg"), "--algo", "nccl")
    assert drawn["title"] == "What NCCL chooses for all-reduce on dgx-a100"
    assert {row.algorithm for row in drawn["winners"][16]} <= {
        f"{a}/{p}" for a in ("ring", "tree") for p in ("LL", "LL128", "Simple")
    }
    run(capsys, *words, "--map", str(tmp_path / "map.svg"), "--algo", "ring,tree")
    assert "idealised" in drawn["title"]


def test_the_best_idealised_algorithm_stands_beside_nccl_not_against_it(capsys):
    words = [
        "collective",
        "all-reduce",
        "--server",
        "dgx-a100",
        "-b",
        "1M",
        "-e",
        "1M",
        "--algo",
        "nccl,ring,tree",
        "--best",
    ]
    out = run(capsys, *words)
    assert "# nccl: as NCCL would" in out
    assert "# fastest, idealised" in out
    assert [row["idealised"] for row in rows_of(capsys, *words)] == [False, True]
    table = list(csv.DictReader(io.StringIO(run(capsys, *words, "--format", "csv"))))
    assert [row["idealised"] for row in table] == ["false", "true"]
    assert table[0]["choice"] == "ring/LL"


def test_all_has_nccl_first_and_each_table_says_what_it_is(capsys):
    out = run(capsys, *DGX, "-b", "1M", "-e", "1M", "--algo", "all")
    titles = [line for line in out.splitlines() if "as NCCL would" in line or "idealised" in line]
    assert titles[0].startswith("# nccl: as NCCL would")
    assert all("idealised" in title for title in titles[1:])


# Late ranks and other traffic ------------------------------------------------------------


@pytest.mark.parametrize("collective", ["all-reduce", "all-to-all"])
def test_nccl_begins_when_the_last_rank_has_come(collective):
    (alone,) = simperf.collective(collective, on="dgx-a100", sizes=["64M"])
    late = [0.0] * 7 + [3e-3]
    (row,) = simperf.collective(collective, on="dgx-a100", sizes=["64M"], entry_times=late)
    if collective == "all-reduce":
        assert row.time == pytest.approx(alone.time + 3e-3, rel=1e-12, abs=0.0)
    else:  # sends between the others do not wait
        assert 3e-3 < row.time <= alone.time + 3e-3 + 1e-12


@pytest.mark.parametrize("part", [0.2, 0.5])
def test_traffic_takes_its_share_of_a_ring_s_link(part):
    """On a link that the channels fill, what is left is theirs: they take longer by the bytes over it."""
    machine = Catalog.load().machine("dgx-a100")
    best = Tuner(machine, machine.gpus).best(2.0**30)
    flow = best.channels.flows[0]
    link = machine.route("gpu0", "gpu1").resources[0]
    capacity = machine.resources[link]
    assert sum(one.cap for one in best.channels.flows) == pytest.approx(capacity)
    (row,) = simperf.collective(
        "all-reduce", on=machine, sizes=["1G"], background=[("gpu0", "gpu1", part / 3 * capacity)]
    )
    sent = flow.nbytes / ((1 - part / 3) * capacity / len(best.channels.flows))
    assert row.time == pytest.approx(flow.latency + sent + best.channels.last, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("name", ["rtx4090-8gpu", "desktop-2gpu", "p3dn-24xlarge"])
def test_traffic_that_wants_nothing_changes_nothing(name):
    machine = Catalog.load().machine(name)
    first, *_, last = machine.gpus
    for size in ("8", "256M"):
        (alone,) = simperf.collective("all-reduce", on=machine, sizes=[size])
        (row,) = simperf.collective("all-reduce", on=machine, sizes=[size], background=[(first, last, 1e-3)])
        assert row.time == pytest.approx(alone.time, rel=1e-9, abs=0.0)


# One path --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dgx-a100", "dgx-h100", "dgx-1v", "rtx4090-8gpu", "desktop-2gpu", "p3dn-24xlarge"])
@pytest.mark.parametrize("servers", [1, 2])
def test_nothing_of_nccl_is_faster_than_its_floor(name, servers):
    """Staging and reduction in the network included; `measure` refuses what is below the bound."""
    catalog = Catalog.load()
    machine = (
        build_cluster(name, servers, link="infiniband-hdr", catalog=catalog) if servers > 1 else catalog.machine(name)
    )
    for collective in COLLECTIVES:
        for row in simperf.collective(collective, on=machine, sizes=[0, 8, 1 << 16, 1 << 22, 1 << 30]):
            assert 0.0 <= row.floor <= row.time
            assert 0.0 <= row.load <= 1.0 + 1e-9


def test_a_text_is_a_size_and_a_number_of_ranks_is_one_of_the_machine():
    rows = simperf.collective("all-reduce", on="dgx-a100", sizes=["64M", 1024, "8"], ranks=4)
    assert [row.nbytes for row in rows] == [1 << 26, 1024, 8]
    for wrong in (0, 9):
        with pytest.raises(InputError, match="8 GPUs"):
            simperf.collective("all-reduce", on="dgx-a100", sizes=["8"], ranks=wrong)
    with pytest.raises(InputError, match="no option 'netwrk'; did you mean 'network'"):
        simperf.collective("all-reduce", on="dgx-a100", sizes=["8"], netwrk="efa")


def test_what_is_shown_in_a_report(capsys, tmp_path):
    page = tmp_path / "page.html"
    run(capsys, *DGX, "-b", "1M", "-e", "1M", "--algo", "nccl,ring,tree", "--report", str(page))
    text = page.read_text("utf-8")
    assert "ring/LL" in text
    assert "idealised" in text


def test_rows_of_nccl_are_marked():
    (row,) = simperf.collective("all-reduce", on="dgx-a100", sizes=["8"])
    assert not row.idealised
    assert replace(row, algorithm="ring").idealised
