"""sweep, limits, and compare with --vary and --samples on the command line."""

import csv
import io
import json
import re

import pytest

pytestmark = pytest.mark.usefixtures("own_cache")


def test_a_sweep_prints_its_table_and_keeps_it(simperf, chain, tmp_path):
    words = ("sweep", chain, "--vary", "program.n=5,10", "--vary", "program.t2=1..3 ms:3")
    code, out, err = simperf(*words, "-o", "out.csv", "--plot", "out.svg")
    assert code == 0
    assert out.splitlines()[0].startswith("No winner: the amounts of work differ (operations: 5 to 10)")
    rows = [line.split()[:4] for line in out.splitlines() if line[:5].strip().isdigit()]
    assert rows == [
        [str(3 * place + more), n, f"{more + 1}.0", "ms"] for place, n in enumerate(["5", "10"]) for more in range(3)
    ]
    assert "wrote out.csv: 6 points" in err
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert [row["program.n"] for row in rows] == ["5"] * 3 + ["10"] * 3
    assert (tmp_path / "out.svg").read_text().startswith("<?xml")
    code, out, _ = simperf(*words, "--format", "json")
    assert [row["point"] for row in json.loads(out)] == list(range(6))


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".csv", ".parquet"])
def test_every_format_of_the_table(simperf, chain, tmp_path, suffix):
    if suffix == ".parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
    assert simperf("sweep", chain, "--vary", "program.n=1,2,-1", "-o", f"out{suffix}")[0] == 0
    path = tmp_path / f"out{suffix}"
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    elif suffix == ".json":
        rows = json.loads(path.read_text())
    elif suffix == ".csv":
        rows = [
            {name.removesuffix(" [s]"): cell for name, cell in row.items()}
            for row in csv.DictReader(io.StringIO(path.read_text()))
        ]
        assert path.read_text().startswith("point,program.n,seed,error,time [s],")
    else:
        rows = pandas.read_parquet(path).to_dict("records")
    assert [float(row["time"]) for row in rows[:2]] == pytest.approx([4e-3, 6e-3])
    assert "cannot be negative" in rows[2]["error"]


@pytest.mark.parametrize("kind", ["lines", "scaling", "heatmap"])
def test_pictures_of_a_sweep(simperf, chain, tmp_path, kind):
    words = ("--vary", "program.n=5,10,20", "--vary", "program.t2=1 ms,2 ms")
    assert simperf("sweep", chain, *words, "--plot", "p.png", "--plot-kind", kind)[0] == 0
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_a_latin_hypercube_has_its_points(simperf, chain):
    words = (
        "--vary",
        "program.t1=1..2 ms",
        "--vary",
        "program.t2=1..2 ms",
        "--design",
        "lhs",
        "--points",
        "7",
        "--fast",
    )
    code, out, _ = simperf("sweep", chain, *words, "--format", "csv")
    assert code == 0
    assert len(out.splitlines()) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing is varied"),
        (("--vary", "program.m=1"), "no parameter 'm'"),
        (("--vary", "program.n=1", "--points", "5"), "belongs to --design lhs"),
        (("--vary", "program.n=1", "-o", "out.xls"), "no known format"),
        (("--vary", "program.n=1", "-o", "no/out.csv"), "no folder"),
        (("--vary", "program.n=1", "--engine", "locl"), "'local'"),
        (("--vary", "program.n=1", "--plot", "p.gif"), "no picture format"),
        (("--vary", "program.n=1,2", "--plot", "p.png", "--plot-kind", "pareto"), "no point has a cost"),
        (("--vary", "program.n=1,2", "--plot", "p.png", "--metric", "tme"), "unknown column"),
    ],
)
def test_bad_sweeps(simperf, chain, words, said):
    code, _, err = simperf("sweep", chain, *words)
    assert code == 2
    assert said in err


def test_a_sweep_of_which_every_point_fails(simperf, tmp_path):
    (tmp_path / "bad.toml").write_text('[program]\nuse = "streams"\nn = 2\n')
    code, out, err = simperf("sweep", "bad.toml", "--vary", "program.demand=2,3")
    assert code == 1
    assert "2 of 2 points failed" in err
    assert "more than 0 and at most 1" in out


