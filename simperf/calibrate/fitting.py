"""From files of measurements to a profile: a machine's series, a boxed cluster, or a table of sends."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.files import write_text
from simperf.hardware.profile import FittedModel
from simperf.outputs import data_frame, html_table, report_module

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.fit import FitSet

__all__ = ["HOLD_OUT", "Files", "FittedProfile", "files_of", "fit", "of_file"]

#: every so many points of a series are kept out of a fit
HOLD_OUT = 5

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_COLUMNS = ("model", "constant", "value", "low", "high", "stderr", "unit", "note")


@dataclass(frozen=True, eq=False)
class FittedProfile:
    """Constants that were fitted to measurements.

    Parameters
    ----------
    text : str
        The profile's file (TOML).
    models : mapping of str to FittedModel
        The constants by what they are of.
    summary : str
        How well each is known, in words.
    fits : FitSet, optional
        The fits themselves, of a machine's series.
    """

    text: str
    models: Mapping[str, FittedModel]
    summary: str
    fits: FitSet | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile to `path` (TOML), whole or not at all.

        Raises
        ------
        InputError
            The name does not end in ``.toml``, or the file cannot be written.
        """
        if not os.fspath(path).lower().endswith(".toml"):
            message = "the name must end in .toml"
            raise InputError(Problem(message, file=os.fspath(path), expected="FILE.toml"))
        write_text(path, self.text)

    def plot(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Draw data, fit and residuals of each model into a folder, and say which files they are.

        Raises
        ------
        InputError
            The constants are not those of a machine's series.
        """
        if self.fits is None:
            raise InputError(
                Problem(
                    "only fits of a machine's series are drawn",
                    file=os.fspath(folder),
                    expected="a data set of simperf calibrate measure",
                )
            )
        return list(report_module("calibration").plot_fits(self.fits, folder))

    def to_pandas(self) -> Any:
        """A row a constant, as a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        return data_frame((dict(zip(_COLUMNS, row, strict=True)) for row in self._rows()), _COLUMNS)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for name, model in self.models.items():
            for key, one in model.constant.items():
                yield name, key, one.value, one.low, one.high, one.stderr, one.unit, one.note

    def __repr__(self) -> str:
        count = sum(len(model.constant) for model in self.models.values())
        return f"<FittedProfile: {len(self.models)} models, {count} constants>"

    def _repr_html_(self) -> str:
        rows = [[f"{each:.4g}" if isinstance(each, float) else each for each in row] for row in self._rows()]
        return html_table(_COLUMNS, rows)


@contextmanager
def of_file(files: Sequence[Path]) -> Iterator[None]:
    """Say of which file a problem of measurements is, where there is only one."""
    try:
        yield
    except InputError as error:
        if len(files) > 1:
            raise
        raise InputError([replace(one, file=one.file or str(files[0])) for one in error.problems]) from error
    except UnknownNameError as error:  # a precision, a device: conditions of points
        if len(files) > 1:
            raise
        raise InputError(Problem(str(error), file=str(files[0]), key="measurements")) from error


def files_of(data: Files) -> list[Path]:
    """One path or several, as a list.

    Raises
    ------
    InputError
        There is none, or something else.
    """
    listed = [data] if isinstance(data, str | os.PathLike) else list(data) if isinstance(data, Sequence) else []
    if not listed or not all(isinstance(one, str | os.PathLike) for one in listed):
        message, expected = "files of measurements are expected", '"machine.json", or a list of such files'
        raise InputError(Problem(message, key="data", value=repr(data), expected=expected))
    return [Path(one) for one in listed]


def fit(
    data: Files,
    *,
    output: str | os.PathLike[str] | None = None,
    gpu: str = "",
    hold_out: int | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> FittedProfile:
    """Fit the models that measurements allow (extra ``fit``).

    Parameters
    ----------
    data : path or sequence of path
        What `measure`, ``simperf calibrate cluster`` or ``import`` wrote; several sessions of one machine are pooled. A
        table of sends (``.csv``) is fitted alone.
    output : path, optional
        Write the profile to this file (TOML).
    gpu : str
        The GPU's name in the catalogue; by default found by the name in the data.
    hold_out : int, optional
        Keep every so many points of a series out of the fit, for `validate`; 0 keeps none; `HOLD_OUT` if left out.
    seed : int
        Of the bootstrap.
    progress : callable, optional
        Is given the name of each model before it is fitted.

    Raises
    ------
    InputError
        What cannot be read or fitted; an option that says nothing of such data; SciPy is missing.
    """
    paths = files_of(data)
    words = ["simperf calibrate fit", *(path.name for path in paths)]
    words += [f"-o {Path(output).name}"] if output is not None else []  # without folders, which may have a user's name
    if any(path.suffix == ".csv" for path in paths):
        _machine_only(gpu, hold_out)
        found = _of_sends(paths, words)
    else:
        found = _of_datasets(paths, words, gpu, hold_out, seed, progress)
    if output is not None:
        found.save(output)
    return found


def _of_sends(paths: Sequence[Path], words: Sequence[str]) -> FittedProfile:
    """A network stack of a table of sends."""
    from simperf.calibrate.cluster.sends import read_sends, sends_model
    from simperf.calibrate.profile import models_text

    if len(paths) != 1:
        message = "a table of sends is fitted alone"
        raise InputError(Problem(message, value=", ".join(map(str, paths)), expected="one file"))
    read = read_sends(paths[0])
    with of_file(paths):
        models = sends_model(read)
    text = models_text(read, models, points=models["network-stack"].points, made=_made(words))
    return FittedProfile(text, models, report_module("cluster").stack_text(models))


def _of_datasets(
    paths: Sequence[Path],
    words: Sequence[str],
    gpu: str,
    hold_out: int | None,
    seed: int,
    progress: Callable[[str], None] | None,
) -> FittedProfile:
    """Constants of a machine's series, or of a boxed cluster."""
    from simperf.calibrate.cluster.profile import is_box
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.fit import fit_dataset
    from simperf.calibrate.machines import find_gpu
    from simperf.calibrate.profile import fitted_model, profile_text
    from simperf.calibrate.sessions import parts, pool

    sessions = [Dataset.load(path) for path in paths]
    dataset = pool(sessions)
    known = " ".join(parts(dataset))
    if is_box(dataset):
        _machine_only(gpu, hold_out)
        with of_file(paths):
            return _of_box(sessions, _made([*words, f"--seed {seed}"], parts=known), seed)
    part = find_gpu(dataset, gpu)
    every = HOLD_OUT if hold_out is None else hold_out
    with of_file(paths):
        found = fit_dataset(dataset, part=part, hold_out=every, seed=seed, progress=progress, sessions=sessions)
    if hold_out and not found.holds_out:
        own = all(one.fit.model.direct is not None for one in found.fits)
        why = "each has a constant of its own" if own else "too few would be left"
        message, expected = f"no point can be held out: {why}", "0, or no such option"
        raise InputError(Problem(message, key="--hold-out", value=str(hold_out), expected=expected))
    kept = [f"--hold-out {every}"] * (found.holds_out or hold_out is not None)
    options = [*[f"--gpu {gpu}"] * bool(gpu), *kept, f"--seed {seed}"]
    text = profile_text(found, gpu=part.name if part is not None else "", made=_made([*words, *options], parts=known))
    models = {one.fit.model.name: fitted_model(one) for one in found.fits}
    return FittedProfile(text, models, found.report(), found)


def _of_box(sessions: Sequence[Dataset], made: Mapping[str, str], seed: int) -> FittedProfile:
    """Constants of a boxed cluster: one model, fitted through the simulator."""
    from simperf.calibrate.cluster.profile import boxed_models
    from simperf.calibrate.profile import models_text
    from simperf.calibrate.sessions import pool

    models = boxed_models(sessions, seed=seed)
    text = models_text(pool(sessions), models, points=models["network-stack"].points, made=made)
    return FittedProfile(text, models, report_module("cluster").box_text(models))


def _made(words: Sequence[str], **more: str) -> dict[str, str]:
    """How a fit was made, for the record."""
    from simperf.version import __version__

    date = datetime.date.today().isoformat()
    return {"command": " ".join(words), "date": date, "simperf": __version__, **more}


def _machine_only(gpu: str, hold_out: int | None) -> None:
    """Refuse options that say nothing of a boxed cluster.

    Raises
    ------
    InputError
        Each of them.
    """
    message, expected = "says nothing of a boxed cluster, which is fitted to its sends alone", "no such option"
    given = {"--gpu": gpu, "--hold-out": "" if hold_out is None else str(hold_out)}
    problems = [Problem(message, key=key, value=value, expected=expected) for key, value in given.items() if value]
    if problems:
        raise InputError(problems)
