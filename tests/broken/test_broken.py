"""Broken files: each is refused with exit code 2, the place, what was read and what would be right."""

from pathlib import Path

import pytest

from simperf.cli import main

FILES = Path(__file__).parent / "files"

#: file -> line (0: the message has none), key, words that say what is wrong and what would be right
RUN = {
    "unit-missing": (6, "program.nbytes", "unit is missing", "'160 MB'", "160000000"),
    "unit-wrong-dimension": (6, "program.nbytes", "unit of time", "a size is expected", "'160 ms'"),
    "unit-bits-or-bytes": (14, "machine.link[0].bandwidth", "differ by 8", "'Gbit/s' or 'GB/s'"),
    "unit-unknown": (14, "machine.link[0].bandwidth", "unknown unit", "did you mean", "'GB/s'"),
    "bandwidth-negative": (14, "machine.link[0].bandwidth", "cannot be negative", "-16 GB/s"),
    "bandwidth-zero": (14, "machine.link[0].bandwidth", "cannot be zero"),
    "bandwidth-huge": (14, "machine.link[0].bandwidth", "must lie between", "1e30 GB/s"),
    "number-overflows": (14, "machine.link[0].bandwidth", "finite number is expected", "1e999 GB/s"),
    "time-negative": (3, "program.t1", "cannot be negative", "-5 us"),
    "not-a-number": (3, "program.demand", "finite number is expected", "nan"),
    "infinite": (3, "program.jitter", "finite number is expected", "inf"),
    "count-negative": (3, "program.n", "cannot be negative", "-3"),
    "count-zero": (6, "program.n", "at least 1 is expected"),
    "count-huge": (3, "program.n", "far too large", "at most 1e+12"),
    "gpu-unknown": (5, "machine.node[0].gpu", "unknown gpu", "did you mean 'v100-pcie-16gb'"),
    "node-unwired": (3, "machine.node", "'gpu3' is not wired", "add a link"),
    "link-to-nowhere": (13, "machine.link[0].b", "'hbu', which is no node", "did you mean 'hub'?"),
    "link-too-many": (3, "machine.node", "gpu0 uses 7 NVLinks", "has 6"),
    "node-twice": (8, "machine.node[1].id", "'gpu0' is defined twice"),
    "machine-unknown": (2, "machine.use", "unknown machine", "did you mean 'book-4gpu'?", "simperf catalog list"),
    "machine-two-ways": (4, "machine.node", "either use = ..., or tables of its own"),
    "machine-empty": (1, "machine", "is empty", 'use = "dgx-1v"'),
    "keys-twice": (7, "", "overwrite", 'nbytes = "80 MB"', "every key once"),
    "not-toml": (1, "", "not valid TOML", "key = value"),
    "quote-missing": (6, "", "not valid TOML", "nbytes = 160 MB", "quantities in quotes"),
    "empty": (0, "", "the file is empty", "simperf scenarios list"),
    "binary": (2, "", "not UTF-8", "a TOML file"),
    "key-unknown": (2, "scenario.titel", "unknown key", "did you mean 'title'?"),
    "table-unknown": (8, "fronted", "unknown table", "did you mean 'frontend'?"),
    "type-wrong": (7, "program.n", "another type", "a whole number, such as 100", "scenario.title", "scenario.rows"),
    "choice-wrong": (9, "cost.corner", "did you mean 'sharp'?", "one of smooth, sharp"),
    "efficiency-above-one": (9, "cost.efficiency.gemm", "between 0 and 1", "1.2"),
    "program-missing": (1, "program", "table is missing", 'use = "async-chain"'),
    "program-unknown": (5, "program.use", "unknown program", "did you mean 'all-reduce'?"),
    "parameter-unknown": (6, "program.nbyte", "no parameter 'nbyte'", "did you mean 'nbytes'?"),
    "parameter-choice": (3, "program.how", "did you mean 'item'?", "one of nothing, item, print"),
    "mode-unknown": (9, "execution.mode", "did you mean 'synchronous'?", "one of eager"),
    "frontend-unknown": (9, "frontend.use", "did you mean 'pytorch' or 'pytorch-1'?"),
    "seed-negative": (9, "run.seed", "at least 0", "-1"),
    "integer-huge": (3, "program.n", "at most 64 bits", "program.t1: it cannot be negative"),
    "folder-is-file": (3, "machine.folder", "cannot be read", "this is a file, not a folder"),
    "decimal-comma": (3, "program.t1", "decimals have a point", "1,5 us"),
    "date": (7, "program.gpus", "a date is no value here", "2024-01-01"),
    "expectation-unknown": (9, "expect.times", "did you mean 'time'?", "metrics.NAME"),
    "expectation-empty": (9, "expect.time", "either a value, or min and max", '{ value = "60 ms"'),
    "expectation-unit": (9, "expect.time", "unit of size", "a time is expected"),
    "expectation-no-such-metric": (10, "expect.metrics.busbw2", "did you mean 'metrics.busbw'"),
    "expectation-other-unit": (10, "expect.metrics.busbw", "unit of time", "a bandwidth is expected"),
    "variant-unknown-key": (10, "compare[0].set.program.nbyts", "no parameter", "did you mean 'nbytes'?"),
    "variant-wrong-value": (10, "compare[0].set.program.nbytes", "'Mbit' or 'MB'"),
    "variant-no-name": (8, "compare[0].name", "key is missing"),
    "variant-other-program": (10, "compare[0].set", "with the variant 'reads'", "program.nbytes", "working_set"),
    "python-missing": (2, "program.python", "no Python file", "nowhere.py", "did you mean 'own.py'?"),
    "python-no-function": (2, "program.python", "has no function 'wrok'", "did you mean 'work'?"),
    "python-no-generator": (0, "", "own.py:7", "no generator function", "yield launch(kernel, m.gpu())"),
    "python-no-default": (0, "", "own.py:20", "'n'", "needs an annotation and a default", "n: int = 100"),
    "python-syntax": (0, "", "syntax.source:2", "not valid Python", "for i in range(n)"),
    "python-raises": (0, "", "own.py:13", "AttributeError", "no_such_thing"),
    "python-no-verb": (1, "program", "'a text', which is no verb", "known verbs: launch"),
    "graph-cycle": (1, "program", "cycle"),
    "folder-missing": (3, "machine.folder", "no such folder", "no-such-folder"),
    "operation-unknown": (6, "program.ops[0].op", "'matmull'", "did you mean 'matmul'"),
    "too-few-gpus": (7, "program.gpus", "has 4", "at most 4"),
    "no-such-file": (0, "", "no such file or shipped scenario", "simperf scenarios list"),
}
CHECK = {
    "part-negative": (5, "memory_bandwidth", "cannot be negative", "-900 GB/s"),
    "part-types": (2, "title", "a text in quotes", "sms: at least 1 is expected", "l2: the unit is missing"),
    "part-no-source": (5, "memory_bandwidth", "no source", 'default = "..."'),
    "part-key-missing": (1, "memory_bandwidth", "this key is missing"),
    "part-unknown-kind": (1, "kind", "did you mean 'gpu'?", "one of architecture"),
    "part-unknown-architecture": (3, "architecture", "did you mean 'volta'?"),
    "part-wrong-unit": (4, "rate", "'Gbit/s' or 'GB/s'", "latency", "a time is expected"),
    "server-unwired": (4, "node", "no link joins gpu2, gpu3 to gpu0"),
    "cluster-unknown-server": (3, "server", "did you mean 'dgx-h100'"),
}
CASES = [("run", name, *rest) for name, rest in RUN.items()] + [("check", name, *rest) for name, rest in CHECK.items()]


