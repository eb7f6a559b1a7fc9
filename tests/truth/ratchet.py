"""A ratchet on the accuracy tables: a file of the present errors, which no row may exceed by more than a point.

Each section of the accuracy tables has a file below ``tests/truth/errors``: one line a row with its signed error in
per cent, which is made of predictions and errors alone. A row that worsens is allowed with a line that says why
(``python -m tests.truth.ratchet update --why "..."``), and keeps the error that it had before.
"""

import argparse
import csv
import io
import math
import sys
from collections import Counter
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

from simperf.files import write_bytes
from tests.truth.collectives import truth_folder

FOLDER = Path(__file__).parent / "errors"
#: percentage points of the absolute error that a row may worsen by
MARGIN = 1.0
COLUMNS = ("table", "row", "error", "before", "why")


class Entry(NamedTuple):
    """One line of a file: the error that holds [%], the one before it was allowed to worsen, and why it was."""

    error: str
    before: str = ""
    why: str = ""


def scenario_errors(truth):
    """Figures that the shipped scenarios quote."""
    from simperf.accuracy.validation import validation_rows
    from simperf.scenario import load_scenario, shipped_scenarios
    from tests.truth.runs import attempts

    for name in shipped_scenarios():
        if name.startswith("measured/"):
            for row in validation_rows(load_scenario(name), attempts(name)):
                yield name, ", ".join(part for part in (row.variant, row.quantity) if part), row.error


def kernel_errors(truth):
    """Kernels from the catalogue's peaks."""
    from simperf.accuracy.cases import read_cases
    from simperf.accuracy.kernels import kernel_table

    for row in kernel_table(read_cases(truth)):
        yield row.title, row.variant, row.error


def collective_errors(truth):
    """Collectives from the catalogue."""
    from simperf.accuracy.cases import read_cases
    from simperf.accuracy.collectives import collective_table

    for row in collective_table(read_cases(truth)):
        yield row.title, row.variant, row.error


def fit_errors(truth):
    """Mean errors of the fits to published tables, on points that were fitted and on points that were not."""
    for row in fits(str(truth)):
        for what, error in (("fitted", row.inside), ("not fitted", row.outside)):
            if math.isfinite(error):
                yield row.section, f"{row.name}: {row.what}, {what}", error


def large_errors(truth):
    """Memory of published cases of large models, and its ratios between schedules."""
    from simperf.accuracy.large_cases import LeftOut, read_large_cases
    from simperf.accuracy.large_grades import grade
    from simperf.accuracy.large_jobs import counted_memory
    from simperf.accuracy.large_ratios import schedule_ratios

    cases, _ = read_large_cases(truth / "llm")
    found = [one for one in grade(cases, None, counted_memory) if not isinstance(one, LeftOut)]
    for one in [*found, *schedule_ratios(found)]:
        yield f"{one.case.family}: {one.quantity}", one.row, one.error()


@cache
def fits(truth):
    """All fits to a folder of measured data; they take a minute."""
    from simperf.accuracy.cases import read_cases
    from simperf.accuracy.tables import fit_tables

    return fit_tables(Path(truth), read_cases(truth))


#: by name: rows (table, row, signed relative error) of a section; NaN where nothing could be predicted
SECTIONS = {
    "scenarios": scenario_errors,
    "kernels": kernel_errors,
    "collectives": collective_errors,
    "fits": fit_errors,
    "large": large_errors,
}


def present(section, truth):
    """The present errors of a section [%], by table and row; rows of one name are numbered."""
    found, seen = {}, Counter()
    for table, row, error in SECTIONS[section](truth):
        seen[table, row] += 1
        count = seen[table, row]
        found[table, row if count == 1 else f"{row} ({count})"] = "none" if math.isnan(error) else f"{100 * error:.2f}"
    return found


def read_errors(section):
    """The entries of a section's file; none if there is no file."""
    path = FOLDER / f"{section}.csv"
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (line["table"], line["row"]): Entry(*(line[key] for key in COLUMNS[2:])) for line in csv.DictReader(file)
        }


