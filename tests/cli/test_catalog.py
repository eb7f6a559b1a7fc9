"""`simperf catalog` and `simperf topo` as commands."""

import csv
import io
import json

import pytest
import typer
from typer.testing import CliRunner

from simperf.cli.catalog import app
from simperf.cli.topo import topo
from simperf.errors import InputError, UnknownNameError
from simperf.hardware import Catalog

COMMANDS = typer.Typer()
COMMANDS.add_typer(app, name="catalog")
COMMANDS.command()(topo)


def run(*arguments):
    result = CliRunner().invoke(COMMANDS, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list_names_everything():
    catalog = Catalog.load()
    rows = json.loads(run("catalog", "list", "--format", "json"))
    assert {(row["kind"], row["name"]) for row in rows} >= {("gpu", "l4"), ("server", "dgx-1v"), ("cluster", "p5-x2")}
    assert [
        row["name"] for row in csv.DictReader(io.StringIO(run("catalog", "list", "gpus", "--format", "csv")))
    ] == list(catalog.names("gpu"))
    assert "v100-sxm2-16gb" in run("catalog", "list", "gpu")


def test_show_gives_every_number_with_unit_and_source():
    text = run("catalog", "show", "v100-sxm2-16gb")
    for word in ("900.0 GB/s", "15.70 TFLOP/s", "16 GiB", "NVIDIA V100 datasheet"):
        assert word in text
    data = json.loads(run("catalog", "show", "v100-sxm2-16gb", "--format", "json"))
    assert {row["field"]: row["value"] for row in data["numbers"]}["peak.fp16"] == 125e12


def test_show_a_server_with_its_wiring_and_price():
    text = run("catalog", "show", "p3-16xlarge")
    for word in ("24.48 USD/h", "us-east-1", "gpu0 - gpu3", "40.00 GB/s", "└──"):
        assert word in text
    rows = list(csv.DictReader(io.StringIO(run("catalog", "show", "p3-16xlarge", "--format", "csv"))))
    assert float(next(row for row in rows if (row["a"], row["b"]) == ("gpu0", "gpu3"))["bandwidth [B/s]"]) == 40e9
    assert json.loads(run("catalog", "show", "dgx-a100-x4", "--format", "json"))["gpus"] == 32
    assert "switch0" in run("catalog", "show", "dgx-a100-x4")


def test_a_name_of_two_kinds_shows_both_or_the_one_asked_for():
    assert run("catalog", "show", "infiniband-hdr").count("InfiniBand HDR 4x") == 1
    assert "ConnectX" in run("catalog", "show", "infiniband-hdr")
    assert "ConnectX" not in run("catalog", "show", "infiniband-hdr", "--kind", "link")


def test_an_own_folder(tmp_path):
    text = Catalog.load().file("gpu", "l4").text.replace("NVIDIA L4", "My L4")
    (tmp_path / "mine.toml").write_text(text)
    assert "My L4" in run("catalog", "list", "gpu", "--folder", tmp_path)
    assert "My L4" in run("catalog", "show", "mine", "--folder", tmp_path)
    (tmp_path / "l4.toml").write_text(text)
    with pytest.raises(InputError, match="already defined"):
        run("catalog", "list", "--folder", tmp_path)


@pytest.mark.parametrize("arguments", [("catalog", "show", "l44"), ("catalog", "list", "gpuu"), ("topo", "dgx-1w")])
def test_unknown_names(arguments):
    with pytest.raises(UnknownNameError, match="did you mean"):
        run(*arguments)


def test_topo_prints_the_matrix_and_draws(tmp_path):
    text = run("topo", "dgx-1v", "--plot", tmp_path / "a.svg")
    assert " ".join(text.splitlines()[1].split()) == "gpu0 X NV1 NV1 NV2 NV2 SYS SYS SYS PIX PHB SYS SYS"
    assert (tmp_path / "a.svg").stat().st_size > 10_000
    data = json.loads(run("topo", "dgx-1v", "--format", "json"))
    assert data["connections"][0][3] == "NV2"
    assert run("topo", "dgx-1v", "--format", "csv").splitlines()[1].startswith("gpu0,X,NV1")
    assert "more devices" in run("topo", "dgx-h100-x128")


def test_a_rack_is_shown_in_few_rows_of_80_columns():
    text = run("catalog", "show", "gb200-nvl72")
    assert "gpu{0..71} - nvswitch0" in text
    assert "gpu{0..71} - cpu{0..35}" in text
    assert "(34 more that are connected in the same way)" in text
    assert "price: none, as the catalogue has no dated source of one" in " ".join(text.split())
    lines = text.splitlines()[1:]  # the title is as long as its file has it
    assert len(lines) < 60
    assert max(map(len, lines)) <= 80


def test_each_kind_of_price_has_its_own_date():
    text = " ".join(run("catalog", "show", "p5-48xlarge").split())
    assert "cloud: AWS" in text
    assert "price: 55.04 USD/h on demand (us-east-1, 2026-11-09" in text
    assert "price: 41.528 USD/h capacity block (us-east-1, 2026-09-19" in text


@pytest.mark.parametrize("kind", ["server", "cluster", "gpu"])
def test_lists_fit_into_80_columns(kind):
    assert max(map(len, run("catalog", "list", kind).splitlines())) <= 80


def test_connections_of_a_mesh_are_ranges_where_they_count_up():
    text = run("catalog", "show", "mi355x-8gpu")
    assert "gpu0 - gpu{1..7}" in text
    assert "gpu5 - gpu6" in text
    assert "gpu{0..7} - plx{0..7}" in text


def test_topo_of_a_rack_is_as_wide_as_that_of_a_server(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    text = run("topo", "gb200-nvl72")
    lines = text.splitlines()
    heads = [line for line in lines if line.startswith(" ")]  # at 80 columns the matrix is in two parts
    assert [line.split() for line in heads] == [[f"{kind}{index}" for index in range(8)] for kind in ("gpu", "nic")]
    assert "NV18" in lines[1]
    assert "(128 more devices that are connected in the same way)" in text
    assert max(map(len, lines)) <= 80
    assert lines[:9] == run("topo", "dgx-h100").splitlines()[:9]
