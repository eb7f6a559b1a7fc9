"""`simperf collective`: the table of nccl-tests on any machine, as NCCL would run it or by idealised algorithms."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from simperf.cli.completion import collective_names, machine_names
from simperf.cli.options import Language, Report, refuse_alone, renamed, typed_options

__all__ = ["collective"]

Machine = "Machine"
Options = "Options of the idealised algorithms"
Library = "Options of NCCL"
Output = "Output"


def collective(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="all-reduce, reduce-scatter, all-gather, broadcast, all-to-all, ...",
            autocompletion=collective_names,
        ),
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
    server: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A server of the catalog.",
            rich_help_panel=Machine,
            autocompletion=machine_names,
        ),
    ] = "",
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
        typer.Option(metavar="N", help="Ranks that take part; needed with --topology.", rich_help_panel=Machine),
    ] = None,
    topology: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="A machine without a file: ring, star, fully-connected.", rich_help_panel=Machine
        ),
    ] = "",
    wiring: Annotated[str, typer.Option(hidden=True, callback=renamed("--wiring", "--topology"))] = "",
    bandwidth: Annotated[
        str, typer.Option(metavar="RATE", help="Of each link of the topology and direction.", rich_help_panel=Machine)
    ] = "50 GB/s",
    latency: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Of each link of the topology; a star's route crosses two.", rich_help_panel=Machine
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
    timing: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How calls are timed: graph (in a CUDA graph), loop (as in nccl-tests), torch (events around a call), "
            "profiler (kernels in a profile); loop if left out.",
            rich_help_panel=Library,
        ),
    ] = "",
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
    force: Annotated[
        bool, typer.Option("--force", help="Also simulate what is refused as too many sends or left out of a table.")
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
    language: Language = "en",
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="LOG",
            help="Measured times, a log of nccl-tests or a table: shown with the prediction, at its sizes.",
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
    """Time a collective by size, as nccl-tests does, on a machine of the catalog or a regular topology."""
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.cli.terminal import typed as command
    from simperf.hardware.lookup import find_profile
    from simperf.report.collective_output import CollectiveOutput, show_collective
    from simperf.study.collective.machine import MachineChoice
    from simperf.study.collective.request import CollectiveRequest, SizeRange

    refuse_alone(context, {"language": "report"})
    verify_outputs(plot=plot, map_file=map_file, report=report)
    typed = typed_options(context)
    shown = CollectiveOutput(
        form=output,
        nccl_json=as_json,
        best=best,
        map_file=map_file,
        plot=plot,
        report=report,
        language=language,
        measured=measured,
        command=command(),
        arguments=("simperf", *sys.argv[1:]),
    )
    shown.refuse_together(typed)
    if own is not None:
        from simperf.scenario.python_program import load_module

        load_module(own)
    options = {
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
        "timing": timing or None,
        "version": nccl_version or None,
    }
    machine = MachineChoice(
        server=server,
        cluster=cluster,
        topology=topology,
        nodes=nodes,
        fabric=fabric,
        link=link,
        oversubscription=oversubscription,
        servers_per_leaf=servers_per_leaf,
        folders=tuple(folder or ()),
        ranks=ranks,
        profile=find_profile(profile) if profile else None,
    )
    request = CollectiveRequest(
        collective=name,
        machine=machine,
        algorithms=algo or ("all" if best or map_file else ""),
        options={key: value for key, value in options.items() if value is not None},
        protocol=protocol,
        bandwidth=bandwidth,
        latency=latency,
        step_latency=step_latency,
        reduce_rate=reduce_rate,
        exact=exact,
        force=force,
        late=late or (),
        background=background or (),
        given=typed,
    )
    show_collective(request, SizeRange(low, high, factor, step), shown, say=typer.echo, note=note)