def test_limits_in_words_and_as_data(simperf, chain, tmp_path):
    code, out, _ = simperf("limits", chain, "--crossover", "program.t1=0.1..10 ms", "--plot", "t.png")
    assert code == 0
    for words in ("Critical path", "If one resource were faster", "everything", "-9.09 %", "Where the limit changes"):
        assert words in out
    assert "program.t1 = 2 ms" in out
    assert (tmp_path / "t.png").exists()
    code, out, _ = simperf("limits", chain, "--format", "json", "--variant", "slow")
    found = json.loads(out)
    assert sum(part["time"] for part in found["critical_path"]) == pytest.approx(found["time"], rel=1e-9)
    assert found["together"]["time"] * 1.1 == pytest.approx(found["time"], rel=1e-9)
    assert simperf("limits", chain, "--format", "csv")[1].startswith("resource,kind,factor,time [s],change")
    assert simperf("limits", chain, "--faster", "0.5")[0] == 2


def test_influences_on_the_command_line(simperf, chain):
    pytest.importorskip("SALib")
    words = ("--vary", "program.t1=1..2 ms", "--vary", "program.t2=1..9 ms", "--trajectories", "4")
    code, out, _ = simperf("limits", chain, *words)
    assert code == 0
    assert "Influence on time (morris, 12 runs)" in out


def test_compare_varies_one_scenario(simperf, chain):
    code, out, _ = simperf("compare", chain, "--vary", "program.n=10,20", "--vary", "program.t2=1 ms,2 ms")
    assert code == 0
    assert "n 20, t2 2 ms" in out
    assert "the amounts of work differ (operations: 10 to 20)" in out
    assert any(line.startswith("n 10, t2 1 ms") for line in out.splitlines())
    code, _, err = simperf("compare", chain, "d2l/sync-160mb", "--vary", "program.n=10")
    assert code == 2
    assert "one scenario is varied at a time" in err


def test_compare_says_what_differs(simperf, chain):
    out = simperf("compare", chain)[1]
    assert out.splitlines()[0] == "Fastest: fast, 22.00 ms"
    assert out.splitlines()[2].split()[:2] == ["name", "mode"]
    assert "synchronous" in out


def test_values_of_one_axis_may_be_given_apart_and_a_price_is_of_a_server(simperf):
    search = ("plan", "--layouts", "llama3-8b", "--on", "dgx-h100-x128", "--gpus", "16", "--batch", "16", "--no-cache")
    narrow = [f"--vary={one}" for one in ("cp=1", "pp=1", "sharding=zero-3", "recompute=none", "microbatch=1")]
    code, out, _ = simperf(*search, *narrow, "--vary=tp=1", "--vary=tp=2", "--top=2", "--price", "80 USD/h")
    assert code == 0
    assert "tp=2 dp=8" in out
    assert "dp=16 zero-3" in out
    assert "160.00 USD/h for 16 GPUs" in out


def test_samples_give_intervals(simperf, chain):
    words = ("--set", "program.jitter=0.2", "--samples", "20")
    code, out, _ = simperf("run", chain, *words)
    assert code == 0
    assert re.match(r"90 % interval: [\d.]+ ms to [\d.]+ ms, from draws", out.splitlines()[1])
    code, out, _ = simperf("compare", chain, *words, "--vary", "program.t2=2 ms,2.001 ms")
    assert "not distinguishable" in out
    code, out, _ = simperf("compare", chain, *words, "--format", "json")
    assert len(json.loads(out)["results"][0]["intervals"]["time"]) == 2
    assert simperf("run", chain, "--samples", "1")[0] == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--tokens", "1e9", "--deadline", "60 dayz"), "error: --deadline: unknown unit 'dayz'"),
        (("--deadline", "1 day"), "expected: --tokens 1e12"),
        (("--price", "80"), "error: --price: the unit is missing"),
        (("--tokens", "1e9", "--budget", "9 USD"), 'expected: --price "80 USD/h", of a server'),
        (("--vary", "tp=3"), "error: --vary: tp: no layout divides 8 GPUs"),
        (("--top", "0"), "error: --top: a whole number above 0 is expected"),
        (("--time", "-1 s"), "error: --time: it must be above 0"),
        (("--output", "none/found.json"), "error: --output: none/found.json: there is no folder 'none'"),
        (("--output", "found.csv"), "error: --output: found.csv: the name must end in .json"),
    ],
)
def test_what_is_wrong_with_a_search_of_layouts_is_told_by_option(simperf, words, told):
    search = ("plan", "--layouts", "llama3-8b", "--on", "dgx-h100", "--gpus", "8", "--batch", "8")
    code, out, err = simperf(*search, *words)
    assert (code, out) == (2, "")
    assert told in err
