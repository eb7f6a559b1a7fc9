"""Transformers that come with simperf, by their dimensions: a file each in ``data``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.transformer_file import read_transformer

__all__ = ["shipped_transformers"]


@cache
def shipped_transformers() -> Mapping[str, Transformer]:
    """All of them by name, in order.

    Examples
    --------
    >>> round(shipped_transformers()["llama3-405b"].parameters / 1e9)
    406
    """
    folder = Path(__file__).parent / "data"
    return {path.stem: read_transformer(path) for path in sorted(folder.glob("*.toml"))}
