"""`simperf run`: the table, JSON, CSV, files, variants and exit codes."""

import csv
import gzip
import io
import json

import pytest

from simperf.results import Result


def test_the_table_is_on_stdout_and_notes_on_stderr(simperf, chain):
    code, out, err = simperf("run", chain)
    assert code == 0
    assert "Chain  22.00 ms" in out
    assert "time is as expected" in out
    assert "(closed form: t1 + n t2 + t3)" in " ".join(out.split())
    assert "2 variants" in err
    assert "variants" not in out


def test_json_and_csv_are_si_numbers(simperf, chain):
    data = json.loads(simperf("run", chain, "--format", "json")[1])
    assert data["time"] == pytest.approx(0.022)
    assert data["checks"][0]["ok"] is True
    (row,) = csv.DictReader(io.StringIO(simperf("run", chain, "--format", "csv")[1]))
    assert float(row["time [s]"]) == data["time"]
    assert float(row["metrics.operations per second [1/s]"]) == data["metrics"]["operations per second"]["value"]
    assert row["expectation"] == "ok"


def test_a_missed_expectation_is_exit_code_1(simperf, chain):
    code, out, _ = simperf("run", chain, "--set", "expect.time=20 ms")
    assert code == 1
    assert "FAILED" in out
    assert "22.00 ms, expected 20.00 ms" in out


def test_changed_numbers_are_not_held_to_the_file(simperf, chain):
    code, out, err = simperf("run", chain, "--set", "program.n=20", "--set", "program.t2=3 ms")
    assert code == 0
    assert "Chain  62.00 ms" in out
    assert "[expect] is not checked" in err


def test_nothing_is_said_of_expectations_that_a_file_does_not_have(simperf, tmp_path):
    (tmp_path / "s.toml").write_text('[program]\nuse = "async-chain"\nn = 3\n')
    assert simperf("run", "s.toml", "--set", "program.n=4")[2] == ""


def test_a_variant_by_name(simperf, chain):
    code, out, _ = simperf("run", chain, "--variant", "slow")
    assert code == 0
    assert "slow  41.00 ms" in out
    code, _, err = simperf("run", chain, "--variant", "slwo")
    assert code == 2
    assert "did you mean 'slow'?" in err
    assert "one of 'fast', 'slow'" in err


def test_files(simperf, chain, tmp_path):
    code, _, err = simperf(
        "run", chain, "--save", "r.json.gz", "--trace", "t.json.gz", "--plot", "p.svg", "--plot-kind", "gantt"
    )
    assert code == 0
    assert all(f"wrote {name}" in err for name in ("r.json.gz", "t.json.gz", "p.svg"))
    assert Result.load(tmp_path / "r.json.gz").time == pytest.approx(0.022)
    assert json.loads(gzip.decompress((tmp_path / "t.json.gz").read_bytes()))["traceEvents"]
    assert "<svg" in (tmp_path / "p.svg").read_text()


def test_the_same_seed_gives_the_same_bytes(simperf, chain, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert simperf("run", chain, "--set", "program.jitter=0.5", "--seed", seed, "--save", f"{name}.json")[0] == 0
    a, b, c = ((tmp_path / f"{name}.json").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_names_that_cannot_be_written_are_refused_before_anything_runs(simperf, chain, tmp_path):
    code, out, err = simperf("run", chain, "--save", "no/r.json", "--trace", tmp_path, "--plot", "p.bmp")
    assert (code, out) == (2, "")
    for word in ("no folder 'no'", "this is a directory", "FILE.png, .svg or .pdf"):
        assert word in err


def test_running_out_of_memory_is_an_answer(simperf, tmp_path):
    words = ["run", "d2l/run-ahead", "--set", "frontend.depth=unlimited"]
    code, _, err = simperf(*words)
    assert code == 2
    assert "run-ahead.toml:18: program: gpu0 is out of memory" in err
    code, out, err = simperf("run", "d2l/run-ahead", "--variant", "unbounded queue")
    assert (code, out) == (0, "")
    assert "as expected" in err


def test_what_the_program_cannot_run_with_is_placed(simperf, chain):
    chain.write_text('[machine]\nuse = "dgx-1v"\n\n[program]\nuse = "two-devices"\ndevices = 9\n')
    code, _, err = simperf("run", chain)
    assert code == 2
    assert err.startswith(f"error: {chain}:4: program: the program uses gpu8")
