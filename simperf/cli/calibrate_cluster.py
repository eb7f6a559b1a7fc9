"""`simperf calibrate cluster`: a cluster of namespaces in this machine, real torch on it, prediction beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Dataset

__all__ = ["cluster"]

#: what a port of the switch keeps where nobody says
QUEUE = "512kb"


def cluster(
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help=".json or .json.gz; continued if it is there."),
    ] = None,
    hosts: Annotated[int, typer.Option("--hosts", min=2, max=64, help="Most hosts that take part.")] = 4,
    rate: Annotated[str, typer.Option("--rate", help="Of every host's link, such as 200mbit.")] = "200mbit",
    rates: Annotated[
        str, typer.Option("--rates", metavar="RATE,...", help="Further rates, to hold the prediction against.")
    ] = "",
    rate_of: Annotated[
        list[str] | None, typer.Option("--rate-of", metavar="HOST=RATE", help="A host whose link differs.")
    ] = None,
    burst: Annotated[str, typer.Option("--burst", help="Size of the token buckets.")] = "32kb",
    queue: Annotated[str, typer.Option("--queue", help="What a port of the switch keeps before it drops.")] = QUEUE,
    priority: Annotated[
        Literal["real-time", "ordinary"],
        typer.Option("--priority", help="Of the hosts' threads: before all others, or as any program's."),
    ] = "real-time",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points: about a minute.")] = False,
    only: Annotated[str, typer.Option("--only", metavar="FAMILY,...", help="Some families of points only.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again, whatever is in the file.")] = False,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Measure nothing: hold a recorded file against it.")
    ] = None,
    predicted: Annotated[
        str,
        typer.Option("--predict", metavar="PROFILE", help="Measure nothing: say what `fit` of a cluster tells of it."),
    ] = "",
    points: Annotated[bool, typer.Option("--points", help="Show every point, not only the summary.")] = False,
    samples: Annotated[
        int, typer.Option("--samples", min=0, metavar="N", help="Intervals from N fits to readings drawn again; slow.")
    ] = 0,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--beside", metavar="FILE", help="Another recording: intervals are made of what is missed there."),
    ] = None,
) -> None:
    """Measure collectives and training on simulated hosts (network namespaces), and show predicted times, too."""
    from importlib.util import find_spec

    from simperf.calibrate.cluster.measure import goes_on, measure, of_box, priority_of
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.fitting import of_file

    if predicted:
        measured = {"-o": output, "--fresh": fresh, "--replay": replay, "--samples": samples, "--beside": beside}
        _nothing_measured({**measured, "--points": points})
        _nothing_measured({"--queue": queue if queue != QUEUE else "", "--priority": _told(priority)})
    others = [of_box(Dataset.load(path), path) for path in beside or ()]
    if replay is not None:
        with of_file([replay]):
            recorded = of_box(Dataset.load(replay), replay)
            unsaid = "" if "priority" in recorded.made else ", as all were when this file was made"
            typer.echo(f"measured with hosts of {priority_of(recorded)} priority{unsaid}\n")
            _show(recorded, points=points, samples=samples, beside=others)
        return
    from simperf.calibrate.cluster import experiments
    from simperf.calibrate.cluster.experiments import check_families
    from simperf.calibrate.cluster.profile import predict_points
    from simperf.calibrate.cluster.requirements import check
    from simperf.calibrate.cluster.shape import read_rate, read_shape
    from simperf.cli import interruptible
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.hardware.lookup import find_profile
    from simperf.report.cluster import prediction_text

    shape = read_shape(rate, rate_of or (), burst=burst, queue=queue, hosts=hosts)
    further = tuple(read_rate(part, "--rates") for part in rates.split(",") if part.strip())
    families = check_families(part.strip() for part in only.split(",") if part.strip())
    wanted = list(experiments.points(hosts, shape, rates=further, only=families, quick=quick))
    if predicted:
        rows = predict_points(find_profile(predicted), wanted)
        if rows:
            typer.echo(prediction_text(rows))
        else:
            note("nothing of this is predicted: additions and steps alone are what constants are read off")
        return
    verify_outputs(output=output)
    check()
    if find_spec("scipy") is None:
        note("to see the prediction beside it, fitting needs SciPy: pip install scipy")
    before = Dataset.load(output) if output is not None and output.exists() and not fresh else None
    if before is not None and output is not None:
        goes_on(before, output, priority)
        note(f"{output} holds {len(before)} points: they are kept, if calm (--fresh begins again)")
    named = {
        "--rate": rate,
        "--rates": rates,
        "--burst": burst,
        "--queue": queue,
        "--only": only,
        "--priority": _told(priority),
    }
    command = _command(hosts, named, rate_of or [], quick=quick)
    again = "the same command" + (" without --fresh" if fresh else "") + f" continues with {output}" if output else ""
    with interruptible() as ending:
        try:
            data = measure(
                hosts,
                shape,
                wanted,
                output=output,
                before=before,
                progress=_progress,
                command=command,
                priority=priority,
            )
        except KeyboardInterrupt:
            note("interrupted; the cluster is taken down" + (f"; {again}" if again else ""))
            raise typer.Exit(ending.code) from None
    _told_of(data, output, again)
    if {"send", "step"} <= set(families or ("send", "step")) and find_spec("scipy") is not None:
        _show(data, points=points, samples=samples, beside=others)


def _told_of(data: Dataset, output: Path | None, again: str) -> None:
    """Say what was measured and what is to be doubted, and what comes next."""
    from simperf.calibrate.measure.steal_time import disturbed
    from simperf.cli.terminal import note

    doubtful = sum(1 for point in data if point.warnings)
    note(
        f"{len(data)} points" + (f", {doubtful} of them unsteady or disturbed (see their warnings)" if doubtful else "")
    )
    if told := disturbed(data):
        note(told + (f"; {again}, and measures these again" if again else ""))
    if output is not None:
        note(f"wrote {output}; to see it again: simperf calibrate cluster --replay {output}")
        note(f"next, constants to predict other clusters with: simperf calibrate fit {output} -o profile.toml")


def _progress(done: int, of: int, what: str) -> None:
    import sys

    if sys.stderr.isatty():
        typer.echo(f"\r\x1b[K[{done}/{of}] {what}", nl=done == of, err=True)
    elif done % 20 == 0 or done == of:
        typer.echo(f"[{done}/{of}] {what}", err=True)


def _told(priority: str) -> str:
    """The priority, if it is not the usual one."""
    return "" if priority == "real-time" else priority


def _nothing_measured(given: Mapping[str, object]) -> None:
    """Refuse options that need a measurement."""
    from simperf.errors import InputError, Problem

    message, expected = (
        "--predict measures nothing, drops nothing, and shows every point with its interval",
        "no such option",
    )
    problems = [Problem(message, key=key, value=str(one), expected=expected) for key, one in given.items() if one]
    if problems:
        raise InputError(problems)


def _command(hosts: int, named: Mapping[str, str], rate_of: list[str], *, quick: bool) -> str:
    """The command for the record: what shapes the points, and no name of a file, which may have a user's in it."""
    words = [f"--hosts {hosts}", *(f"{option} {value}" for option, value in named.items() if value)]
    words += [f"--rate-of {one}" for one in rate_of] + ["--quick"] * quick
    return " ".join(["simperf calibrate cluster", *words])


def _show(data: Dataset, *, points: bool, samples: int, beside: list[Dataset]) -> None:
    from simperf.calibrate.cluster.profile import hold_recording
    from simperf.report.cluster import cluster_text

    typer.echo(cluster_text(*hold_recording(data, samples=samples, others=beside), points=points))
