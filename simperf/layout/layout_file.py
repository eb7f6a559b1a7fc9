"""Layouts as tables and files: ``[layout]`` of a scenario, or a TOML file with the same keys at its top."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from simperf.files import TomlFile, read_toml
from simperf.formats import read_fields, table_of, write_table
from simperf.layout.layout import Layout

__all__ = ["layout_table", "parse_layout", "read_layout", "write_layout"]


def parse_layout(data: Mapping[str, Any], toml: TomlFile, at: tuple[str | int, ...] = ()) -> Layout:
    """The layout of a table.

    Parameters
    ----------
    data : mapping
        Keys as the fields of `Layout`; `order` is a text such as ``"tp-cp-ep-dp-pp"``.
    toml : TomlFile
        Where it stands.
    at : tuple of str or int
        Its key path in the file.

    Raises
    ------
    InputError
        All that is wrong with it, with file, line and key.
    """
    given = dict(data)
    if isinstance(given.get("order"), str):
        given["order"] = tuple(given["order"].split("-"))
    elif "order" in given:
        given["order"] = (str(given["order"]),)
    return read_fields(Layout, given, toml, at, what="a layout")


def layout_table(layout: Layout) -> dict[str, Any]:
    """The table of a layout.

    Examples
    --------
    >>> layout_table(Layout(dp=4, tp=8, sharding="zero-1"))
    {'format': 1, 'dp': 4, 'tp': 8, 'sharding': 'zero-1'}
    """
    table = table_of(layout)
    if "order" in table:
        table["order"] = "-".join(table["order"])
    return table


def read_layout(path: str | os.PathLike[str]) -> Layout:
    """The layout in a file.

    Raises
    ------
    InputError
        No such file, not TOML, or all that is wrong with it, with lines and keys.
    """
    toml = read_toml(path)
    return parse_layout(toml.data, toml)


def write_layout(layout: Layout, path: str | os.PathLike[str]) -> None:
    """Write a layout to a TOML file."""
    write_table(layout_table(layout), path)
