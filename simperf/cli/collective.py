"""`simperf collective`: the table of nccl-tests on any machine, as NCCL would run it or by idealised algorithms."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from simperf.cli.options import Report

if TYPE_CHECKING:
    from simperf.calibrate.measured_sizes import MeasuredSizes
    from simperf.cli.bench import Bench
    from simperf.collectives.bench import Row

__all__ = ["collective"]

Machine = "Machine"
Options = "Options of the idealised algorithms"
Library = "Options of NCCL"
Output = "Output"


def collective(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="all-reduce, reduce-scatter, all-gather, broadcast, all-to-all, ...")
    ],
    algo: Annotated[
        str,
        typer.Option(
            "--algo",
            "-a",
            metavar="NAMES",
            help="nccl, nccl-ring, or idealised algorithms (short names: tree, rabenseifner, direct), with commas "
            "between; 'all' for all. If left out, nccl on GPUs that it runs on, else a ring.",
        ),
    ] = "",
    own: Annotated[
        Path | None, typer.Option("--python", metavar="FILE", help="A Python file with an algorithm of your own.")
    ] = None,
    server: Annotated[str, typer.Option(metavar="NAME", help="A server of the catalog.", rich_help_panel=Machine)] = "",
    cluster: Annotated[
        str, typer.Option(metavar="NAME", help="A cluster of the catalog.", rich_help_panel=Machine)
    ] = "",
    nodes: Annotated[int, typer.Option(metavar="N", help="How many such servers.", rich_help_panel=Machine)] = 1,
    fabric: Annotated[
        Literal["star", "fat-tree", "rail"], typer.Option(help="Network between them.", rich_help_panel=Machine)
    ] = "star",
    link: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Cable between them; that of the server's NIC if left out.", rich_help_panel=Machine
        ),
    ] = "",
    oversubscription: Annotated[
        float, typer.Option(metavar="X", help="Of a fat tree: leaf ports down to capacity up.", rich_help_panel=Machine)
    ] = 1.0,
    servers_per_leaf: Annotated[int, typer.Option(metavar="N", help="Of a fat tree.", rich_help_panel=Machine)] = 16,
    folder: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="A folder with parts of your own.", rich_help_panel=Machine),
    ] = None,
    profile: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A profile that `simperf calibrate fit` wrote: times of NCCL's collectives, and links.",
            rich_help_panel=Machine,
        ),
    ] = "",
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", help="Ranks that take part; needed with --wiring.", rich_help_panel=Machine),
    ] = None,
    wiring: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="A machine without a file: ring, star, fully-connected.", rich_help_panel=Machine
        ),
    ] = "",
    bandwidth: Annotated[
        str, typer.Option(metavar="RATE", help="Of each link of the wiring and direction.", rich_help_panel=Machine)
    ] = "50 GB/s",
    latency: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Of each link of the wiring; a star's route crosses two.", rich_help_panel=Machine
        ),
    ] = "500 ns",
    low: Annotated[str, typer.Option("--minbytes", "-b", metavar="SIZE", help="Smallest size; 1K = 1024 B.")] = "1M",
    high: Annotated[str, typer.Option("--maxbytes", "-e", metavar="SIZE", help="Largest size.")] = "1G",
    factor: Annotated[float, typer.Option("--stepfactor", "-f", metavar="X", help="Factor from size to size.")] = 2.0,
    step: Annotated[
        str, typer.Option("--stepbytes", "-i", metavar="SIZE", help="Step from size to size, instead of -f.")
    ] = "",
    chunks: Annotated[
        int | None,
        typer.Option(metavar="N", help="Chunks of a pipeline; chosen by size if left out.", rich_help_panel=Options),
    ] = None,
    channels: Annotated[
        int | None, typer.Option(metavar="N", help="Rings of multi-ring.", rich_help_panel=Options)
    ] = None,
    group: Annotated[
        int | None, typer.Option(metavar="N", help="Ranks a server of a hierarchy.", rich_help_panel=Options)
    ] = None,
    inner: Annotated[
        str, typer.Option(metavar="NAME", help="Inner algorithm of a hierarchy.", rich_help_panel=Options)
    ] = "",
    outer: Annotated[
        str, typer.Option(metavar="NAME", help="Outer algorithm of a hierarchy.", rich_help_panel=Options)
    ] = "",
    root: Annotated[
        int | None, typer.Option(metavar="RANK", help="Root of a rooted collective.", rich_help_panel=Options)
    ] = None,
    servers: Annotated[
        int | None, typer.Option(metavar="N", help="Dedicated servers of sharded.", rich_help_panel=Options)
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="LL, LL128 or Simple: the only one that NCCL may choose; "
            "of an idealised algorithm, latencies and efficiency.",
            rich_help_panel=Library,
        ),
    ] = "",
    network: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How NCCL reaches other servers: rdma, efa, socket, ...; by the NIC if left out.",
            rich_help_panel=Library,
        ),
    ] = "",
    in_network: Annotated[
        bool | None,
        typer.Option(
            "--in-network/--no-in-network",
            help="Whether switches add up; where they can if left out.",
            rich_help_panel=Library,
        ),
    ] = None,
    launches: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=64, help="GPUs that one process drives.", rich_help_panel=Library),
    ] = None,
    nccl_version: Annotated[
        str, typer.Option(metavar="X.Y", help="A version of NCCL; a present one if left out.", rich_help_panel=Library)
    ] = "",
    step_latency: Annotated[
        str, typer.Option(metavar="TIME", help="Added to the latency of every send.", rich_help_panel=Options)
    ] = "0 s",
    reduce_rate: Annotated[
        str, typer.Option(metavar="RATE", help="Rate at which a receiver adds up.", rich_help_panel=Options)
    ] = "",
    late: Annotated[
        list[str] | None,
        typer.Option(metavar="RANK=TIME", help="A rank that enters late, by number or node; may be repeated."),
    ] = None,
    background: Annotated[
        list[str] | None,
        typer.Option(metavar="SRC>DST=RATE", help="Constant traffic from node to node; may be repeated."),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="An event a send, whatever the symmetry and however many.")
    ] = False,
    best: Annotated[bool, typer.Option("--best", help="The fastest idealised algorithm of each size.")] = False,
    map_file: Annotated[
        Path | None,
        typer.Option(
            "--map", metavar="FILE", help="Draw which of them wins over ranks and sizes.", rich_help_panel=Output
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the machine with the load of every link.", rich_help_panel=Output),
    ] = None,
    report: Report = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="Measured times, a log of nccl-tests or a table: shown beside the prediction, at its sizes.",
            rich_help_panel=Output,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The JSON of nccl-tests (us, GB/s).", rich_help_panel=Output)
    ] = False,
    output: Annotated[
        Literal["table", "json", "csv"],
        typer.Option("--format", help="JSON and CSV in SI units.", rich_help_panel=Output),
    ] = "table",
) -> None:
    """Time a collective by size, as nccl-tests does, on a machine of the catalog or a plain wiring."""
    from functools import partial

    from simperf.cli.bench import Bench
    from simperf.cli.calibrate_validate import load_profile
    from simperf.cli.work import verify_outputs

    verify_outputs(plot=plot, map_file=map_file, report=report)
    typed = [key for key in context.params if getattr(context.get_parameter_source(key), "name", "") == "COMMANDLINE"]
    _refuse_together(typed)
    if own is not None:
        from simperf.scenario.python_program import load_module

        load_module(own)
    given = {
        "chunks": chunks,
        "channels": channels,
        "group": group,
        "inner": inner or None,
        "outer": outer or None,
        "root": root,
        "servers": servers,
        "network": network or None,
        "in_network": in_network,
        "launches": launches,
        "version": nccl_version or None,
    }
    log = _read_log(beside, name, ranks) if beside is not None else None
    if log is not None and ranks is None and server and nodes == 1:
        ranks = log.ranks
    build = partial(
        Bench.build,
        name,
        algo=algo or ("all" if best or map_file else ""),
        options={key: value for key, value in given.items() if value is not None},
        protocol=protocol,
        step_latency=step_latency,
        reduce_rate=reduce_rate,
        exact=exact,
        late=late or (),
        background=background or (),
        given=typed,
    )
    place = {
        "server": server,
        "cluster": cluster,
        "nodes": nodes,
        "fabric": fabric,
        "link": link,
        "oversubscription": oversubscription,
        "servers_per_leaf": servers_per_leaf,
        "folders": tuple(folder or ()),
        "ranks": ranks,
        "wiring": wiring,
        "bandwidth": bandwidth,
        "latency": latency,
        "profile": load_profile(profile) if profile else None,
        "changed": {},
    }
    bench = build(place=place)
    if log is not None:
        plain = build(place={**place, "profile": None}) if profile else bench
        _write_beside(log, plain, bench, typed, low=low, high=high, output=output)
        return
    sizes = bench.sizes(low, high, factor=factor, step=step)
    if map_file is not None:
        bench.draw_map(map_file, sizes)
        typer.echo(f"wrote {map_file}", err=True)
        _tell_refusals(bench)
        return
    tables = bench.run(sizes)
    _write(bench, tables, best=best, as_json=as_json, output=output, factor=factor)
    if plot is not None:
        bench.draw_load(plot, tables)
        typer.echo(f"wrote {plot}", err=True)
    if report is not None:
        from simperf.cli.work import typed as words
        from simperf.report.html import collective_report, save_page

        where = getattr(bench.machine, "name", "") or wiring
        among = f"{len(bench.ranks)} ranks on {where}"
        page = collective_report(
            tables,
            bench.machine,
            title=f"{name}: {among}",
            question=f"How long does {name} take among {among}, by size, and which way wins?",
            scaling=bench.scaling(sizes[-1], tables),
            settings=bench.header().splitlines(),
            refusals=bench.refusals,
            command=words(),
        )
        save_page(page, report)
        typer.echo(f"wrote {report}: open it in a browser", err=True)


def _refuse_together(typed: Collection[str]) -> None:
    """Refuse outputs of which one would be left out in silence."""
    from simperf.errors import InputError, Problem

    wrong = []
    if "as_json" in typed and "output" in typed:
        wrong.append(Problem("nccl-tests' JSON goes to the same stream", key="--format", expected="--json alone"))
    for key in ("plot", "report", "as_json", "output", "best") if "map_file" in typed else ():
        option = {"as_json": "--json", "output": "--format"}.get(key, f"--{key}")
        if key in typed:
            wrong.append(Problem("a map is all that --map makes", key=option, expected="--map alone"))
    alone = ("map_file", "best", "as_json", "plot", "report", "factor", "step") if "beside" in typed else ()
    for key in alone:
        option = {"as_json": "--json", "map_file": "--map", "factor": "-f", "step": "-i"}.get(key, f"--{key}")
        if key in typed:
            message = "measured times are shown beside the prediction in one table, at their sizes"
            wrong.append(Problem(message, key=option, expected="--beside without it"))
    if wrong:
        raise InputError(wrong)


def _read_log(path: Path, name: str, ranks: int | None) -> MeasuredSizes:
    from simperf.calibrate.measured_sizes import read_measured

    return read_measured(path, name, ranks=ranks or 0)


def _write_beside(
    log: MeasuredSizes, plain: Bench, fitted: Bench, typed: Collection[str], *, low: str, high: str, output: str
) -> None:
    """Measured times beside those of NCCL's constants, and beside those of a profile if there is one."""
    from simperf.calibrate.measured_sizes import SizeRow, spread_sizes
    from simperf.cli.rows import write_rows
    from simperf.errors import InputError, Problem
    from simperf.report.collectives import format_measured, measured_rows

    if len(plain.ranks) != log.ranks:
        message = f"times among {log.ranks} ranks, and {len(plain.ranks)} take part"
        raise InputError(Problem(message, file=log.file, key="--ranks", expected=f"--ranks {log.ranks}"))
    bounds = plain.sizes(low, high, factor=2.0, step="")
    first = bounds[0] if "low" in typed else 0
    last = plain.sizes(high, high, factor=2.0, step="")[0] if "high" in typed else max(log.times)
    sizes = spread_sizes([size for size in log.times if first <= size <= last])
    if not sizes:
        raise InputError(
            Problem("no measured size lies between -b and -e", file=log.file, value=f"{first} to {last} B")
        )
    before = plain.run(sizes)
    after = fitted.run(sizes) if fitted is not plain else {}
    texts, listed = [fitted.header()], []
    for name, rows in before.items():
        own = after.get(name, [None] * len(rows))
        table = [
            SizeRow(row.nbytes, log.times[round(row.nbytes)], row.time, other.time if other is not None else None)
            for row, other in zip(rows, own, strict=True)
        ]
        texts.append(format_measured(table, title=f"{name}, beside {log.file}"))
        listed += [{"algorithm": name, **one} for one in measured_rows(table)]
    if output == "table":
        typer.echo("\n".join(texts))
    else:
        write_rows(listed, output, units={"size": "B", "measured": "s", "predicted": "s", "profile": "s"})


