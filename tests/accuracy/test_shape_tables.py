"""Reading tables of kernels by shape: columns, constants, units, and files that are none."""

import gzip
import json

import numpy as np
import pytest

from simperf.accuracy.shape_tables import read_shape_tables
from simperf.errors import InputError

HEADER = "gemm_dtype,m,n,k,latency"
ROWS = ["bfloat16,1,32,64,0.0025", "fp8,4096,8192,1024,0.75"]


def entry(file, columns, **constant):
    return {"file": file, "path": f"systems/{file}", "columns": columns.split(","), "constant": constant}


def write(home, entries, tables):
    folder = home / "llm" / "kernels"
    folder.mkdir(parents=True)
    (folder / "index.json").write_text(json.dumps({"source": "somebody/tables at abc", "tables": entries}))
    for name, lines in tables.items():
        (folder / name).write_bytes(gzip.compress("\n".join(lines).encode()))
    return home


@pytest.fixture
def folder(tmp_path):
    entries = [
        entry("h_gemm.csv.gz", HEADER, device="NVIDIA H200", framework="LIB"),
        entry("x_gemm.csv.gz", HEADER, device="NVIDIA X900"),
        entry("h_deepep.csv.gz", "num_token,dispatch_transmit_us", device="NVIDIA H200", node_num=2),
    ]
    tables = {
        "h_gemm.csv.gz": [HEADER, *ROWS],
        "x_gemm.csv.gz": [HEADER, ROWS[0]],
        "h_deepep.csv.gz": ["num_token,dispatch_transmit_us", "128,25.5"],
    }
    return write(tmp_path, entries, tables)


def test_a_table_becomes_columns_in_si_units_with_its_constants(folder):
    first, _ = read_shape_tables(folder, "gemm")
    assert (first.gpu, len(first)) == ("h200-sxm-141gb", 2)
    assert first["latency"] == pytest.approx([2.5e-6, 0.75e-3])
    assert list(first["gemm_dtype"]) == ["bfloat16", "fp8"]
    assert list(first["framework"]) == ["LIB", "LIB"], "what is the same in all rows is a column, too"
    assert first.source == "somebody/tables at abc, systems/h_gemm.csv.gz"
    chosen = first.where(first["m"] >= 1024)
    assert list(chosen["n"]) == [8192.0]


def test_microseconds_and_other_kinds(folder):
    (table,) = read_shape_tables(folder, "deepep")
    assert table["dispatch_transmit"] == pytest.approx([25.5e-6])
    assert np.array_equal(table["node_num"], [2.0])
    assert read_shape_tables(folder, "moe") == []


def test_a_gpu_that_the_catalogue_lacks_has_a_table_without_a_part(folder):
    tables = read_shape_tables(folder, "gemm")
    assert [(table.device, table.gpu) for table in tables if not table.gpu] == [("NVIDIA X900", "")]
    assert len(tables) == 2


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["m,n", "1,2"], "h_gemm.csv.gz:1: columns are not those of the index"),
        ([HEADER, "fp8,1,2,3"], "h_gemm.csv.gz:2: 4 values in a table of 5 columns"),
        ([HEADER, *ROWS, "fp8,1,2,3,soon"], "h_gemm.csv.gz:4: latency: not a time"),
        ([HEADER, ROWS[0], "fp8,1,2,3,nan"], "h_gemm.csv.gz:3: latency: not a time"),
        ([HEADER, "fp8,1,2,3,0"], "h_gemm.csv.gz:2: latency: not a time"),
        ([HEADER, ROWS[0], "fp8,x,2,3,1.0"], "h_gemm.csv.gz:3: m: not a size"),
        ([HEADER, ROWS[0], "fp8,1,nan,3,1.0"], "h_gemm.csv.gz:3: n: not a size"),
        ([HEADER, "fp8,1,2,12.5,1.0"], "h_gemm.csv.gz:2: k: not a size"),
        ([HEADER, "fp8,0,2,3,1.0"], "h_gemm.csv.gz:2: m: not a size"),
        ([], "an empty table"),
    ],
)
def test_a_bad_table_is_told_with_its_line(tmp_path, lines, words):
    write(tmp_path, [entry("h_gemm.csv.gz", HEADER, device="NVIDIA H200")], {"h_gemm.csv.gz": lines})
    with pytest.raises(InputError, match=words):
        read_shape_tables(tmp_path, "gemm")


def test_files_that_are_missing_or_not_packed_are_told(tmp_path):
    with pytest.raises(InputError, match=r"index\.json: no such file"):
        read_shape_tables(tmp_path, "gemm")
    write(tmp_path, [entry("h_gemm.csv.gz", HEADER, device="NVIDIA H200")], {})
    with pytest.raises(InputError, match=r"h_gemm\.csv\.gz: no such file"):
        read_shape_tables(tmp_path, "gemm")
    (tmp_path / "llm/kernels/h_gemm.csv.gz").write_text(HEADER)
    with pytest.raises(InputError, match=r"h_gemm\.csv\.gz: the file is damaged, or not packed"):
        read_shape_tables(tmp_path, "gemm")
    with pytest.raises(InputError, match="no kind of table"):
        read_shape_tables(tmp_path, "gemms")
