"""Where a job's configuration is read from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["JobSource"]


class JobSource(NamedTuple):
    """Where a configuration is read from, and what stands beside it.

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