def _write(
    bench: Bench, tables: dict[str, list[Row]], *, best: bool, as_json: bool, output: str, factor: float
) -> None:
    from simperf.collectives.bench import best_rows
    from simperf.report import collectives as report

    tuned = {name: rows for name, rows in tables.items() if not rows[0].idealised}
    ideal = {name: rows for name, rows in tables.items() if rows[0].idealised}
    winners = best_rows(ideal) if best and ideal else []
    shown = tuned if best else tables
    rows = [*(row for table in shown.values() for row in table), *winners]
    if as_json:
        import json

        document = report.nccl_document(rows, args=["simperf", *sys.argv[1:]], factor=factor, ngpus=len(bench.ranks))
        typer.echo(json.dumps(document, indent=2))
    elif output == "json":
        import json

        typer.echo(json.dumps(report.rows_document(rows), indent=2))
    elif output == "csv":
        typer.echo(report.rows_csv(rows))
    else:
        texts = [report.format_rows(table, title=title) for title, table in shown.items()]
        texts += [report.format_winners(winners)] if winners else []
        typer.echo("\n".join([bench.header(), *texts]))
    _tell_refusals(bench)


def _tell_refusals(bench: Bench) -> None:
    for line in bench.refusals:
        typer.echo(f"left out: {line}", err=True)
