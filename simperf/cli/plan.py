"""`simperf plan`: which machines train a model in time and within a budget, and which layout trains it fastest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simperf.cli.options import Force, Format, Language, Report, Samples, refuse_alone, typed_options

if TYPE_CHECKING:
    from simperf.study.layouts import LayoutRequest

__all__ = ["plan"]

#: options of a search of layouts that are keys of a file's tables
_OF_LAYOUTS = ("on", "gpus", "batch", "sequence", "precision", "top", "within", "time")
_OF_PLAN = ("tokens", "deadline", "budget")
#: options that have an effect only where layouts are asked for on the command line
_WITH_LAYOUTS = (*_OF_LAYOUTS, *_OF_PLAN, "price", "vary", "stack")
_PRICE = '--price "80 USD/h", of a server'
#: options of plans of machines alone
_OF_MACHINES = ("samples", "plot")


def plan(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="PLAN", help="A plan's file (TOML).")] = None,
    layouts: Annotated[
        str, typer.Option("--layouts", metavar="MODEL", help="Search layouts of a model, without a file.")
    ] = "",
    on: Annotated[
        list[str] | None, typer.Option("--on", metavar="MACHINE", help="A server or cluster; may be repeated.")
    ] = None,
    gpus: Annotated[str, typer.Option("--gpus", metavar="N,...", help="GPUs that train, such as 512,1024.")] = "",
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="Samples of a step on all GPUs.")] = 0,
    sequence: Annotated[int, typer.Option("--sequence", metavar="N", help="Tokens of a sample.")] = 0,
    precision: Annotated[str, typer.Option("--precision", metavar="NAME,...", help="Precisions that are tried.")] = "",
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="KEY=VALUES", help='Values of an axis, as in "tp=4,8"; may be repeated.'),
    ] = None,
    stack: Annotated[str, typer.Option("--stack", metavar="NAME", help="Software stack of the layouts.")] = "",
    tokens: Annotated[float, typer.Option("--tokens", metavar="N", help="Tokens that are trained.")] = 0.0,
    deadline: Annotated[str, typer.Option("--deadline", metavar="TIME", help='Such as "60 days".')] = "",
    budget: Annotated[str, typer.Option("--budget", metavar="USD", help='Such as "1e6 USD".')] = "",
    price: Annotated[str, typer.Option("--price", metavar="USD", help='Of a server, such as "80 USD/h".')] = "",
    top: Annotated[int, typer.Option("--top", metavar="N", help="Find so many of the fastest layouts.")] = 1,
    within: Annotated[
        str, typer.Option("--within", metavar="SHARE", help='How much faster a layout not found may be, as in "2 %".')
    ] = "",
    time: Annotated[str, typer.Option("--time", metavar="TIME", help="Begin no simulation after it.")] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write layouts as JSON; an interrupted search continues."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away what an interrupted search left.")] = False,
    explain: Annotated[
        int, typer.Option("--explain", metavar="N", min=0, help="Show candidate N in detail, and what limits it.")
    ] = 0,
    engine: Annotated[
        str,
        typer.Option("--engine", metavar="ENGINE", help="Where runs are made: auto, serial, local[:N] or dask[:ADDR]."),
    ] = "auto",
    samples: Samples = 0,
    force: Force = False,
    everything: Annotated[bool, typer.Option("--all", help="List every candidate.")] = False,
    form: Format = "table",
    plot: Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw time and cost.")] = None,
    report: Report = None,
    language: Language = "en",
    cache: Annotated[bool, typer.Option("--cache/--no-cache", help="Reuse cached results.")] = True,
) -> int:
    """Rank the machines that train a model by a deadline and within a budget, or its layouts, and why others lose."""
    from simperf.cli.outputs import verify_outputs, write_report

    if (layouts or file is None) or _asks_for_layouts(file):
        given = {name: context.params[name] for name in typed_options(context)}
        refuse_alone(context, {"language": "report"})
        verify_outputs(output=output, report=report, reads=[file] if file is not None else [])
        request = _layouts(context, file, layouts, given, force=force)
        return _search(request, given, explain=explain, engine=engine, everything=everything, form=form, cache=cache)
    refuse_alone(
        context,
        {**dict.fromkeys(_WITH_LAYOUTS, "layouts"), "output": "layouts", "fresh": "layouts", "language": "report"},
    )
    from simperf.cli.terminal import StudyProgress, note, play, typed
    from simperf.report.limits import format_limits
    from simperf.report.plans import format_candidate, plan_output, plot_plan
    from simperf.study.limits import limits
    from simperf.study.planning import load_request
    from simperf.study.planning import plan as make_plan

    verify_outputs(plot=plot, report=report)
    shown = StudyProgress()
    try:
        found = make_plan(load_request(file, force=force), engine=engine, samples=samples, cache=cache, progress=shown)
    finally:
        shown.end()
    if explain:
        scenario = found.scenario(explain)
        typer.echo(
            format_candidate(
                found,
                explain,
                format_limits(limits(scenario, engine=_of_limits(engine), play=play)),
            )
        )
    else:
        typer.echo(plan_output(found, form, all_rows=everything))
    if plot is not None:
        plot_plan(found, plot)
        note(f"wrote {plot}")
    if report is not None:
        first = found.scenario(1)
        winner = {"command": typed(), "winner": play(first), "machine": first.machine}
        write_report(report, lambda pages: pages.plan_report(found, **winner), language)
    return 0


def _asks_for_layouts(file: Path) -> bool:
    """Whether a plan's file has a table of layouts."""
    from simperf.files import read_toml

    return "layouts" in read_toml(file).data


