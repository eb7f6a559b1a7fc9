"""`simperf compare`: several scenarios, or the variants of one, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simperf.cli.completion import scenario_names
from simperf.cli.options import (
    Engine,
    Force,
    Format,
    Language,
    Plot,
    Report,
    Samples,
    Seed,
    Set,
    Vary,
    forced,
    refuse_alone,
)

if TYPE_CHECKING:
    from simperf.analysis.check import Check
    from simperf.hardware import Machine
    from simperf.report.data import FailedRun
    from simperf.results import Result
    from simperf.run import Attempt
    from simperf.scenario import Scenario

__all__ = ["compare"]


def compare(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Scenarios (files or shipped names) or results of `run --save`; a file's variants are run.",
            autocompletion=scenario_names,
        ),
    ],
    changes: Set = None,
    force: Force = False,
    vary: Vary = None,
    samples: Samples = 0,
    engine: Engine = "serial",
    output: Format = "table",
    plot: Plot = None,
    report: Report = None,
    language: Language = "en",
    seed: Seed = None,
) -> int:
    """Compare several scenarios, or the [[compare]] variants of one: which is faster, and why."""
    from simperf.cli.outputs import verify_outputs, write_report
    from simperf.cli.terminal import note, typed
    from simperf.report.comparisons import format_comparison

    refuse_alone(context, {"engine": "samples", "language": "report"})
    verify_outputs(plot=plot, report=report)
    found = _Comparison(samples, engine)
    loaded = _load(files, forced(changes, force), seed)
    if vary:
        loaded = [_varied(loaded, vary, samples)]
    found.add(loaded)
    typer.echo(format_comparison(found.rows, output, checks=found.checks, differences=found.differences()))
    if plot is not None:
        from simperf.report.plots import plot_comparison

        plot_comparison(found.rows, plot)
        note(f"wrote {plot}")
    if report is not None:
        shown = {"title": " and ".join(files), "command": typed(), "machines": found.machines}
        write_report(report, lambda pages: pages.comparison_report(found.rows, **shown), language)
    if found.overridden:
        note("the files' [expect] are not checked, as the command line changes what is run")
    return found.code


def _varied(loaded: list[Scenario | Result], vary: list[str], samples: int) -> Scenario:
    """The one scenario with the values of `vary` as its variants."""
    from dataclasses import replace

    from simperf.errors import InputError, Problem
    from simperf.results import Result
    from simperf.study.compare import variants_of

    (first, *others) = loaded
    if others or isinstance(first, Result):
        raise InputError(Problem("one scenario is varied at a time", file="--vary", expected="one FILE"))
    variants = variants_of(first, vary, samples=samples)
    quiet = replace(first, expectations=(), measurements=())
    return replace(quiet, variants=tuple(replace(one, expectations=(), measurements=()) for one in variants))


def _load(files: list[str], changes: list[str], seed: int | None) -> list[Scenario | Result]:
    """Read all files before any of them is run, so that all that is wrong is said at once."""
    from simperf.cli.terminal import note_code
    from simperf.errors import InputError, Problem
    from simperf.results import Result
    from simperf.scenario import load_scenario

    loaded: list[Scenario | Result] = []
    problems: list[Problem] = []
    for file in files:
        try:
            if not file.endswith((".json", ".json.gz")):
                note_code(file, changes)
            saved = file.endswith((".json", ".json.gz"))
            loaded.append(Result.load(file) if saved else load_scenario(file, changes, seed=seed))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return loaded


def _shown(scenarios: Sequence[Scenario]) -> Iterator[Scenario]:
    """Pass scenarios on; on a terminal say which one is being run."""
    from simperf.cli.terminal import progress

    for _, one in zip(progress([one.name for one in scenarios]), scenarios, strict=True):
        yield one


class _Comparison:
    """Collects rows and the checks of each by position, and what the exit code will be."""

    def __init__(self, samples: int = 0, engine: str = "serial") -> None:
        self.samples, self.engine = samples, engine
        self.datas: list[Mapping[str, Any]] = []
        self.machines: list[Machine | None] = []
        self.rows: list[Result | FailedRun] = []
        self.checks: dict[int, list[Check]] = {}
        self.overridden = False
        self.code = 0

    def add(self, items: Sequence[Scenario | Result]) -> None:
        """Run the variants of scenarios, and take saved results."""
        from simperf.cli.terminal import play
        from simperf.results import Result
        from simperf.scenario import check_comparison
        from simperf.scenario.profile_use import refuse_unused
        from simperf.study.compare import run_variants

        chosen = [one for each in items if not isinstance(each, Result) for one in each.variants or (each,)]
        attempts = run_variants(chosen, samples=self.samples, engine=self.engine, play=play, progress=_shown)
        settled = iter(attempts)
        for item in items:
            first = len(self.rows)
            if isinstance(item, Result):
                self.rows.append(item)
                self.datas.append(item.scenario)
                self.machines.append(None)
                continue
            self.overridden |= item.overridden
            prefix = f"{item.title}: " if len(items) > 1 and item.variants else ""
            mine = {}
            for attempt in islice(settled, len(item.variants) or 1):
                self._keep(attempt, prefix=prefix)
                if attempt.result is not None:
                    mine[attempt.name] = attempt.result
            refuse_unused(result.unused for result in mine.values())
            self._judge(first, check_comparison(item, mine))

    def _keep(self, attempt: Attempt, *, prefix: str) -> None:
        """A row, and what is expected of it."""
        from dataclasses import replace

        from simperf.cli.terminal import note
        from simperf.report.data import FailedRun
        from simperf.scenario import check_error, check_expectations

        place, variant, error = len(self.rows), attempt.scenario, attempt.error
        self.datas.append(variant.data)
        self.machines.append(variant.machine)
        if error is not None:
            self.rows.append(FailedRun(prefix + variant.name, str(error)))
            checks = check_error(variant, error)
            self._judge(place, checks)
            if not checks:
                note(f"error: {prefix}{variant.name}: {error}")
                self.code = max(self.code, error.exit_code)
        elif attempt.result is not None:
            self.rows.append(replace(attempt.result, name=prefix + attempt.result.name))
            self._judge(place, check_expectations(variant, attempt.result))

    def differences(self) -> dict[str, tuple[str, ...]]:
        """Differences between the rows."""
        from simperf.study.compare import differences

        return differences(self.datas) if len(self.rows) > 1 else {}

    def _judge(self, place: int, checks: list[Check]) -> None:
        if checks:
            self.checks.setdefault(place, []).extend(checks)
        if not all(check.ok for check in checks):
            self.code = max(self.code, 1)
