"""Writing what was fitted as a profile: a TOML part of the catalogue's schema, with provenance and joint draws."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from simperf.files import write_text

if TYPE_CHECKING:
    from simperf.calibrate.fit.sets import FitSet, SeriesFit

__all__ = ["profile_text", "write_profile"]

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
    data = found.dataset
    title = f"Fitted to {data.title or 'measurements without a title'}"
    points = sum(len(one.fit.data) for one in found.fits)
    lines = [
        "# A profile: constants fitted to measurements, with 90 % intervals and joint draws (as factors of the value;",
        "# entry i belongs together in all constants of a model). Written by `simperf calibrate fit`.",
        'kind = "profile"',
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
    for one in found.fits:
        lines += ["", *_model(one)]
    return "\n".join(lines) + "\n"


def write_profile(
    path: str | os.PathLike[str], found: FitSet, *, gpu: str = "", made: Mapping[str, Any] | None = None
) -> None:
    """Write the file of a profile to `path`, whole or not at all."""
    write_text(path, profile_text(found, gpu=gpu, made=made))


def _model(one: SeriesFit) -> Iterator[str]:
    fit = one.fit
    head = f"model.{_key(fit.model.name)}"
    yield f"[{head}]"
    yield f"title = {_value(fit.model.title)}"
    yield f"series = {_value(one.series)}"
    yield f"points = {len(fit.data)}"
    yield f"error = {fit.mape():.4g}"
    yield f"scatter = {one.scatter:.4g}"
    if one.between is not None and one.between.common:
        yield f"between = {one.between.common:.4g}"
    if fit.model.fixed:
        yield f"fixed = {{ {', '.join(f'{_key(key)} = {float(value)!r}' for key, value in fit.model.fixed.items())} }}"
    if one.held_out is not None:
        yield "held_out = ["
        yield from (f"  {_value(key)}," for key in one.held_out.keys)
        yield "]"
    for name, constant in fit.constants.items():
        yield f"[{head}.constant.{_key(name)}]"
        numbers = (("value", constant.value), ("low", constant.low), ("high", constant.high))
        yield "\n".join(f"{key} = {float(f'{value:.7g}')!r}" for key, value in numbers)
        yield f"stderr = {float(f'{constant.stderr:.7g}')!r}"
        yield f"unit = {_value(constant.unit)}"
        if constant.note:
            yield f"note = {_value(constant.note)}"
        if constant.stderr > 0 and constant.value > 0:
            yield f"draws = [{','.join(_short(draw / constant.value) for draw in constant.draws)}]"


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
