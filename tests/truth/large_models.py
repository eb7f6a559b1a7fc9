"""Large models beside published cases: ``python -m tests.truth.large_models [FAMILY...] [OPTION...]``.

Every case of the folder ``llm`` of measured data is read (data: SIMPERF_TRUTH); what can be expressed is predicted by
what `simperf.run` plays, and stands beside the simple model of one rate and the peer's figure. Nothing is fitted to any
of them. With ``--cases FOLDER`` another folder of such files is read. What is left out is counted by reason at the end.
"""

import argparse
import math
import sys
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from simperf.accuracy.large_cases import LeftOut, read_large_cases
from simperf.accuracy.large_grades import grade, reasons_counted
from simperf.accuracy.large_jobs import case_time, counted_memory
from simperf.accuracy.large_ratios import schedule_ratios
from tests.truth.collectives import truth_folder
from tests.truth.family_summaries import family_summaries
from tests.truth.step_percentiles import percentile_lines

#: unit of a quantity in tables
UNITS = {
    "time": ("s", 1.0),
    "memory": ("GiB", 2.0**-30),
    "fits": ("", 1.0),
    "throughput ratio": ("", 1.0),
    "memory ratio": ("", 1.0),
}


def percent(error):
    """An error in per cent, or nothing."""
    return "" if math.isnan(error) else f"{100 * error:+.2f} %"


def row_of(one):
    """A line of the table."""
    unit, scale = UNITS[one.quantity]
    simple, peer = percent(one.error("simple")), percent(one.error("peer"))
    numbers = f"{scale * one.measured:.4g} | {scale * one.predicted:.4g} {unit} | {percent(one.error())}"
    return f"| {one.case.family} | {one.row} | {one.quantity} | {numbers} | {simple} | {peer} |"


def lines(folder, families=(), *, time=True, memory=True, only="*", profiled=True, force=False):
    """Lines of the table, one after the other, then medians by family and what is left out."""
    cases, left = read_large_cases(folder, tuple(families))
    chosen = [one for one in cases if fnmatch(one.name, only)]
    found = []
    yield "| family | case | quantity | measured | predicted | error | one rate | peer |"
    yield "|---|---|---|--:|--:|--:|--:|--:|"
    played = partial(case_time, profiled=profiled, force=force)
    for one in grade(chosen, played if time else None, counted_memory if memory else None, among=cases):
        if isinstance(one, LeftOut):
            left.append(one)
        else:
            found.append(one)
            yield row_of(one)
    ratios = list(schedule_ratios(found))
    yield from map(row_of, ratios)
    found += ratios
    yield ""
    yield "| family | quantity | rows | median | 90th percentile | worst | signed | one rate | peer | on its rows |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for one in family_summaries(found):
        errors = (one.median, one.p90, one.worst, one.bias, one.simple, one.peer, one.beside_peer)
        yield f"| {one.family} | {one.quantity} | {one.count} | {' | '.join(percent(error) for error in errors)} |"
    yield ""
    assumed = {}
    for one in {id(row.case): row.case for row in found}.values():
        for text in one.assumed:
            assumed[one.family, text] = assumed.get((one.family, text), 0) + 1
    for (family, text), count in assumed.items():
        yield f"assumed: {family}: {text} ({count} cases)"
    for (family, reason), count in reasons_counted(left).items():
        yield f"left out: {family}: {reason} ({count} cases)"


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.large_models", description=__doc__)
    parser.add_argument("families", nargs="*", help="names of files without .json; all by default")
    parser.add_argument("--cases", type=Path, help="another folder of such files")
    parser.add_argument("--memory", action="store_true", help="memory alone")
    parser.add_argument("--time", action="store_true", help="times alone")
    parser.add_argument("--percentiles", action="store_true", help="percentiles of steps with noise, and nothing else")
    parser.add_argument("--draws", type=int, default=0, help="steps that are drawn for percentiles; 64 by default")
    parser.add_argument("--only", default="*", help="cases, as a shell pattern")
    parser.add_argument("--catalogue", action="store_true", help="without kernels measured on a case's own machine")
    parser.add_argument("--force", action="store_true", help="simulate cases of more events than a run may, too")
    given = parser.parse_args(arguments)
    folder = given.cases or truth_folder() / "llm"
    if given.percentiles:
        for text in percentile_lines(folder, given.families, only=given.only, draws=given.draws):
            print(text, flush=True)
        return 0
    asked = {"time": not given.memory, "memory": not given.time, "only": given.only}
    for text in lines(folder, given.families, **asked, profiled=not given.catalogue, force=given.force):
        print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
