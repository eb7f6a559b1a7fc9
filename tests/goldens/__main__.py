"""`python -m tests.goldens`: make, check, update and tabulate the fixtures of the shipped scenarios."""

import argparse
import sys

from tests.goldens.fixture import changed, differences, fixture_path, read_fixture, write_fixture
from tests.goldens.summary import scenarios, summarise_scenario
from tests.goldens.table import summary, table

#: differences of one scenario that are printed
PRINTED = 40


def main(arguments=None):
    """Run one command; the exit code is 1 if `check` finds a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.goldens",
        description="Fixtures of what every shipped scenario gives. Scenarios are named as in `simperf scenarios "
        "list`; shell patterns such as 'training/*' fit many; without a name all are meant. Where a merge conflicts in "
        "a fixture, take the version of the branch that you merge into and update again.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "make": "write fixtures of scenarios that have none",
        "check": "print every difference; exit code 1 if there is any",
        "update": "take what the scenarios give now, and note each difference with its reason",
        "table": "print all changes since the first fixtures as a markdown table",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("scenario", nargs="*")
        if name == "update":
            command.add_argument("--why", required=True, help="the reason, which the table of changes quotes")
        if name == "table":
            command.add_argument("--summary", action="store_true", help="a row for each reason and scenario")
        if name == "check":
            command.add_argument("--all", action="store_true", help=f"print more than {PRINTED} differences a scenario")
    given = parser.parse_args(arguments)
    names = scenarios(given.scenario)
    if given.command == "make":
        return _make(names)
    if given.command == "check":
        return _check(names, everything=given.all)
    if given.command == "update":
        return _update(names, given.why)
    fixtures = [(name, fixture) for name in names if (fixture := read_fixture(name))]
    print("\n".join((summary if given.summary else table)(fixtures)))
    return 0


def _make(names):
    for name in names:
        if fixture_path(name).exists():
            print(f"{name}: has a fixture; update it", file=sys.stderr)
            continue
        write_fixture(name, summarise_scenario(name), [])
        print(name)
    return 0


def _check(names, *, everything):
    wrong = 0
    for name in names:
        fixture = read_fixture(name)
        if fixture is None:
            print(f"{name}: no fixture; make one")
            wrong += 1
            continue
        rows = differences(fixture["variants"], summarise_scenario(name))
        wrong += bool(rows)
        for row in rows if everything else rows[:PRINTED]:
            print(told(name, row), flush=True)
        if len(rows) > PRINTED and not everything:
            print(f"{name}: {len(rows) - PRINTED} more differences; --all prints them")
    print(f"{len(names)} scenarios, {wrong} with differences", file=sys.stderr)
    return 1 if wrong else 0


def told(name, row):
    """One difference as a line."""
    variant, what, before, now = row
    share = ""
    numbers = [side[0] if isinstance(side, list) and side else side for side in (before, now)]
    if all(isinstance(side, int | float) and not isinstance(side, bool) for side in numbers) and numbers[0]:
        share = f" ({numbers[1] / numbers[0] - 1:+.3g} of it)"
    return f"{name} [{variant}] {what}: {before} -> {now}{share}"


def _update(names, why):
    for name in names:
        fixture = read_fixture(name)
        if fixture is None:
            print(f"{name}: no fixture; make one", file=sys.stderr)
            continue
        now = summarise_scenario(name)
        rows = differences(fixture["variants"], now)
        if rows:
            write_fixture(name, now, changed(fixture["changes"], rows, why))
            print(f"{name}: {len(rows)} changes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