def write_errors(section, entries):
    """Write a section's file, in the order of the tables."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((*key, *entry) for key, entry in entries.items())
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_bytes(FOLDER / f"{section}.csv", text.getvalue().encode())


def size(error):
    """Absolute error in points; a row without a prediction is worse than any other, and one that is gone too."""
    return math.inf if error in ("none", "gone") else abs(float(error))


def worsened(entries, now):
    """Rows that are more than a point worse than the file says: (table, row) to (error in the file, error now).

    A row that is no longer there counts as worse; a row that the file does not have does not.
    """
    found = {}
    for key, entry in entries.items():
        error = now.get(key, "gone")
        if size(error) > size(entry.error) + MARGIN:
            found[key] = entry.error, error
    return found


def updated(entries, now, why):
    """The entries after an update: improved rows are tightened, new ones added, worse ones allowed with a reason."""
    worse = worsened(entries, now)
    found = {}
    for key, error in now.items():
        entry = entries.get(key)
        if entry is None:
            found[key] = Entry(error)
        elif key in worse:
            found[key] = allowed(entry, error, why)
        elif size(error) < size(entry.error):
            back = not entry.before or size(error) <= size(entry.before)
            found[key] = Entry(error) if back else entry._replace(error=error)
        else:
            found[key] = entry
    for key, entry in entries.items():
        if key not in now:
            found[key] = allowed(entry, "gone", why) if key in worse else entry
    return found


def allowed(entry, error, why):
    """An entry that may be worse; what it was first, and all reasons, stay."""
    reasons = [entry.why] if entry.why and why not in entry.why else []
    return Entry(error, entry.before or entry.error, "; then ".join([*reasons, why]))


def told(section, worse):
    """Worse rows as lines."""
    return [f"{section}: {' | '.join(key)}: {before} % -> {now} %" for key, (before, now) in worse.items()]


def main(arguments=None):
    """Check or update the files, or print the rows that were allowed to worsen."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.ratchet", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "check": "print every row that is more than a point worse than its file says; exit code 1 if there is any",
        "update": "tighten what has improved, add new rows; rows that are worse need --why",
        "table": "print the rows that were allowed to worsen, as a markdown table",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("section", nargs="*", choices=[*SECTIONS, []], default=[], metavar="SECTION")
        if name == "update":
            command.add_argument("--why", default="", help="the reason why rows are worse")
            command.add_argument("--only", default="*", help="tables to update, as a shell pattern")
    given = parser.parse_args(arguments)
    sections = given.section or list(SECTIONS)
    if given.command == "table":
        print("\n".join(table(sections)))
        return 0
    folder, failed = truth_folder(), False
    for section in sections:
        entries, now = read_errors(section), present(section, folder)
        only = getattr(given, "only", "*")
        now = {key: error for key, error in now.items() if fnmatch(key[0], only)}
        asked = {key: entry for key, entry in entries.items() if fnmatch(key[0], only)}
        worse = worsened(asked, now)
        if given.command == "check" or (worse and not given.why):
            print("\n".join(told(section, worse)))
            failed |= bool(worse)
            new = sum(key not in entries for key in now)
            print(f"{section}: {len(now)} rows, {len(worse)} worse, {new} new", file=sys.stderr)
        else:
            write_errors(section, {**entries, **updated(asked, now, given.why)})
            print(f"{section}: {len(now)} rows, {len(worse)} allowed to be worse", file=sys.stderr)
    if failed and given.command == "update":
        print('these need --why "..."', file=sys.stderr)
    return 1 if failed else 0


def table(sections):
    """Lines of a markdown table of the rows that were allowed to worsen."""
    yield "| section | table | row | error before | error now | why |"
    yield "| --- | --- | --- | --: | --: | --- |"
    for section in sections:
        for (name, row), entry in read_errors(section).items():
            if entry.why:
                yield f"| {section} | {name} | {row} | {entry.before} % | {entry.error} % | {entry.why} |"


if __name__ == "__main__":
    sys.exit(main())
