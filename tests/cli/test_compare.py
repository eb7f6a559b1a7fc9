"""`simperf compare`: variants, several files, saved results, and exit codes."""

import csv
import io
import json

import pytest


def test_variants_side_by_side(simperf, chain):
    code, out, err = simperf("compare", chain)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[3:5]] == ["fast", "slow"]
    assert "1.86x" in out


def test_the_book_s_numbers(simperf):
    code, out, _ = simperf("compare", "d2l/sync-160mb", "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [float(row["time [s]"]) for row in rows] == pytest.approx([0.060, 0.080, 0.015], rel=1e-9)
    assert [row["expectation"] for row in rows] == ["ok"] * 3


def test_a_ratio_that_is_missed(simperf, chain):
    code, out, _ = simperf("compare", chain, "--set", 'expect.compare={ "slow/fast" = { max = 1.5 } }')
    assert code == 1
    assert "time of slow / fast is not as expected: 1.864, expected at most 1.5" in out


def test_several_files_and_saved_results(simperf, chain, tmp_path):
    simperf("run", chain, "--variant", "slow", "--save", "old.json")
    code, out, _ = simperf("compare", chain, "d2l/sync-160mb", "old.json", "--format", "json")
    assert code == 0
    names = [row["name"] for row in json.loads(out)["results"]]
    assert names[:2] == ["Chain: fast", "Chain: slow"]
    assert len(names) == 6
    assert names[-1] == "slow"


def test_a_variant_that_fails_does_not_stop_the_others(simperf, tmp_path):
    path = tmp_path / "memory.toml"
    path.write_text(
        '[machine]\nuse = "desktop-1gpu"\n[program]\nuse = "run-ahead"\nbatches = 1\nnbytes = "1 MB"\n'
        '[[compare]]\nname = "small"\n[[compare]]\nname = "bad"\nset = { "program.nbytes" = "10 GB" }\n'
    )
    code, out, err = simperf("compare", path)
    assert code == 2
    assert "small" in out
    assert "failed" in out
    assert err.startswith("error: bad: ")


def test_an_expected_error_is_told(simperf):
    code, out, err = simperf("compare", "d2l/run-ahead")
    assert (code, err) == (0, "")
    assert "unbounded queue: " in out
    code, out, err = simperf("compare", "d2l/run-ahead", "--format", "json")
    assert (code, err) == (0, "")
    row = json.loads(out)["results"][3]
    assert "out of memory" in row["error"]
    assert row["checks"][0]["ok"] is True


def test_all_files_are_read_before_any_is_run(simperf, chain):
    code, out, err = simperf("compare", "nothing", chain, "--set", "program.nn=3")
    assert (code, out) == (2, "")
    assert "nothing: no such file" in err
    assert "no parameter 'nn'" in err


def test_a_picture(simperf, chain, tmp_path):
    assert simperf("compare", chain, "--plot", "c.png")[0] == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
