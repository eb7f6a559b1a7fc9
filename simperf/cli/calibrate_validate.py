"""``simperf calibrate validate``: a profile against measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["validate"]


def validate(
    profile: Annotated[
        str,
        typer.Argument(metavar="PROFILE", help="A file that `fit` wrote, a shipped profile, or a GPU of the catalog."),
    ],
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA.json",
            help="The measurements of the fit, or others; several sessions of one machine are pooled.",
        ),
    ],
    points: Annotated[bool, typer.Option("--points", help="Show every point.")] = False,
    form: Annotated[
        Literal["table", "csv", "json"], typer.Option("--format", help="How to write the result.")
    ] = "table",
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the errors: .png, .svg or .pdf.")] = None,
    within: Annotated[
        float | None,
        typer.Option(metavar="PERCENT", min=0.0, help="Exit with 1 if held-out points are off by more on average."),
    ] = None,
) -> None:
    """Predict every point, and say by how much each is off; held-out points are distinguished."""
    from simperf.calibrate.validation import validate as run_validate
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.errors import InputError, Problem
    from simperf.report.calibration import calibration_csv, calibration_json, calibration_text, draw_validation

    verify_outputs(plot=plot)
    found = run_validate(profile, data)
    if form == "table":
        typer.echo(calibration_text(found, points=points))
    else:
        typer.echo((calibration_csv if form == "csv" else calibration_json)(found).rstrip("\n"))
    if plot is not None:
        from simperf.report.style import save

        save(draw_validation(found), plot)
        note(f"wrote {plot}")
    out = found.held_out
    if out is None:
        if within is not None:
            message = "no point was held out of the fit, so that none is compared"
            raise InputError(Problem(message, file="--within", value=f"{within:g}", expected="other measurements"))
        single = all(one.inside is None for one in found.points)  # no point of these can be held out
        other = "validate on another data set" if single else "fit with --hold-out 5, or validate on another data set"
        note(f"every point was fitted, which says little: {other}")
        return
    if found.boxed:
        note(f"use it: simperf calibrate cluster --predict {profile} --hosts 8 --rate 300mbit, without root or torch")
    elif any(one.inside is not None for one in found.points):
        note(f"use it: put [calibration] use = {str(profile)!r} into a scenario, then simperf run FILE --samples 32")
    if within is not None and out.mape > within / 100:
        note(f"held-out points are off by {out.mape:.1%} on average, more than {within:g} %")
        raise typer.Exit(1)
