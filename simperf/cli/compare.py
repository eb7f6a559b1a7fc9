"""`simperf compare`: several scenarios, or the variants of one, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simperf.cli.options import Format, Plot, Seed, Set

if TYPE_CHECKING:
    from simperf.analysis.check import Check
    from simperf.results import Result
    from simperf.scenario import Scenario

__all__ = ["compare"]


def compare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Scenarios (files or shipped names) or results of `run --save`; a file's variants are run.",
        ),
    ],
    changes: Set = None,
    output: Format = "table",
    plot: Plot = None,
    seed: Seed = None,
) -> int:
    """Compare several scenarios, or the [[compare]] variants of one: which is faster, and why."""
    from simperf.cli.work import note, verify_outputs
    from simperf.report.tables import format_comparison

    verify_outputs(plot=plot)
    found = _Comparison(output)
    loaded = _load(files, changes or [], seed)
    for item in loaded:
        found.add(item, several=len(loaded) > 1)
    if found.results:
        typer.echo(format_comparison(found.results, output, checks=found.checks))
    for line in found.said:
        typer.echo(line, err=output != "table")
    if plot is not None and found.results:
        from simperf.report.plots import plot_comparison

        plot_comparison(found.results, plot)
        note(f"wrote {plot}")
    if found.overridden:
        note("the files' [expect] are not checked, as the command line changes what is run")
    return found.code


def _load(files: list[str], changes: list[str], seed: int | None) -> list[Scenario | Result]:
    """Read all files before any of them is run, so that all that is wrong is said at once."""
    from simperf.errors import InputError, Problem
    from simperf.results import Result
    from simperf.scenario import load_scenario

    loaded: list[Scenario | Result] = []
    problems: list[Problem] = []
    for file in files:
        try:
            saved = file.endswith((".json", ".json.gz"))
            loaded.append(Result.load(file) if saved else load_scenario(file, changes, seed=seed))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return loaded


class _Comparison:
    """Collects results, checks by position, and what is to be said beside the table."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.results: list[Result] = []
        self.checks: dict[int, list[Check]] = {}
        self.said: list[str] = []
        self.overridden = False
        self.code = 0

    def add(self, item: Scenario | Result, *, several: bool) -> None:
        """Run a scenario's variants, or take a saved result."""
        from simperf.cli.work import progress
        from simperf.results import Result
        from simperf.scenario import check_comparison

        if isinstance(item, Result):
            self.results.append(item)
            return
        self.overridden |= item.overridden
        variants = {variant.name: variant for variant in item.variants or (item,)}
        first, mine = len(self.results), {}
        for name in progress(variants):
            result = self._run(variants[name], prefix=f"{item.title}: " if several and item.variants else "")
            if result is not None:
                mine[name] = result
        ratios = check_comparison(item, mine)
        if ratios:
            self.checks.setdefault(first, []).extend(ratios)
            self._judge(ratios)

    def _run(self, variant: Scenario, *, prefix: str) -> Result | None:
        from dataclasses import replace

        from simperf.cli.work import play
        from simperf.errors import SimperfError
        from simperf.scenario import check_error, check_expectations

        try:
            result = play(variant)
        except SimperfError as error:
            checks = check_error(variant, error)
            if checks and all(check.ok for check in checks):
                self.said.append(f"{prefix}{variant.name}: as expected, {error}")
            else:
                self.said.append(f"{prefix}{variant.name}: error: {error}")
                self.code = max(self.code, error.exit_code)
            return None
        checks = check_expectations(variant, result)
        if checks:
            self.checks[len(self.results)] = checks
            self._judge(checks)
        self.results.append(replace(result, name=prefix + result.name))
        return result

    def _judge(self, checks: list[Check]) -> None:
        if not all(check.ok for check in checks):
            self.code = max(self.code, 1)
