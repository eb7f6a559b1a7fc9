"""Sources of a job's configuration, and the values of tables in one another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["JobSource", "leaves"]


class JobSource(NamedTuple):
    """Source of a job's configuration, and what stands beside it.

    Parameters
    ----------
    path : str
        Empty for a list of arguments.
    words : tuple of str
        Of that list.
    variables : mapping of str to str
        Of a script.
    """

    path: str
    words: tuple[str, ...]
    variables: Mapping[str, str]


def leaves(table: Mapping[str, Any], at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Paths and values of all that is no table."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value
