"""Published cases: a folder of measured data, which stays where it is (see CONTRIBUTING.md)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simperf.errors import InputError
from simperf.json_file import read_json

__all__ = ["read_cases", "source_of"]


def read_cases(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the cases of a folder of measured data.

    Raises
    ------
    InputError
        The folder has no ``cases.json``, or it cannot be read.
    """
    path = Path(folder) / "cases.json"
    file = read_json(path, expected="a folder with measured data (cases.json)", finite=False)
    found = file.data["cases"] if isinstance(file.data, dict) and "cases" in file.data else file.data
    if not isinstance(found, list) or not all(isinstance(case, dict) for case in found):
        raise InputError(file.problem(("cases",), "a list of cases is expected"))
    return found


def source_of(case: Mapping[str, Any]) -> str:
    """Source in which a case was published, in one line."""
    source = case.get("source", {})
    if "repo" in source:
        return f"{source['repo']}, {source.get('path', '')} at {source.get('commit', '')}".strip()
    url = source.get("url", "")
    return ", ".join(url) if isinstance(url, list) else str(url)
