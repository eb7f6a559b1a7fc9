"""``simperf calibrate fit``: constants from measurements, as a profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["fit"]


def fit(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA.json",
            help="What `measure`, `cluster` or `import` wrote; several sessions of one machine are pooled.",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PROFILE.toml", help="Write the constants to this file.")
    ] = None,
    gpu: Annotated[
        str, typer.Option(help="The GPU's name in the catalog; default: found by the name in the data.")
    ] = "",
    hold_out: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Keep every N-th point of a series out of the fit, for `validate`; 0 keeps none; 5 if left out.",
        ),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw data, fit and residuals of each model.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
) -> None:
    """Fit the models that the measurements allow, and say how well each is known."""
    import sys

    from simperf.calibrate.fitting import fit as run_fit
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note

    verify_outputs(profile=output, folder=plots)  # before minutes of fitting, not after
    if plots is not None:
        _refuse_plots(data, plots)
    shown = sys.stderr.isatty()

    def progress(name: str) -> None:
        if shown:
            typer.echo(f"\r\x1b[K{name}", nl=False, err=True)

    found = run_fit(data, output=output, gpu=gpu, hold_out=hold_out, seed=seed, progress=progress)
    if shown:
        typer.echo("\r\x1b[K", nl=False, err=True)
    typer.echo(found.summary)
    if plots is not None:
        note(f"wrote {len(found.plot(plots))} pictures to {plots}")
    _next(output, data)


def _refuse_plots(data: Sequence[Path], plots: Path) -> None:
    """Refuse pictures of what has no series, before it is fitted."""
    from simperf.calibrate.cluster.profile import is_box
    from simperf.calibrate.dataset import Dataset
    from simperf.errors import InputError, Problem

    if any(path.suffix == ".csv" or is_box(Dataset.load(path)) for path in data):
        message = "says nothing of a boxed cluster, which is fitted to its sends alone"
        raise InputError(Problem(message, key="--plots", value=str(plots), expected="no such option"))


def _next(output: Path | None, data: Sequence[Path]) -> None:
    """What to do now."""
    from simperf.cli.terminal import note

    given = " ".join(map(str, data))
    if any(path.suffix == ".csv" for path in data):
        if output is not None:
            note(f'wrote {output}; use it: [calibration] use = "{output}" on a machine with a network_stack')
    elif output is None:
        note(f"no profile was written; keep the constants: simperf calibrate fit {given} -o profile.toml")
    else:
        note(f"wrote {output}; next: simperf calibrate validate {output} {given}")
