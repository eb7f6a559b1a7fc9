"""Published cases: a folder of measured data, which stays where it is (see CONTRIBUTING.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem

__all__ = ["read_cases", "source_of"]


def read_cases(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Read the cases of a folder of measured data.

    Raises
    ------
    InputError
        The folder has no ``cases.json``, or it cannot be read.
    """
    path = Path(folder) / "cases.json"
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        expected = "a folder with measured data (cases.json)"
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=str(path), expected=expected)) from None
    except ValueError as error:
        raise InputError(Problem(f"not valid JSON: {error}", file=str(path))) from None
    return list(found["cases"] if isinstance(found, dict) else found)


def source_of(case: Mapping[str, Any]) -> str:
    """Where a case was published, in one line."""
    source = case.get("source", {})
    if "repo" in source:
        return f"{source['repo']}, {source.get('path', '')} at {source.get('commit', '')}".strip()
    url = source.get("url", "")
    return ", ".join(url) if isinstance(url, list) else str(url)
