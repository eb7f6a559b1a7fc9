"""CSV files that know the line of every row, within a limit of size."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from simperf.errors import InputError, Problem
from simperf.file_bytes import read_text

__all__ = ["CsvFile", "CsvRow", "parse_csv", "read_csv"]

#: bytes of a file [B]
_MOST_BYTES = 64 * 1024 * 1024
#: characters of a row that a message repeats
_LONGEST = 80


class CsvRow(NamedTuple):
    """Cells of a row, and the line on which it begins."""

    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class CsvFile:
    r"""Rows of a CSV file, its header among them; blank lines are none.

    Parameters
    ----------
    path : str
        As the user wrote it, for messages.
    rows : list of CsvRow
    expected : str
        What the file should be, for messages.

    Examples
    --------
    >>> file = parse_csv("size, time\n\n4,2.5\n", "mine.csv")
    >>> file.names, list(file.records())
    (['size', 'time'], [(3, {'size': '4', 'time': '2.5'})])
    """

    path: str
    rows: list[CsvRow]
    expected: str = ""

    @property
    def names(self) -> list[str]:
        """Names of the columns, where the first row is a header."""
        return [cell.strip() for cell in self.rows[0].cells] if self.rows else []

    def refuse_uneven(self) -> None:
        """Refuse rows that do not have a cell for each column.

        Raises
        ------
        InputError
            All of them.
        """
        names = self.names
        expected = self.expected or ", ".join(names)
        wrong = [
            Problem(
                f"{len(row.cells)} values in a table of {len(names)} columns",
                file=self.path,
                line=row.line,
                value=",".join(row.cells)[:_LONGEST],
                expected=expected,
            )
            for row in self.rows
            if len(row.cells) != len(names)
        ]
        if wrong:
            raise InputError(wrong)

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Line, and cells by column, of each row below the header.

        Raises
        ------
        InputError
            As of `refuse_uneven`, or two columns of one name.
        """
        self.refuse_uneven()
        names = self.names
        if twice := next((one for place, one in enumerate(names) if one in names[:place]), None):
            raise InputError(
                Problem("two columns of one name", file=self.path, line=1, value=twice, expected="one each")
            )
        return ((row.line, dict(zip(names, row.cells, strict=True))) for row in self.rows[1:])


def read_csv(path: str | os.PathLike[str], *, most: int = _MOST_BYTES, what: str = "", expected: str = "") -> CsvFile:
    """Read a file of comma-separated values.

    Parameters
    ----------
    path : path
    most : int
        Largest size that is read [B].
    what : str
        What a file that is wrong is, such as ``"no table of sends"``; begins messages.
    expected : str
        What the file should be, for messages.

    Raises
    ------
    InputError
        It cannot be read, is empty or too large, or is no CSV.
    """
    name = os.fspath(path)
    return parse_csv(read_text(name, most=most, what=what, expected=expected), name, what=what, expected=expected)


def parse_csv(text: str, name: str, *, what: str = "", expected: str = "") -> CsvFile:
    """Parse the text of a CSV file; see `read_csv`."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    rows, line = list[CsvRow](), 1
    try:
        for cells in reader:
            if len(cells) > 1 or (cells and cells[0].strip()):
                rows.append(CsvRow(line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"{what}{': ' if what else ''}not valid CSV: {error}"
        raise InputError(Problem(message, file=name, line=line, expected=expected)) from None
    return CsvFile(name, rows, expected)
