"""``simperf calibrate fit``: constants from measurements, as a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Dataset

__all__ = ["fit", "of_file"]


#: every so many points of a series are kept out of a fit
HOLD_OUT = 5


@contextmanager
def of_file(files: Sequence[Path]) -> Iterator[None]:
    """Say of which file a problem of measurements is, where there is only one."""
    from dataclasses import replace

    from simperf.errors import InputError

    try:
        yield
    except InputError as error:
        if len(files) > 1:
            raise
        raise InputError([replace(one, file=one.file or str(files[0])) for one in error.problems]) from error


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
        str, typer.Option(help="The GPU's name in the catalogue; default: found by the name in the data.")
    ] = "",
    hold_out: Annotated[
        int, typer.Option(min=0, help="Keep every N-th point of a series out of the fit, for `validate`; 0 keeps none.")
    ] = HOLD_OUT,
    plots: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Draw data, fit and residuals of each model.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
) -> None:
    """Fit the models that the measurements allow, and say how well each is known."""
    import datetime
    import sys

    from simperf.calibrate.cluster.profile import is_box
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.fit import fit_dataset
    from simperf.calibrate.machines import find_gpu
    from simperf.calibrate.profile import write_profile
    from simperf.calibrate.sessions import parts, pool
    from simperf.cli.work import note, verify_outputs
    from simperf.version import __version__

    verify_outputs(profile=output, folder=plots)  # before minutes of fitting, not after
    if any(path.suffix == ".csv" for path in data):
        _of_no_box({"--gpu": gpu, "--plots": plots, "--hold-out": hold_out if hold_out != HOLD_OUT else None})
        _fit_sends(data, output)
        return
    sessions = [Dataset.load(path) for path in data]
    dataset = pool(sessions)
    given = " ".join(str(path) for path in data)
    # for the record, and without folders, which may have a user's name in them
    words = ["simperf calibrate fit", *(path.name for path in data), *([f"-o {output.name}"] if output else [])]
    made = {"date": datetime.date.today().isoformat(), "simperf": __version__, "parts": " ".join(parts(dataset))}
    if is_box(dataset):
        _of_no_box({"--gpu": gpu, "--plots": plots, "--hold-out": hold_out if hold_out != HOLD_OUT else None})
        with of_file(data):
            _fit_box(sessions, output, {"command": " ".join([*words, f"--seed {seed}"]), **made}, seed=seed)
        _next(output, given)
        return
    part = find_gpu(dataset, gpu)
    shown = sys.stderr.isatty()

    def progress(name: str) -> None:
        if shown:
            typer.echo(f"\r\x1b[K{name}", nl=False, err=True)

    with of_file(data):
        found = fit_dataset(dataset, part=part, hold_out=hold_out, seed=seed, progress=progress, sessions=sessions)
    if shown:
        typer.echo("\r\x1b[K", nl=False, err=True)
    typer.echo(found.report())
    if output is not None:
        words += [*[f"--gpu {gpu}"] * bool(gpu), f"--hold-out {hold_out}", f"--seed {seed}"]
        made = {"command": " ".join(words), **made}
        write_profile(output, found, gpu=part.name if part is not None else "", made=made)
    if plots is not None:
        from simperf.report.calibration import plot_fits

        note(f"wrote {len(plot_fits(found, plots))} pictures to {plots}")
    _next(output, given)


def _fit_sends(data: Sequence[Path], output: Path | None) -> None:
    """A network stack of a table of sends."""
    import datetime

    from simperf.calibrate.cluster.sends import read_sends, sends_model
    from simperf.calibrate.profile import models_text
    from simperf.cli.work import note
    from simperf.errors import InputError, Problem
    from simperf.files import write_text
    from simperf.report.cluster import stack_text
    from simperf.version import __version__

    if len(data) != 1:
        message = "a table of sends is fitted alone"
        raise InputError(Problem(message, value=", ".join(map(str, data)), expected="one file"))
    read = read_sends(data[0])
    with of_file(list(data)):
        models = sends_model(read)
    typer.echo(stack_text(models))
    if output is not None:
        words = ["simperf calibrate fit", data[0].name, "-o", output.name]
        made = {"command": " ".join(words), "date": datetime.date.today().isoformat(), "simperf": __version__}
        write_text(output, models_text(read, models, points=models["network-stack"].points, made=made))
        note(f'wrote {output}; use it: [calibration] use = "{output}" on a machine with a network_stack')


def _next(output: Path | None, given: str) -> None:
    """What to do now."""
    from simperf.cli.work import note

    if output is None:
        note(f"no profile was written; keep the constants: simperf calibrate fit {given} -o profile.toml")
        return
    note(f"wrote {output}; next: simperf calibrate validate {output} {given}")


def _of_no_box(given: Mapping[str, object]) -> None:
    """Refuse options that say nothing of a boxed cluster."""
    from simperf.errors import InputError, Problem

    message, expected = "says nothing of a boxed cluster, which is fitted to its sends alone", "no such option"
    problems = [
        Problem(message, key=key, value=str(value), expected=expected)
        for key, value in given.items()
        if value not in ("", None)
    ]
    if problems:
        raise InputError(problems)


def _fit_box(recordings: Sequence[Dataset], output: Path | None, made: dict[str, str], *, seed: int) -> None:
    """Constants of a boxed cluster: one model, fitted through the simulator."""
    from simperf.calibrate.cluster.profile import boxed_models
    from simperf.calibrate.profile import models_text
    from simperf.calibrate.sessions import pool
    from simperf.files import write_text
    from simperf.report.cluster import box_text

    models = boxed_models(recordings, seed=seed)
    typer.echo(box_text(models))
    if output is not None:
        write_text(output, models_text(pool(recordings), models, points=models["network-stack"].points, made=made))
