"""The ledger of tables that are too large to quote: read from a folder of measured data, if there is one.

The data stays where it is (see CONTRIBUTING.md); every point of it becomes a `LedgerRow`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem
from simperf.study.accuracy import LedgerRow

__all__ = ["read_cases", "roofline_ledger", "truth_ledgers"]


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


def truth_ledgers(folder: str | os.PathLike[str]) -> dict[str, list[LedgerRow]]:
    """Every table of a folder of measured data that can be predicted, by the title of its section."""
    from simperf.study.nccl_truth import fitted_ledger, nccl_ledger

    cases = read_cases(folder)
    sections = {
        "Kernels from the catalogue's peaks": roofline_ledger(cases),
        "Collectives from the catalogue": nccl_ledger(cases),
        "All-reduce with two fitted constants": fitted_ledger(Path(folder)),
    }
    return {title: rows for title, rows in sections.items() if rows}


def source_of(case: Mapping[str, Any]) -> str:
    """Where a case was published, in one line."""
    source = case.get("source", {})
    if "repo" in source:
        return f"{source['repo']}, {source.get('path', '')} at {source.get('commit', '')}".strip()
    url = source.get("url", "")
    return ", ".join(url) if isinstance(url, list) else str(url)


def roofline_ledger(cases: list[dict[str, Any]]) -> list[LedgerRow]:
    """Every measured kernel that the catalogue's roofline can be held against."""
    from simperf.analysis.truth_roofline import roofline_errors
    from simperf.hardware import Catalog

    by_id = {case["id"]: case for case in cases}
    rows = []
    for name, errors in roofline_errors(cases, Catalog.load().gpu).items():
        case = by_id[name.split(":")[0].split(" ")[0]] if name not in by_id else by_id[name]
        for one in errors:
            rows.append(
                LedgerRow(
                    f"Kernels: {name}",
                    one.label,
                    "time",
                    "s",
                    one.measured,
                    one.measured,
                    one.predicted,
                    case=case["id"],
                    source=source_of(case),
                    fitted="one efficiency per kernel family and architecture; a fixed time of the measuring program",
                )
            )
    return rows