@pytest.mark.parametrize(("command", "name", "expected"), [(case[0], case[1], case[2:]) for case in CASES])
def test_a_broken_file_is_refused_in_words_that_help(command, name, expected, capsys):
    line, key, *words = expected
    path = FILES / f"{name}.toml"
    assert main([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "", "the result's stream stays empty"
    assert "Traceback" not in err
    told = err.partition("\n")[2] if err.startswith("runs the code of ") else err
    assert told.startswith("error: ")
    assert f"{path}:{line}:" in err if line else str(FILES) in err
    assert not key or f": {key}: " in err, err
    for word in words:
        assert word in err, err


def test_every_file_is_in_the_table():
    assert {path.stem for path in FILES.glob("*.toml")} | {"no-such-file"} == {*RUN, *CHECK, "many-problems"}


def test_all_problems_come_at_once(capsys):
    assert main(["run", str(FILES / "many-problems.toml")]) == 2
    err = capsys.readouterr().err
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert [line.split(":")[2] for line in lines] == ["2", "5", "9", "10", "11"]
    for word in ("machine.use", "execution.mode", "program.nbytes", "program.times", "program.size"):
        assert word in err


def test_a_directory_is_no_file(capsys):
    assert main(["run", str(FILES)]) == 2
    assert "this is a directory" in capsys.readouterr().err


def test_the_same_files_are_refused_by_every_command_that_reads_them(capsys):
    for command in ("run", "compare", "check"):
        assert main([command, str(FILES / "key-unknown.toml")]) == 2
        assert "did you mean 'title'?" in capsys.readouterr().err


def test_a_broken_file_does_not_keep_others_from_being_checked(capsys):
    names = ["key-unknown", "seed-negative"]
    assert main(["check", *(str(FILES / f"{name}.toml") for name in names), "d2l/sync-160mb"]) == 2
    out, err = capsys.readouterr()
    assert "titel" in err
    assert "run.seed" in err
    assert "ok  d2l/sync-160mb" in out
