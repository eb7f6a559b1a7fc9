"""Tables of measured kernels and collectives by their shape: an index, and one compressed table of a GPU and a kind.

A folder of measured data has them in ``llm/kernels``: ``index.json`` names each table's file, source, columns and what
is the same in all of its rows; the tables are CSV with gzip.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.csv_file import CsvFile, CsvRow, parse_csv
from simperf.errors import InputError, Problem
from simperf.file_bytes import decode, read_bytes, unpacked
from simperf.hardware import Catalog
from simperf.hardware.gpu_names import gpu_of_driver
from simperf.json_file import read_json

__all__ = ["KINDS", "ShapeTable", "read_shape_tables", "shape_tables"]

#: kinds of tables, as their files' names end
KINDS = (
    "gemm",
    "attention_prefill",
    "attention_decode",
    "mla_prefill",
    "moe",
    "nccl",
    "custom_allreduce",
    "deepep",
)
#: endings of columns that are times, in the unit that they have there [s]; ``latency`` has none and is in ms
_TIMES = {"latency": 1e-3, "_us": 1e-6}
#: columns of a kind that are sizes of a kernel, and the largest that one may be
_SIZES: Mapping[str, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "attention_prefill": ("batch_size", "isl", "num_heads"),
    "moe": ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"),
}
_MOST = 2**40
#: what one table may unpack to [B]; the largest known one has 500 kB
_LARGEST = 256 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTable:
    """One table: a kind of kernel or collective on one GPU.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    device : str
        The GPU as the table names it.
    gpu : str
        Its name in the catalogue; empty if it has none.
    source : str
        Repository, commit and path.
    columns : mapping of str to array
        One value a row: those of the table, and what is the same in all rows. Numbers are floats, and times are in
        seconds, under the name ``latency`` or, of several, the table's less ``_us``; all else is text.
    """

    kind: str
    device: str
    gpu: str
    source: str
    columns: Mapping[str, NDArray[Any]]

    def __len__(self) -> int:
        """Rows."""
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, column: str) -> NDArray[Any]:
        """One column.

        Raises
        ------
        InputError
            The table has none of that name.
        """
        try:
            return self.columns[column]
        except KeyError:
            message = f"the table {self.kind} of {self.device} has no column {column!r}"
            raise InputError(Problem(message, expected=", ".join(self.columns))) from None

    def where(self, chosen: NDArray[np.bool_]) -> ShapeTable:
        """The rows that are `chosen`."""
        columns = {name: values[chosen] for name, values in self.columns.items()}
        return ShapeTable(self.kind, self.device, self.gpu, self.source, columns)


def read_shape_tables(folder: str | os.PathLike[str], kind: str) -> list[ShapeTable]:
    """Read every table of a kind, in the order of the index.

    Parameters
    ----------
    folder : path
        A folder of measured data, with ``llm/kernels/index.json``.
    kind : str
        One of `KINDS`.

    Raises
    ------
    InputError
        The index or a table cannot be read, or has something else in it than it says.
    """
    return list(shape_tables(folder, kind))


def shape_tables(folder: str | os.PathLike[str], kind: str) -> Iterator[ShapeTable]:
    """The tables of a kind, one at a time (`read_shape_tables`)."""
    if kind not in KINDS:
        raise InputError(Problem("no kind of table", key="kind", value=repr(kind), expected=", ".join(KINDS)))
    home = Path(folder) / "llm" / "kernels"
    index = home / "index.json"
    expected = '{"source": ..., "tables": [...]}'
    file = read_json(index, what="not an index of tables", expected=expected)
    found = file.data
    entries = found.get("tables") if isinstance(found, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(file.problem(("tables",), "not an index of tables", expected=expected))
    source = str(found.get("source", ""))
    for entry in entries:
        if str(entry.get("file", "")).endswith(f"_{kind}.csv.gz"):
            yield _table(home / str(entry["file"]), kind, entry, source)


def _table(path: Path, kind: str, entry: Mapping[str, Any], source: str) -> ShapeTable:
    """One table with its constants as columns."""
    table = _unpacked(path)
    header, rows = table.names, table.rows[1:]
    named = [str(column) for column in entry.get("columns", ())]
    if header != named:
        message, read = "columns are not those of the index", ",".join(header)
        raise InputError(Problem(message, file=str(path), line=1, value=read, expected=",".join(named)))
    table.refuse_uneven()
    columns: dict[str, NDArray[Any]] = {}
    for position, name in enumerate(header):
        cells = [CsvRow(row.line, [row.cells[position]]) for row in rows]
        key, values = _column(path, name, cells)
        if key in _SIZES.get(kind, ()):
            _verify_sizes(path, key, values, cells)
        columns[key] = values
    constant = dict(entry.get("constant", {}))
    device = str(constant.pop("device", ""))
    for name, value in constant.items():
        key, values = _column(path, str(name), [CsvRow(row.line, [str(value)]) for row in rows])
        columns.setdefault(key, values)
    where = f"{source}, {entry.get('path', path.name)}"
    known = gpu_of_driver(device, Catalog.load())
    return ShapeTable(kind, device, known.name if known else "", where, columns)


def _unpacked(path: Path) -> CsvFile:
    """Header and rows of a table."""
    name, expected = str(path), "a table of CSV with gzip"
    data = unpacked(read_bytes(path, most=_LARGEST, expected=expected), name, most=_LARGEST, expected=expected)
    if not data.strip():
        expected = "a header, and a row for each measurement"
        raise InputError(Problem("an empty table of CSV", file=name, expected=expected))
    what = "not a table of CSV with gzip"
    return parse_csv(decode(data, name, what=what), name, what=what, expected="a value for each column")


def _column(path: Path, name: str, rows: list[CsvRow]) -> tuple[str, NDArray[Any]]:
    """Name and values of a column, of one cell a row: floats where all are numbers, times in seconds."""
    texts = [row.cells[0] for row in rows]
    scale = next((unit for ending, unit in _TIMES.items() if name.endswith(ending)), None)
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        numbers = None
    if scale is None:
        return name, np.array(texts, dtype=str) if numbers is None else numbers
    wrong = None if numbers is None else np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if numbers is None or wrong is None or wrong.size:
        row = rows[int(wrong[0])] if wrong is not None else _first_text(rows)
        value, expected = repr(row.cells[0]), "a number above 0"
        raise InputError(Problem("not a time", file=str(path), line=row.line, key=name, value=value, expected=expected))
    return name.removesuffix("_us"), numbers * scale


def _verify_sizes(path: Path, name: str, values: NDArray[Any], rows: list[CsvRow]) -> None:
    """Refuse a column of sizes in which a value is no whole number above 0."""
    if values.dtype.kind == "f":
        wrong = np.flatnonzero(~((values >= 1) & (values <= _MOST) & (values == np.floor(values))))
        row = rows[int(wrong[0])] if wrong.size else None
    else:
        row = _first_text(rows)
    if row is not None:
        value, expected = repr(row.cells[0]), f"a whole number, 1 to {_MOST}"
        raise InputError(Problem("not a size", file=str(path), line=row.line, key=name, value=value, expected=expected))


def _first_text(rows: list[CsvRow]) -> CsvRow:
    """The first row whose cell is no number."""
    for row in rows:
        try:
            float(row.cells[0])
        except ValueError:
            return row
    return rows[0]