def _layouts(
    context: typer.Context, file: Path | None, model: str, given: dict[str, Any], *, force: bool
) -> LayoutRequest:
    """The search that a file or the options ask for."""
    from dataclasses import replace

    from simperf.errors import InputError, Problem
    from simperf.study.layouts import load_layouts, make_layouts

    if file is None and not model:
        raise typer.BadParameter("name a plan's file, or a model with --layouts")
    odd = [key for key in _OF_MACHINES if key in given]
    odd += [key for key in _WITH_LAYOUTS if key in given] if file is not None else []
    flags = {one.name: max(one.opts, key=len) for one in context.command.params}
    problems = [
        Problem("has no effect on this search of layouts", file=flags[key], expected=_instead(key)) for key in odd
    ]
    if file is not None and model:
        problems.append(
            Problem("a file says which model it is", file="--layouts", value=model, expected="one of the two")
        )
    if problems:
        raise InputError(problems)
    if file is not None:
        found = load_layouts(file)
        return replace(found, force=True) if force else found
    table: dict[str, Any] = {"model": model}
    table |= {key: given[key] for key in _OF_LAYOUTS if key in given}
    for key in ("gpus", "precision"):
        table |= {key: _values(table[key])} if key in table else {}
    varied: dict[str, list[Any]] = {}
    for text in given.get("vary") or ():
        key, _, values = text.partition("=")
        varied.setdefault(key.strip(), []).extend(_values(values))
    table |= varied
    data: dict[str, Any] = {"layouts": table, "plan": {key: given[key] for key in _OF_PLAN if key in given}}
    data["plan"] |= {"force": True} if force else {}
    if given.get("price"):
        data["prices"] = {"own": dict.fromkeys(_servers_of(given["on"] or ()), given["price"])}
    data |= {"program": {"stack": given["stack"]}} if given.get("stack") else {}
    try:
        return make_layouts(data)
    except InputError as error:
        raise InputError([_of_option(one) for one in error.problems]) from None


def _servers_of(names: Sequence[str]) -> list[str]:
    """Servers that machines are made of; a name that the catalog does not have is refused elsewhere."""
    from contextlib import suppress

    from simperf.errors import UnknownNameError
    from simperf.hardware import Catalog

    catalog, found = Catalog.load(), list[str]()
    for name in names:
        with suppress(UnknownNameError):
            found.append(catalog.machine(name).servers[0].blueprint.name)
    return found


def _instead(key: str) -> str:
    """What is right where an option has no effect on a search of layouts."""
    if key in _OF_MACHINES:
        return "none"
    tables = {**dict.fromkeys(_OF_PLAN, f"[plan] {key}"), "price": "[prices] own", "stack": "[program] stack"}
    return f"in the file, {tables.get(key, '[layouts]' if key == 'vary' else f'[layouts] {key}')}"


def _of_option(problem: Any) -> Any:
    """A problem of a key, reported by the option that gave it."""
    from dataclasses import replace

    table, _, key = problem.key.partition(".")
    names = {"layouts": "--layouts", "layouts.model": "--layouts", "prices.own": "--price", "program.stack": "--stack"}
    named = "prices.own" if problem.key.startswith("prices.own.") else problem.key
    option = names.get(named, f"--{key}" if key in (*_OF_LAYOUTS, *_OF_PLAN) else "--vary")
    if problem.file or table not in ("layouts", "plan", "prices", "program"):
        return problem
    expected = _PRICE if option == "--price" else problem.expected.replace("tokens = ", "--tokens ")
    return replace(problem, file=option, line=0, key="" if option != "--vary" else key, expected=expected)


def _values(text: str) -> list[Any]:
    """Values behind commas; numbers where they are."""
    return [int(one) if one.strip().isdecimal() else one.strip() for one in str(text).split(",") if one.strip()]


def _of_limits(engine: str) -> str:
    """Engine of the runs that say what limits one candidate, which are few."""
    return "serial" if engine == "auto" else engine


def _search(
    request: LayoutRequest,
    given: dict[str, Any],
    *,
    explain: int,
    engine: str,
    everything: bool,
    form: Any,
    cache: bool,
) -> int:
    """Search, and show what was found."""
    from simperf.cli.outputs import write_report
    from simperf.cli.terminal import StudyProgress, note, play, typed
    from simperf.errors import InputError
    from simperf.report.layout_plans import layouts_output
    from simperf.report.limits import format_limits
    from simperf.study.layouts import plan_layouts
    from simperf.study.limits import limits

    output, shown = given.get("output"), StudyProgress()
    journal = f"{output}.journal" if output is not None else None
    try:
        found = plan_layouts(
            request, engine=engine, journal=journal, fresh=bool(given.get("fresh")), cache=cache, progress=shown
        )
    except InputError as error:  # without a file, options said what cannot be
        raise InputError([_of_option(one) for one in error.problems]) from None
    except KeyboardInterrupt:
        same = "the same command without --fresh" if given.get("fresh") else "the same command"
        kept = f"; {journal} keeps them, and {same} continues" if journal and Path(journal).exists() else ""
        note(f"interrupted after {shown.done} layouts{kept}")
        return 130
    finally:
        shown.end()
    if explain:
        scenario = found.scenario(explain)
        typer.echo(scenario.title + "\n" + found.ranked[explain - 1].reason)
        if found.large(found.ranked[explain - 1]):
            note("what limits a layout of so many events takes several runs as long as that of the search")
        typer.echo(format_limits(limits(scenario, engine=_of_limits(engine), play=play)))
    else:
        typer.echo(layouts_output(found, form, all_rows=everything))
    if output is not None:
        found.save(output)
        Path(f"{output}.journal").unlink(missing_ok=True)
        note(f"wrote {output}")
    if (report := given.get("report")) is not None:
        winner = found.detailed(play)
        write_report(
            report, lambda pages: pages.layouts_report(found, command=typed(), **winner), given.get("language", "en")
        )
    return 0
