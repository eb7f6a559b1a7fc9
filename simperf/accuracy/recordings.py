"""Recorded profiles beside their data sets, and recorded clusters in a box beside their predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from simperf.calibrate.baseline import Line, lines_of, roofline_steps, with_baseline
from simperf.calibrate.cluster.accuracy import PredictedPoint, hold_against
from simperf.calibrate.cluster.conformal import with_other_recordings
from simperf.calibrate.cluster.measure import priority_of
from simperf.calibrate.cluster.profile import hold_profile, is_box, validation_of
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.machines import find_gpu
from simperf.calibrate.sessions import parts, pool
from simperf.calibrate.steps import step_predictor
from simperf.calibrate.validate import Validation, validate
from simperf.hardware import Catalog
from simperf.hardware.part_catalog import CALIBRATION

__all__ = ["boxed_clusters", "recorded"]


def recorded() -> Iterator[tuple[str, Validation]]:
    """Shipped profiles (``NAME.toml``) compared with what was recorded (``NAME*.json.gz``).

    The sessions that a profile was fitted to are taken together, every other one alone.
    """
    catalog = Catalog.load()
    for name in catalog.names("profile"):
        profile = catalog.profile(name)
        files = sorted(Path(catalog.path("profile", name)).parent.glob(f"{name}*.json*"))
        loaded = {file.name.partition(".")[0]: Dataset.load(file) for file in files}
        fitted_to = set(str(profile.made.get("parts", "")).split())
        of_fit = {title: data for title, data in loaded.items() if fitted_to.issuperset(parts(data))}
        groups = [(", ".join(of_fit), pool(tuple(of_fit.values())))] if of_fit else []
        groups += [(title, data) for title, data in loaded.items() if title not in of_fit]
        lines: dict[str, Line] = {}
        for title, data in groups:
            if is_box(data):
                yield title, validation_of(hold_profile(profile, data))
                continue
            part = find_gpu(data, profile.gpu)
            found = validate(profile, data, part=part, steps=step_predictor(profile, part=part))
            lines = lines or lines_of(found, data)  # of the sessions that were fitted, which come first
            yield title, with_baseline(found, data, lines, roofline_steps(profile))


def boxed_clusters(*, priority: str = "") -> Iterator[tuple[str, tuple[PredictedPoint, ...]]]:
    """Recorded clusters in a box beside their prediction, every point.

    Intervals are made of the other recordings with hosts of the same priority.

    Parameters
    ----------
    priority : str
        Of the hosts, ``"ordinary"`` or ``"real-time"``; recordings of any if left out.
    """
    for folder in CALIBRATION:
        every_file = sorted(folder.glob("boxed-*.json*")) if folder.is_dir() else []
        known = {file: Dataset.load(file) for file in every_file}
        files = [file for file in every_file if not priority or priority_of(known[file]) == priority]
        loaded = [known[file] for file in files]
        every = [hold_against(data) for data in loaded]
        for index, file in enumerate(files):
            alike = [priority_of(data) == priority_of(loaded[index]) for data in loaded]
            others = [every[at] for at, same in enumerate(alike) if same and at != index]
            yield file.name.partition(".")[0], with_other_recordings(every[index], others) if others else every[index]
