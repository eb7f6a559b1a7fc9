"""The commands that only print: `show`, `schema`, `scenarios`, `programs`."""

import csv
import io
import json

import pytest

from simperf.programs import PROGRAMS


def test_show_prints_what_run_printed(simperf, chain, tmp_path):
    _, ran, _ = simperf("run", chain, "--variant", "slow", "--save", "r.json.gz")
    code, shown, _ = simperf("show", "r.json.gz", "--trace", "t.json", "--plot", "p.png")
    assert code == 0
    assert ran.startswith(shown[: shown.index("\n\n")])
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert json.loads(simperf("show", "r.json.gz", "--format", "json")[1])["time"] == pytest.approx(0.041)


def test_show_refuses_what_is_no_result(simperf, chain, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    for name in (chain, "x.json", "missing.json"):
        code, out, err = simperf("show", name)
        assert (code, out) == (2, "")
        assert str(name) in err


def test_schema(simperf):
    assert json.loads(simperf("schema")[1])["title"] == "simperf scenario"
    assert json.loads(simperf("schema", "gpu")[1])["title"] == "simperf gpu"
    code, _, err = simperf("schema", "gpux")
    assert code == 2
    assert "did you mean 'gpu'" in err


def test_scenarios(simperf, tmp_path):
    rows = json.loads(simperf("scenarios", "list", "--format", "json")[1])
    assert next(row for row in rows if row["name"] == "d2l/sync-160mb")["variants"] == 3
    assert all(row["question"] for row in rows)
    assert len(list(csv.DictReader(io.StringIO(simperf("scenarios", "list", "--format", "csv")[1])))) == len(rows)
    assert "d2l/async" in simperf("scenarios", "list")[1]
    code, out, err = simperf("scenarios", "copy", "d2l/async", "mine.toml")
    assert (code, out) == (0, "mine.toml\n")
    assert "simperf run mine.toml" in err
    assert simperf("run", "mine.toml")[0] == 0
    code, _, err = simperf("scenarios", "copy", "d2l/async", "mine.toml")
    assert code == 2
    assert "not overwritten" in err


def test_programs(simperf):
    rows = json.loads(simperf("programs", "--format", "json")[1])
    assert [row["name"] for row in rows] == list(PROGRAMS)
    out = simperf("programs", "async-chain")[1]
    assert 'use = "async-chain"' in out
    assert "time of the frontend to issue one" in out
    assert simperf("programs", "async-chian")[0] == 2


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_parameter_of_every_program_is_explained(simperf, name):
    for row in json.loads(simperf("programs", name, "--format", "json")[1]):
        assert row["meaning"], row
        assert row["type"]


def test_types_of_parameters_are_plain_words(simperf):
    code, out, _ = simperf("programs", "all-reduce", "--format", "json")
    assert code == 0
    types = {row["parameter"]: row["type"] for row in json.loads(out)}
    assert types["times"] == "int"
    assert types["nbytes"] == "quantity [B]"
    assert not any("<" in text for text in types.values())


def test_shipped_scenarios_are_listed_folder_by_folder(simperf):
    out = simperf("scenarios", "list")[1]
    assert out.startswith("name ")
    assert out.count("\n\nname ") == len({row["name"].split("/")[0] for row in _rows(simperf)}) - 1
    assert max(map(len, out.splitlines())) <= 80


def _rows(simperf):
    return json.loads(simperf("scenarios", "list", "--format", "json")[1])


def test_a_machine_in_a_file_is_drawn_as_it_stands_there(simperf, tmp_path):
    path = tmp_path / "dgx-1v.toml"  # the name of a machine of the catalogue does not matter
    path.write_text(
        'kind = "server"\ntitle = "Two"\n[[node]]\nid = "gpu{0..1}"\ngpu = "t4"\n'
        '[[link]]\na = "gpu0"\nb = "gpu1"\nbandwidth = "1 GB/s"\nlatency = "1 us"\n'
    )
    code, out, _ = simperf("topo", "dgx-1v.toml", "--format", "json")
    assert code == 0
    assert json.loads(out)["devices"] == ["gpu0", "gpu1"]
    path.write_text(path.read_text().replace("1 GB/s", "1 Gb/s"))
    code, _, err = simperf("topo", "dgx-1v.toml")
    assert code == 2
    assert "dgx-1v.toml:9: link[0].bandwidth" in err
    path.write_text('kind = "gpu"\ntitle = "x"\n')
    assert "expected: server or cluster" in simperf("topo", "dgx-1v.toml")[2]
    assert "no such file" in simperf("topo", "nothing.toml")[2]


@pytest.mark.parametrize("command", ["topo", "collective", "catalog list", "zoo show", "scenarios copy"])
def test_help_names_what_stands_where(simperf, command):
    out = simperf(*command.split(), "--help")[1]
    assert "list[Path]" not in out
    assert "--plot <path>" not in out
    assert "{name}" not in out


def test_accuracy_refuses_a_file_that_could_not_be_written_before_anything_is_predicted(simperf, monkeypatch):
    message = "it was predicted before"
    monkeypatch.setattr("simperf.accuracy.tables.validation_table", lambda names: pytest.fail(message))
    code, out, err = simperf("accuracy", "-o", "no/page.md", "--format", "markdown")
    assert (code, out) == (2, "")
    assert "there is no folder 'no'" in err
