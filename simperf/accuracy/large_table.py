"""The stored table of published cases of large models: errors of predictions that take hours to simulate all.

A row stands for one measured number of a case. It is valid for the case as it was read (`LargeCase.digest`), and says
with which version and on which day it was simulated. ``python -m tests.truth.large_store`` writes it; a test simulates
some of its rows again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.large_cases import LargeCase, LeftOut, read_large_cases
from simperf.accuracy.large_grades import GAIN, LargeGrade, grade
from simperf.accuracy.large_jobs import case_time, counted_memory
from simperf.accuracy.large_ratios import schedule_ratios
from simperf.accuracy.memory_formula import formula_memory
from simperf.accuracy.questions import LARGE_MEMORY, LARGE_TIME
from simperf.accuracy.validation import ValidationRow
from simperf.csv_file import read_csv

__all__ = ["StoredGrade", "large_rows", "read_stored", "stored_grades", "stored_row"]

_DATA = Path(__file__).parent / "data" / "large_rows.csv"
_UNITS = {"time": "s", "memory": "B"}
_QUESTIONS = {"time": LARGE_TIME, "memory": LARGE_MEMORY}


@dataclass(frozen=True, slots=True)
class StoredGrade:
    """One measured number of a case: the prediction, and the errors of what is said of it.

    Parameters
    ----------
    family, case, quantity : str
        As of `LargeGrade`.
    stage : int
        Of a pipeline; -1 where no rank is named.
    predicted : float
        [s], [B] or [1]; NaN where there is none.
    error, simple : float
        Signed relative errors of the prediction and of the simple model [1]; NaN where there is none.
    digest : str
        Of the case as it was read.
    played : str
        Version and day.
    failure : str
        Why there is no prediction.
    """

    family: str
    case: str
    quantity: str
    stage: int
    predicted: float
    error: float
    simple: float
    digest: str
    played: str
    failure: str = ""


def stored_row(one: LargeGrade | LeftOut, case: LargeCase, played: str) -> StoredGrade:
    """The row of a grade, or of why a case has none; floats have five digits.

    Parameters
    ----------
    one : LargeGrade or LeftOut
    case : LargeCase
    played : str
        Version and day.
    """
    if isinstance(one, LeftOut):
        quantity, none = "memory" if case.time is None else "time", math.nan
        failure = "; ".join(reason.splitlines()[0] for reason in one.reasons)[:200]
        return StoredGrade(one.family, one.name, quantity, -1, none, none, none, case.digest, played, failure)
    predicted, error, simple = (float(f"{value:.5g}") for value in (one.predicted, one.error(), one.error("simple")))
    return StoredGrade(case.family, case.name, one.quantity, one.stage, predicted, error, simple, case.digest, played)


def read_stored(path: str | os.PathLike[str]) -> list[StoredGrade]:
    """Read a stored table."""
    found = []
    for _, line in read_csv(path).records():
        predicted, error, simple = (float(line[name]) for name in ("predicted", "error", "simple"))
        family, case, quantity = (line[name] for name in ("family", "case", "quantity"))
        digest, played, failure = (line[name] for name in ("digest", "played", "failure"))
        stage = int(line["stage"])
        found.append(StoredGrade(family, case, quantity, stage, predicted, error, simple, digest, played, failure))
    return found


@cache
def stored_grades() -> tuple[StoredGrade, ...]:
    """The table that the package has; empty if it has none."""
    return tuple(read_stored(_DATA)) if _DATA.is_file() else ()


def large_rows(
    folder: str | os.PathLike[str] | None = None, *, stored: Sequence[StoredGrade] | None = None
) -> tuple[list[ValidationRow], list[LeftOut]]:
    """Graded cases of large models, and those that cannot be expressed.

    Gains of features, whose relative errors say nothing, are left to `simperf.accuracy.large_goals`.

    Parameters
    ----------
    folder : path, optional
        Of files of cases; without it every stored row is reported. A case of the folder that the table has is not
        simulated again; others are.
    stored : sequence of StoredGrade, optional
        In place of the table of the package.

    Raises
    ------
    InputError
        A file is no table of cases.
    """
    known = [one for one in (stored_grades() if stored is None else stored) if one.quantity != GAIN]
    if folder is None:
        return [_of_stored(one) for one in known], []
    cases, left = read_large_cases(folder)
    by_case: dict[tuple[str, str, str], list[StoredGrade]] = {}
    for row in known:
        by_case.setdefault((row.family, row.case, row.digest), []).append(row)
    found: dict[int, list[ValidationRow]] = {}
    new = []
    for index, one in enumerate(cases):
        there = by_case.get((one.family, one.name, one.digest))
        if there is None:
            new.append(one)
        else:
            found[index] = [_of_stored(row, one) for row in there]
    rows = [row for index in sorted(found) for row in found[index]]
    return rows + _played(new, cases, left), left


def _played(new: Sequence[LargeCase], cases: Sequence[LargeCase], left: list[LeftOut]) -> list[ValidationRow]:
    """Rows of cases that the table does not have."""
    by_name: Mapping[tuple[str, str], LargeCase] = {(one.family, one.name): one for one in new}
    rows, grades = [], []
    for one in grade(new, case_time, counted_memory, among=cases):
        if isinstance(one, LeftOut):
            case = by_name[one.family, one.name]
            rows.append(_of_stored(stored_row(one, case, ""), case))
            left.append(one)
        else:
            grades.append(one)
    return rows + [_of_stored(stored_row(one, one.case, ""), one.case) for one in (*grades, *schedule_ratios(grades))]


def _of_stored(one: StoredGrade, case: LargeCase | None = None) -> ValidationRow:
    """The row of the validation table; verdicts on what fits are 1 if they are right.

    Beside memory stands the usual formula, where the case is known.
    """
    measured, predicted, quantity = one.predicted / (1.0 + one.error), one.predicted, one.quantity
    if one.quantity == "fits":
        quantity, measured, predicted = "right verdict on what fits", 1.0, 1.0 - one.error
    fitted = constants_behind(one.case, quantity=one.quantity)
    simple = measured * (1.0 + one.simple)
    if one.quantity == "memory" and case is not None:
        simple = formula_memory(case, max(0, one.stage))
    return ValidationRow(
        f"Large models: {one.family}",
        one.case + (f", stage {one.stage}" if one.stage >= 0 else ""),
        quantity,
        _UNITS.get(one.quantity, "1"),
        measured,
        measured,
        predicted,
        case=one.case,
        source=f"llm/{one.family}.json of the folder of measured data",
        fitted=", ".join(fitted) or "nothing",
        failure=one.failure,
        kind="fitted" if fitted else "predicted",
        simple=simple,
        rests_on=", ".join(constants_behind(one.case, quantity=one.quantity, choice=True)),
        question=_QUESTIONS.get(one.quantity, ""),
    )
