"""`simperf.cli.terminal` and `simperf.cli.outputs`: playing, naming what went wrong, and refusing outputs early."""

import sys
from pathlib import Path

import pytest

from simperf.cli.outputs import verify_outputs
from simperf.cli.terminal import play, progress
from simperf.errors import InputError
from simperf.run import run
from simperf.scenario import load_scenario, make_scenario


def test_play_gives_what_run_gives():
    scenario = make_scenario({"program": {"use": "async-chain", "n": 3}})
    assert play(scenario).time == play(scenario, record=False).time == run(scenario).time


def test_a_problem_of_a_variant_names_it(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        '[machine]\nuse = "dgx-1v"\n[program]\nuse = "two-devices"\nn = 1\n'
        '[[compare]]\nname = "many"\nset = { "program.devices" = 9 }\n'
    )
    with pytest.raises(InputError, match="in the variant 'many': the program uses gpu8") as caught:
        play(load_scenario(path).variants[0])
    assert caught.value.problems[0].line == 3


def test_a_program_of_ones_own_is_to_blame_for_its_own_division(tmp_path):
    (tmp_path / "mine.py").write_text("def work(m, *, n: int = 1):\n    yield 1 / n\n")
    with pytest.raises(InputError, match=r"mine\.py:2: ZeroDivisionError"):
        play(make_scenario({"program": {"python": "mine.py:work", "n": 0}}, folder=tmp_path))


def test_a_defect_stays_a_defect(monkeypatch):
    monkeypatch.setattr(sys.modules["simperf.run"], "collect", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        play(make_scenario({"program": {"use": "async-chain", "n": 3}}))


def test_progress_is_for_terminals(capsys, monkeypatch):
    assert list(progress(["a", "b"])) == ["a", "b"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress(["a", "b"])) == ["a", "b"]
    assert "[2/2] b" in capsys.readouterr().err


def test_outputs(tmp_path):
    verify_outputs(trace=tmp_path / "t.json", plot=tmp_path / "p.SVG", save=Path("/dev/null"))
    with pytest.raises(InputError) as caught:
        verify_outputs(trace=tmp_path, plot=tmp_path / "p.gif", save=tmp_path / "no" / "r.json")
    assert [problem.file for problem in caught.value.problems] == ["--trace", "--save", "--plot"]
    with pytest.raises(InputError, match=r"the name must end in \.json") as caught:
        verify_outputs(save=tmp_path / "r.csv", map_file=tmp_path / "m.txt", report=tmp_path / "r.txt", kind="roofline")
    assert [problem.file for problem in caught.value.problems] == ["--save", "--map", "--report", "--plot-kind"]


def test_an_unknown_name_is_placed_at_its_key(simperf, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[machine]\nuse = "book-4gpu"\n[program]\nuse = "all-reduce"\nnbytes = "1 MB"\nalgorithm = "rng"\n'
    )
    code, out, err = simperf("run", "s.toml")
    assert (code, out) == (2, "")
    assert err.startswith(
        "error: s.toml:6: program.algorithm: unknown all-reduce algorithm 'rng'; did you mean 'ring'?"
    )


def test_a_value_without_meaning_is_placed_at_its_key(simperf, tmp_path):
    (tmp_path / "s.toml").write_text(
        '[machine]\nuse = "book-4gpu"\n[program]\nuse = "parameter-server"\nservers = 0\n'
        '[[compare]]\nname = "many"\nset = { "program.servers" = 20 }\n'
    )
    code, _, err = simperf("run", "s.toml")
    assert (code, err) == (2, "error: s.toml:5: program.servers: at least one server is needed (read: 0)\n")
    code, _, err = simperf("run", "s.toml", "--variant", "many")
    assert err.startswith("error: s.toml:8: program.servers: in the variant 'many': 20 servers for 10 shards")
    code, _, err = simperf("run", "s.toml", "--set", "program.servers=30")
    assert err.startswith("error: --set: program.servers: 30 servers for 10 shards"), "it is not what line 5 says"
    code, _, err = simperf("run", "s.toml", "--variant", "many", "--set", "program.servers=30", "--set", "run.seed=1")
    assert err.startswith("error: s.toml:8: program.servers: in the variant 'many': 20 servers for 10 shards")


def test_a_data_set_is_refused_under_its_own_option(tmp_path):
    with pytest.raises(InputError, match=r"--output: .*there is no folder"):
        verify_outputs(output=tmp_path / "no" / "data.json")
    with pytest.raises(InputError, match=r"--output: .*must end in .json"):
        verify_outputs(output=tmp_path / "data.txt")


def test_a_model_that_does_not_fit_is_bad_input(simperf, tmp_path):
    """File, line, key, what holds the memory, what would fit; all devices at once; what is said to fit does."""
    text = '[machine]\nuse = "p3-8xlarge"\n[program]\nuse = "train"\nmodel = "resnet50"\nbatch = 1024\nsteps = 1\n'
    (tmp_path / "s.toml").write_text(text)
    code, out, err = simperf("run", "s.toml")
    assert (code, out) == (2, "")
    start = "error: s.toml:6: program.batch: gpu0 is out of memory: 256 samples need 22.51 GB (weights 102.2 MB"
    assert err.startswith(start)
    fits = "but it has 17.18 GB; at most 194 samples fit on it; so are gpu1, gpu2, gpu3\n"
    assert err.endswith(f"{fits}    expected: at most 776, or accumulate = 2\n")
    assert simperf("run", "s.toml", "--set", "program.batch=776")[0] == 0
    assert simperf("run", "s.toml", "--set", "program.accumulate=2")[0] == 0
    assert simperf("run", "s.toml", "--set", "program.batch=780")[0] == 2


def test_a_mode_without_effect_is_placed_at_its_table(simperf, tmp_path):
    text = '[machine]\nuse = "p3-8xlarge"\n[execution]\nmode = "captured"\n[program]\nuse = "train"\nsteps = 1\n'
    (tmp_path / "s.toml").write_text(text)
    code, _, err = simperf("run", "s.toml")
    assert code == 2
    assert err.startswith("error: s.toml:4: execution.mode: training launches kernel by kernel")


def test_quantities_are_repeated_as_they_were_written(simperf, tmp_path):
    text = '[machine]\nuse = "p3-8xlarge"\n[program]\nuse = "train"\nstrategy = "naive"\nbucket = "5 MiB"\nevery = 2\n'
    (tmp_path / "s.toml").write_text(text)
    code, _, err = simperf("run", "s.toml")
    assert (code, err.count("error: s.toml:")) == (2, 2)
    assert "s.toml:6: program.bucket: naive has no use for it (read: '5 MiB')" in err
    assert "s.toml:7: program.every: naive has no use for it (read: 2)" in err
