"""Transformers as tables and files: ``[model]`` of a scenario, or a TOML file with the same keys at its top."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from simperf.files import TomlFile, read_toml
from simperf.formats import read_fields, table_of, write_table
from simperf.workload.transformers.dimensions import Transformer

__all__ = ["parse_transformer", "read_transformer", "transformer_table", "write_transformer"]


def parse_transformer(data: Mapping[str, Any], toml: TomlFile, at: tuple[str | int, ...] = ()) -> Transformer:
    """The transformer of a table.

    Parameters
    ----------
    data : mapping
        Keys as the fields of `Transformer`.
    toml : TomlFile
        Where it stands.
    at : tuple of str or int
        Its key path in the file.

    Raises
    ------
    InputError
        All that is wrong with it, with file, line and key.
    """
    return read_fields(Transformer, data, toml, at, what="a transformer")


def transformer_table(model: Transformer) -> dict[str, Any]:
    """The table of a transformer.

    Examples
    --------
    >>> transformer_table(Transformer(layers=2, hidden=64, heads=4, vocabulary=100, sequence=16))
    {'format': 1, 'layers': 2, 'hidden': 64, 'heads': 4, 'vocabulary': 100, 'sequence': 16}
    """
    return table_of(model)


def read_transformer(path: str | os.PathLike[str]) -> Transformer:
    """The transformer in a file.

    Raises
    ------
    InputError
        No such file, not TOML, or all that is wrong with it, with lines and keys.
    """
    toml = read_toml(path)
    return parse_transformer(toml.data, toml)


def write_transformer(model: Transformer, path: str | os.PathLike[str]) -> None:
    """Write a transformer to a TOML file."""
    write_table(transformer_table(model), path)
