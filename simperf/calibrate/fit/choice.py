"""A model and the points that it is fitted to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.model import Data, Model

__all__ = ["ModelChoice", "given", "keys_of"]


@dataclass(frozen=True)
class ModelChoice:
    """A model and the points for it; or points that no model takes, and why.

    Parameters
    ----------
    series : str
    model : Model or None
    data : Data or None
    reason : str
        Why there is no model, or why it cannot be fitted to so few points.
    keys : tuple of str
        Of the points.
    others : tuple of Model
        The same model with fewer or more constants: the best by `Fit.criterion` is taken.
    strict : bool
        How that is chosen.
    whole : bool
        No point is held out of the fit: each has a constant of its own.
    """

    series: str
    model: Model | None = None
    data: Data | None = None
    reason: str = ""
    keys: tuple[str, ...] = field(default=(), repr=False)
    others: tuple[Model, ...] = ()
    strict: bool = False
    whole: bool = False


def keys_of(points: Iterable[Measurement]) -> tuple[str, ...]:
    """Keys of points."""
    return tuple(point.key for point in points)


def given(series: str, model: Model, points: Sequence[Measurement], data: Data, *others: Model) -> ModelChoice:
    """A model with its points, or, where they are too few for its constants, the reason."""
    if len(data) <= len(model.constants):
        reason = f"{len(data)} points for the {len(model.constants)} constants of {model.name}"
        return ModelChoice(series, model, data, reason=reason, keys=keys_of(points), others=others)
    return ModelChoice(series, model, data, keys=data.keys, others=others)
