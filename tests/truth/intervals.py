"""Intervals of predictions beside published figures: ``python -m tests.truth.intervals [--truth FOLDER] [--write]``.

Each figure's interval is made of the errors of figures that do not share its family, then of those that do not share
its source, then its GPU. The errors are those of the package (`simperf/analysis/data`); ``--write`` makes them anew
from a folder of measured data, first; iterations of large models are those of the stored table. ``--only`` takes
questions that begin so; ``--page`` puts the tables of all into docs/explanation/uncertainty.md.
"""

import argparse
import math
import sys
from pathlib import Path

from simperf.accuracy.coverage import grade_intervals, pooled
from simperf.analysis.left_out import error_file, read_errors, spread
from simperf.files import write_bytes
from tests.truth.collectives import truth_folder
from tests.truth.error_rows import ERRORS, errors_text

QUESTIONS = tuple(ERRORS)
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "uncertainty.md"
LABELS = ("family", "source", "gpu")


def grades(by="family", questions=QUESTIONS):
    """Grades of the questions that have errors."""
    return [grade_intervals(one, read_errors(one), by=by) for one in questions if read_errors(one)]


def lines(questions=QUESTIONS):
    """Lines of the tables, one for what each time is left out."""
    for by in LABELS:
        found = grades(by, questions)
        yield f"| {by} left out | figures | held | drawn again | p | upper/lower | score | one width | none |"
        yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
        for one in [*found, pooled(found)]:
            low, high = one.share_range
            held = f"{100 * one.share:.1f} % | {100 * low:.0f} to {100 * high:.0f} % | {one.chance:.2f}"
            numbers = f"{held} | {one.width:.2f} | {one.score:.3f}"
            yield f"| {one.question} | {one.points} | {numbers} | {one.constant:.3f} | {one.without or ''} |"
        yield ""


def write(folder, questions):
    """Make the files of errors anew."""
    for one in questions:
        write_bytes(error_file(one), errors_text(ERRORS[one](folder)).encode())
        print(f"wrote {error_file(one).name}", file=sys.stderr, flush=True)
    read_errors.cache_clear()


def paged(text):
    """The page with the tables as they are now; the rest of it stays."""
    rows = text.splitlines()
    places = [index for index, row in enumerate(rows) if row.startswith("|")]
    now = "\n".join(lines()).strip().splitlines()
    return "\n".join([*rows[: places[0]], *now, *rows[places[-1] + 1 :]]) + "\n"


def moved(question, now):
    """How far the ends of a question's intervals would move by errors as they are now, over the intervals' width."""
    there, found = read_errors(question), 0.0
    for group in dict.fromkeys(one.group for one in (*there, *now)):
        old, new = (spread(question, [one for one in some if one.group == group]) for some in (there, now))
        if old is None or new is None:
            return math.inf
        found = max(found, *(abs(a - b) / (old.high - old.low) for a, b in ((old.low, new.low), (old.high, new.high))))
    return found


def main(arguments=None):
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.intervals", description=__doc__)
    parser.add_argument("--truth", type=Path, help="the folder of measured data; SIMPERF_TRUTH by default")
    parser.add_argument("--write", action="store_true", help="make the files of errors again, first")
    parser.add_argument("--only", default="", help="questions that begin so")
    parser.add_argument("--page", action="store_true", help="put the tables into the page of the documentation")
    given = parser.parse_args(arguments)
    questions = [one for one in QUESTIONS if one.startswith(given.only)]
    if given.write:
        write(given.truth or truth_folder(), questions)
    if given.page:
        write_bytes(PAGE, paged(PAGE.read_text("utf-8")).encode())
        return 0
    for line in lines(questions):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
