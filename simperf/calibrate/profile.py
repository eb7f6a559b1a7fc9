"""Writing what was fitted as a profile: a TOML part of the catalogue's schema, with provenance and joint samples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Dataset
    from simperf.calibrate.fit.sets import FitSet, SeriesFit
    from simperf.hardware.profile import FittedModel

__all__ = ["fitted_model", "models_text", "profile_text"]

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")


def profile_text(found: FitSet, *, gpu: str = "", made: Mapping[str, Any] | None = None) -> str:
    """The file of a profile.

    Parameters
    ----------
    found : FitSet
    gpu : str
        Name in the catalogue of the GPU that was measured; empty if there is none.
    made : mapping, optional
        How the fit was made: ``command``, ``date``, ``simperf``.
    """
    models = {one.fit.model.name: fitted_model(one) for one in found.fits}
    points = sum(len(one.fit.data) for one in found.fits)
    return models_text(found.dataset, models, points=points, gpu=gpu, made=made)


def models_text(
    data: Dataset,
    models: Mapping[str, FittedModel],
    *,
    points: int,
    gpu: str = "",
    made: Mapping[str, Any] | None = None,
    command: str = "simperf calibrate fit",
) -> str:
    """The file of a profile that holds these models.

    Parameters
    ----------
    data : Dataset
        What they were fitted to.
    models : mapping of str to FittedModel
    points : int
        How many points of it.
    gpu : str
        Name in the catalogue of the GPU that was measured; empty if there is none.
    made : mapping, optional
        How the fit was made: ``command``, ``date``, ``simperf``.
    command : str
        What the file says that it was written by.
    """
    title = f"Fitted to {data.title or 'measurements without a title'}"
    lines = [
        "# A profile: constants fitted to measurements, with 90 % intervals and joint samples (factors of the value;",
        f"# entry i belongs together in all constants of a model). Written by `{command}`.",
        'kind = "profile"',
        "format = 1",
        f"title = {_value(title)}",
        f"gpu = {_value(gpu)}",
        f"dataset = {_value(data.title)}",
        "",
        "[source]",
        f"default = {_value('fitted to ' + (data.title or 'measurements'))}",
    ]
    about = {**{f"measured {key}": value for key, value in data.made.items()}, **(made or {}), "points": points}
    for name, table in (("made", about), ("machine", data.machine), ("versions", data.versions)):
        lines += ["", f"[{name}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())]
    for name, model in models.items():
        lines += ["", *_model(name, model)]
    return "\n".join(lines) + "\n"


def fitted_model(one: SeriesFit) -> FittedModel:
    """Model that a profile keeps of a fit."""
    from simperf.hardware.profile import FittedConstant, FittedModel

    fit = one.fit
    constants = {}
    for name, found in fit.constants.items():
        known = found.stderr > 0 and found.value > 0
        draws = tuple(draw / found.value for draw in found.draws) if known else ()
        numbers = {"value": found.value, "low": found.low, "high": found.high, "stderr": found.stderr}
        constants[name] = FittedConstant(**numbers, unit=found.unit, draws=draws, note=found.note)
    return FittedModel(
        title=fit.model.title,
        series=one.series,
        points=len(fit.data),
        error=fit.mape(),
        scatter=one.scatter,
        between=one.between.common if one.between is not None else 0.0,
        constant=constants,
        fixed=fit.model.fixed,
        held_out=tuple(one.held_out.keys) if one.held_out is not None else (),
    )


def _model(name: str, model: FittedModel) -> Iterator[str]:
    head = f"model.{_key(name)}"
    yield f"[{head}]"
    yield f"title = {_value(model.title)}"
    yield f"series = {_value(model.series)}"
    yield f"points = {model.points}"
    yield f"error = {model.error:.4g}"
    yield f"scatter = {model.scatter:.4g}"
    if model.between:
        yield f"between = {model.between:.4g}"
    if model.note:
        yield f"note = {_value(model.note)}"
    if model.fixed:
        yield f"fixed = {{ {', '.join(f'{_key(key)} = {float(value)!r}' for key, value in model.fixed.items())} }}"
    if model.held_out:
        yield "held_out = ["
        yield from (f"  {_value(key)}," for key in model.held_out)
        yield "]"
    for key, constant in model.constant.items():
        yield f"[{head}.constant.{_key(key)}]"
        numbers = (("value", constant.value), ("low", constant.low), ("high", constant.high))
        yield "\n".join(f"{word} = {float(f'{value:.7g}')!r}" for word, value in numbers)
        yield f"stderr = {float(f'{constant.stderr:.7g}')!r}"
        yield f"unit = {_value(constant.unit)}"
        if constant.note:
            yield f"note = {_value(constant.note)}"
        if constant.draws:
            yield f"draws = [{','.join(_short(draw) for draw in constant.draws)}]"


def _short(value: float) -> str:
    text = f"{value:.4g}"
    return text if "." in text or "e" in text else text + ".0"


def _key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(_value(each) for each in value) + "]"
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
