"""A profile against measurements: from files to the error of every point."""

from __future__ import annotations

import os

from simperf.calibrate.fitting import Files, files_of, of_file
from simperf.calibrate.validate import Validation
from simperf.calibrate.validate import validate as check
from simperf.errors import UnknownNameError
from simperf.hardware import Catalog, ProfilePart
from simperf.hardware.lookup import find_profile

__all__ = ["validate"]


def validate(profile: ProfilePart | str | os.PathLike[str], data: Files) -> Validation:
    """Predict every measured point, and say by how much each is off; points held out of the fit are distinguished.

    Parameters
    ----------
    profile : ProfilePart or path
        A file that `fit` wrote, the name of a shipped profile, or that of a GPU of the catalogue, as it is without any.
    data : path or sequence of path
        The measurements of the fit, or others; several sessions of one machine are pooled.

    Raises
    ------
    InputError
        What cannot be read or predicted.
    """
    from simperf.calibrate.baseline import lines_of, roofline_steps, with_baseline
    from simperf.calibrate.catalogue import check_catalogue
    from simperf.calibrate.cluster.profile import hold_profile, is_box, validation_of
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.machines import find_gpu
    from simperf.calibrate.sessions import pool
    from simperf.calibrate.steps import step_predictor

    gpus = Catalog.load().names("gpu")
    if isinstance(profile, str) and profile in gpus:
        paths = files_of(data)
        with of_file(paths):
            return check_catalogue(Catalog.load().gpu(profile), pool([Dataset.load(path) for path in paths]))
    try:
        known = profile if isinstance(profile, ProfilePart) else find_profile(profile)
    except UnknownNameError as error:
        raise UnknownNameError("profile or GPU", error.name, {*error.known, *gpus}) from None
    paths = files_of(data)
    dataset = pool([Dataset.load(path) for path in paths])
    if is_box(dataset):
        with of_file(paths):
            return validation_of(hold_profile(known, dataset))
    part = find_gpu(dataset, known.gpu)
    with of_file(paths):
        found = check(known, dataset, part=part, steps=step_predictor(known, part=part))
    return with_baseline(found, dataset, lines_of(found, dataset), roofline_steps(known))
