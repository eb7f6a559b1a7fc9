"""Shares of experts from a file: how many rows each expert got where it was measured."""

from __future__ import annotations

import math
import os

from simperf.csv_file import read_csv
from simperf.errors import InputError, Problem

__all__ = ["read_shares"]

#: largest file that is read: a thousand draws of a thousand experts [B]
_MOST = 32 * 1024 * 1024
_EXPECTED = "a line for each draw, with a number for each expert: 120, 80, 95"


def read_shares(path: str | os.PathLike[str]) -> list[float]:
    """Shares of all experts in one load after the other, in the file's unit.

    Parameters
    ----------
    path : path
        A file of comma-separated values without a header: a line for each draw, a number for each expert.

    Raises
    ------
    InputError
        It cannot be read, a value is no number of 0 or more, or lines have different numbers of values.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        raise InputError(Problem("there is no such file", key="expert_shares_file", value=name, expected=_EXPECTED))
    shares, width = list[float](), 0
    for line, row in read_csv(path, most=_MOST, what="shares of experts", expected=_EXPECTED).rows:
        if width and len(row) != width:
            message, value = f"the line has {len(row)} numbers, those before it {width}", ",".join(row)
            raise InputError(Problem(message, file=name, line=line, value=value, expected=f"{width} numbers"))
        width = len(row)
        for value in row:
            try:
                number = float(value)
            except ValueError:
                number = math.nan
            if not 0.0 <= number < math.inf:
                message = "a share of an expert is a number of 0 or more"
                raise InputError(Problem(message, file=name, line=line, value=value.strip(), expected=_EXPECTED))
            shares.append(number)
    return shares
