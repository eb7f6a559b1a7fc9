"""`simperf calibrate cluster`: a cluster of namespaces in this machine, real torch on it, prediction beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from simperf.calibrate.cluster.shape import Shape
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
    """Measure collectives and training on hosts boxed into this machine, and show the prediction beside it."""
    from importlib.util import find_spec

    from simperf.calibrate.cluster.measure import goes_on, of_box, priority_of
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
    from simperf.calibrate.cluster.requirements import check
    from simperf.calibrate.measure.steal_time import disturbed
    from simperf.cli import interruptible
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note

    shape, further = _shape(rate, rate_of or [], burst, queue, hosts), _rates(rates)
    families = _families(only)
    if predicted:
        _predict(predicted, hosts, shape, further, families, quick=quick)
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
            data = _measure(
                hosts,
                shape,
                further,
                families,
                quick=quick,
                output=output,
                before=before,
                command=command,
                priority=priority,
            )
        except KeyboardInterrupt:
            note("interrupted; the cluster is taken down" + (f"; {again}" if again else ""))
            raise typer.Exit(ending.code) from None
    doubtful = sum(1 for point in data if point.warnings)
    note(
        f"{len(data)} points" + (f", {doubtful} of them unsteady or disturbed (see their warnings)" if doubtful else "")
    )
    if told := disturbed(data):
        note(told + (f"; {again}, and measures these again" if again else ""))
    if output is not None:
        note(f"wrote {output}; to see it again: simperf calibrate cluster --replay {output}")
        note(f"next, constants to predict other clusters with: simperf calibrate fit {output} -o profile.toml")
    if {"send", "step"} <= set(families or ("send", "step")) and find_spec("scipy") is not None:
        _show(data, points=points, samples=samples, beside=others)


def _measure(
    hosts: int,
    shape: Shape,
    rates: tuple[float, ...],
    families: tuple[str, ...],
    *,
    quick: bool,
    output: Path | None,
    before: Dataset | None,
    command: str,
    priority: str,
) -> Dataset:
    import sys

    from simperf.calibrate.cluster import experiments
    from simperf.calibrate.cluster.measure import measure

    def progress(done: int, of: int, what: str) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r\x1b[K[{done}/{of}] {what}", nl=done == of, err=True)
        elif done % 20 == 0 or done == of:
            typer.echo(f"[{done}/{of}] {what}", err=True)

    wanted = list(experiments.points(hosts, shape, rates=rates, only=families, quick=quick))
    servers = 1 if any(point.hosts > hosts for point in wanted) else 0
    return measure(
        hosts + servers,
        shape,
        wanted,
        output=output,
        before=before,
        progress=progress,
        command=command,
        priority=priority,
    )


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


def _predict(
    profile: str, hosts: int, shape: Shape, rates: tuple[float, ...], families: tuple[str, ...], *, quick: bool
) -> None:
    from simperf.calibrate.cluster import experiments
    from simperf.calibrate.cluster.profile import predict_points
    from simperf.cli.terminal import note
    from simperf.hardware.lookup import find_profile
    from simperf.report.cluster import prediction_text

    wanted = experiments.points(hosts, shape, rates=rates, only=families, quick=quick)
    rows = predict_points(find_profile(profile), wanted)
    if rows:
        typer.echo(prediction_text(rows))
    else:
        note("nothing of this is predicted: additions and steps alone are what constants are read off")


def _command(hosts: int, named: Mapping[str, str], rate_of: list[str], *, quick: bool) -> str:
    """The command for the record: what shapes the points, and no name of a file, which may have a user's in it."""
    words = [f"--hosts {hosts}", *(f"{option} {value}" for option, value in named.items() if value)]
    words += [f"--rate-of {one}" for one in rate_of] + ["--quick"] * quick
    return " ".join(["simperf calibrate cluster", *words])


def _show(data: Dataset, *, points: bool, samples: int, beside: list[Dataset]) -> None:
    from simperf.calibrate.cluster.accuracy import hold_against
    from simperf.calibrate.cluster.fitting import fit_constants
    from simperf.calibrate.uncertainty.conformal import with_fit_residuals, with_other_recordings
    from simperf.report.cluster import cluster_text

    found = fit_constants(data)
    rows = hold_against(data, found.stack, samples=0 if beside else samples)
    if beside:
        rows = with_other_recordings(rows, [hold_against(other) for other in beside])
    elif samples:
        rows = with_fit_residuals(rows)
    typer.echo(cluster_text(found, rows, points=points))


def _shape(rate: str, rate_of: list[str], burst: str, queue: str, hosts: int) -> Shape:
    from simperf.calibrate.cluster.shape import Shape, read_rate, read_size
    from simperf.errors import InputError, Problem

    slow = {}
    for text in rate_of:
        host, _, value = text.partition("=")
        if not value or not host.strip().isdigit() or int(host) >= hosts:
            raise InputError(
                Problem("no host and rate", key="--rate-of", value=text, expected=f"HOST=RATE, host 0 to {hosts - 1}")
            )
        slow[int(host)] = read_rate(value, "--rate-of")
    return Shape(read_rate(rate, "--rate"), slow, read_size(burst, "--burst"), read_size(queue, "--queue"))


def _rates(text: str) -> tuple[float, ...]:
    from simperf.calibrate.cluster.shape import read_rate

    return tuple(read_rate(part, "--rates") for part in text.split(",") if part.strip())


def _families(text: str) -> tuple[str, ...]:
    from simperf.calibrate.cluster.experiments import FAMILIES
    from simperf.errors import UnknownNameError

    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in FAMILIES:
            raise UnknownNameError("family", name, FAMILIES)
    return names
