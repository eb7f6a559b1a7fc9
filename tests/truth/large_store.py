"""The stored table of large models: ``python -m tests.truth.large_store [FAMILY...] [--limit SECONDS] [--missing]``.

Plays every published case (data: SIMPERF_TRUTH), or those of some families, and puts their rows into
simperf/accuracy/data/large_rows.csv in place of what it had of them. All families take hours; with ``--missing`` only
cases that the table does not have are played. A case that takes longer than the limit is a row that says so.
"""

import argparse
import csv
import io
import signal
import sys
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import date
from functools import partial
from pathlib import Path

import simperf
from simperf.accuracy.large_cases import LeftOut, read_large_cases
from simperf.accuracy.large_grades import grade
from simperf.accuracy.large_jobs import case_time, counted_memory
from simperf.accuracy.large_ratios import schedule_ratios
from simperf.accuracy.large_table import StoredGrade, read_stored, stored_row
from simperf.errors import SimperfError
from simperf.files import write_bytes
from tests.truth.collectives import truth_folder
from tests.truth.feature_gains import feature_gains

PATH = Path(simperf.__file__).parent / "accuracy" / "data" / "large_rows.csv"


class TookTooLongError(SimperfError):
    """A case was stopped."""


def stored_text(rows):
    """The table as CSV."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [field.name for field in fields(StoredGrade)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(one) for one in rows)
    return stream.getvalue()


@contextmanager
def limited(seconds):
    """Stop what runs inside after so many seconds of the processor; 0 for never."""

    def stop(*_):
        raise TookTooLongError(f"it took longer than {seconds} s of a processor, and was stopped")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limited_time(case, *, limit):
    """Time of a case, of any number of events, unless that takes too long."""
    with limited(limit):
        return case_time(case, force=True)


def played_rows(folder, families, *, time, memory=counted_memory, played, stored=()):
    """Rows of all cases of some families that are not among the stored ones, family by family."""
    there = {(row.family, row.case, row.digest) for row in stored}
    cases = [one for one in read_large_cases(folder, families)[0] if (one.family, one.name, one.digest) not in there]
    for family in dict.fromkeys(one.family for one in cases):
        own = [one for one in cases if one.family == family]
        by_name, grades = {one.name: one for one in own}, []
        for one in grade(own, time, memory):
            case = by_name[one.name] if isinstance(one, LeftOut) else one.case
            yield stored_row(one, case, played)
            grades += [] if isinstance(one, LeftOut) else [one]
        yield from (stored_row(one, one.case, played) for one in (*schedule_ratios(grades), *feature_gains(grades)))


def _family(row):
    return row.family


def main(arguments=None):
    """Play, and write after each family."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.large_store", description=__doc__)
    parser.add_argument("families", nargs="*", help="names of files without .json; all by default")
    parser.add_argument("--limit", type=int, default=60, help="seconds of the processor for a case [%(default)s]")
    parser.add_argument("--missing", action="store_true", help="simulate cases that the table does not have")
    given = parser.parse_args(arguments)
    folder, played = truth_folder() / "llm", f"{simperf.__version__} {date.today()}"
    for family in given.families or sorted(path.stem for path in folder.glob("*.json")):
        stored = read_stored(PATH) if PATH.is_file() else ()
        kept = stored if given.missing else [one for one in stored if one.family != family]
        limit = partial(limited_time, limit=given.limit)
        new = list(played_rows(folder, (family,), time=limit, played=played, stored=kept))
        there = {one.case for one in new}
        rows = sorted([*(one for one in kept if one.family != family or one.case not in there), *new], key=_family)
        write_bytes(PATH, stored_text(rows).encode())
        print(f"{family}: {len(new)} rows", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
