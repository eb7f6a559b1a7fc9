"""Expectations in a scenario's file of its run, as they are read: not yet compared with a result."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from simperf.analysis.breakdown import PARTS
from simperf.analysis.regime import REGIMES
from simperf.errors import Problem, UnitError, nearest
from simperf.files import TomlFile
from simperf.units import DIMENSIONS, parse

__all__ = ["GROUPS", "KINDS", "TOLERANCE", "Expectation", "read_expectations"]

#: what an expectation may be: a value that the simulator gave once, so that a change of it is noticed; one that
#: follows from the inputs by hand; one that others measured or printed
KINDS = ("regression", "closed form", "published")

#: relative tolerance of an expectation that names none
TOLERANCE = 1e-6
#: what a key may start with, before its dot
GROUPS = ("metrics", "breakdown", "floor", "utilisation")
_WORDS = {"regime": REGIMES, "error": ()}
_FIELDS = ("value", "rtol", "atol", "min", "max", "kind", "source")
#: keys of a whole table, for those of its values that have none of their own
_SHARED = ("kind", "source")
_KEYS = ("time", "floor", "regime", "error", "metrics.NAME", "breakdown.CATEGORY", "floor.NAME", "utilisation.RESOURCE")
_KIND_EXAMPLE = 'kind = "regression", kind = "closed form" or kind = "published", the last two with source = "..."'
_EXAMPLE = '"60 ms", or { value = "60 ms", rtol = 1e-9 }, or { min = "50 ms", max = "70 ms" }'
_BYTE_OR_BIT = re.compile(r"[kKMGTP]i?b(/s|ps)?$")
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One number that a run must give; its quantities are read when the number's unit is known.

    Parameters
    ----------
    key : str
        As in `simperf.analysis.check.lookup`; or ``"regime"``, ``"error"``; or ``"compare.A/B"``, the time of
        variant A over that of variant B.
    value, low, high, atol : str or float or None
        The value, the range and the absolute tolerance as written.
    rtol : float
        Relative tolerance of `value` [1].
    text : str
        The word that ``"regime"`` and ``"error"`` expect.
    kind : str
        One of `KINDS`; empty for a measurement.
    source : str
        The formula, or where the value was published; empty for a regression.
    file : str
    line : int
    """

    key: str
    value: str | float | None = None
    low: str | float | None = None
    high: str | float | None = None
    atol: str | float | None = None
    rtol: float = TOLERANCE
    text: str = ""
    kind: str = ""
    source: str = ""
    file: str = ""
    line: int = 0

    def problem(self, message: str, *, expected: str = "") -> Problem:
        """A `Problem` at this line of the file."""
        key = self.key if self.key.startswith("compare.") else f"expect.{self.key}"
        return Problem(message, file=self.file, line=self.line, key=key, expected=expected)


def read_expectations(
    table: Any, toml: TomlFile, at: Key, problems: list[Problem], *, measured: bool = False, source: str = ""
) -> tuple[Expectation, ...]:
    """Read an ``[expect]`` or a ``[measured]`` table that stands at key path `at`, noting all that is wrong with it.

    Every value of an ``[expect]`` table says of what kind it is, by itself or for the whole table. Its source is its
    own, that of the table, or the scenario's `source`, unless it is a regression. A `measured` value has no kind.
    """
    if not isinstance(table, Mapping):
        problems.append(
            toml.problem(at, "a table in { } is expected", value=table, expected=f"{{ time = {_EXAMPLE} }}")
        )
        return ()
    shared = {} if measured else _shared(table, toml, at, problems)
    defaults = {"kind": "", "source": source} | shared
    found = []
    for key, path, spec in _flat({name: spec for name, spec in table.items() if name not in shared}, at):
        expectation = _read(key, spec, toml, path, problems)
        if expectation is not None:
            if not measured:
                expectation = _founded(expectation, defaults, toml, path, problems)
            elif expectation.kind:
                problems.append(
                    toml.problem((*path, "kind"), "what was measured is of no other kind", expected="no kind")
                )
            found.append(expectation)
    return tuple(found)


def _shared(table: Mapping[str, Any], toml: TomlFile, at: Key, problems: list[Problem]) -> dict[str, str]:
    """Kind and source of a whole table; one that is wrong is noted and stands, so that it is reported once."""
    shared = {name: table[name] for name in _SHARED if name in table}
    for name, value in shared.items():
        _origin(name, value, toml, (*at, name), problems)
    return {name: str(value) for name, value in shared.items()}


def _origin(name: str, value: Any, toml: TomlFile, at: Key, problems: list[Problem]) -> None:
    """Note a kind or a source that is none."""
    if not isinstance(value, str) or not value:
        problems.append(toml.problem(at, "a text is expected", value=value))
    elif name == "kind" and value not in KINDS:
        message = f"no kind of expectation{nearest(value, KINDS)}"
        problems.append(toml.problem(at, message, value=value, expected=_KIND_EXAMPLE))


def _founded(
    one: Expectation, defaults: Mapping[str, str], toml: TomlFile, at: Key, problems: list[Problem]
) -> Expectation:
    """The expectation with a kind and a source, where it has none of its own."""
    kind = one.kind or defaults["kind"]
    if not kind:
        problems.append(toml.problem(at, "it does not say of what kind it is", expected=_KIND_EXAMPLE))
    elif kind == "regression":
        if one.source:
            message = "a regression has no source: the simulator gave it"
            problems.append(toml.problem(at, message, value=one.source, expected='kind = "closed form" or "published"'))
        return replace(one, kind=kind)
    elif kind in KINDS and not (one.source or defaults["source"]):
        expected = 'source = "the formula"' if kind == "closed form" else 'source = "where it was published"'
        problems.append(toml.problem(at, f"{kind!r} needs a source", expected=expected))
    return replace(one, kind=kind, source=one.source or defaults["source"])


def _flat(table: Mapping[str, Any], at: Key) -> Iterator[tuple[str, Key, Any]]:
    """Write ``metrics.x`` and ``[expect.metrics] x`` in the same way."""
    for key, value in table.items():
        if key in (*GROUPS, "compare") and isinstance(value, Mapping) and not set(value) <= set(_FIELDS):
            for name, spec in value.items():
                yield f"{key}.{name}", (*at, key, name), spec
        else:
            yield key, (*at, key), value


def _read(key: str, spec: Any, toml: TomlFile, at: Key, problems: list[Problem]) -> Expectation | None:
    before = len(problems)
    group, dot, name = key.partition(".")
    place = toml.problem(at, "")
    if key in _WORDS:
        _check_word(spec, _WORDS[key], toml, at, problems)
        return Expectation(key, text=str(spec), file=place.file, line=place.line)
    if key not in ("time", "floor") and not (dot and name and group in (*GROUPS, "compare")):
        plain = nearest(group if dot else key, [k.partition(".")[0] for k in _KEYS])
        hint = plain if "mean" in plain else ""
        problems.append(toml.problem(at, f"unknown expectation{hint}", expected="one of " + ", ".join(_KEYS)))
        return None
    if group == "breakdown" and name not in PARTS:
        problems.append(toml.problem(at, f"no category of the breakdown{nearest(name, PARTS)}"))
    dimension = {"metrics": "", "utilisation": "1", "compare": "1"}.get(group, "s")
    fields = spec if isinstance(spec, Mapping) else {"value": spec}
    _check_fields(fields, dimension, toml, at, problems, alone=fields is not spec)
    if len(problems) == before:
        _range(fields, dimension, toml, at, problems)
    if len(problems) > before:
        return None
    return Expectation(
        key,
        cast("str | float | None", fields.get("value")),
        fields.get("min"),
        fields.get("max"),
        fields.get("atol"),
        float(fields.get("rtol", TOLERANCE)),
        kind=fields.get("kind", ""),
        source=fields.get("source", ""),
        file=place.file,
        line=place.line,
    )


def _check_word(spec: Any, known: Sequence[str], toml: TomlFile, at: Key, problems: list[Problem]) -> None:
    """Note a value that is not a string, or none of those `known`."""
    if not isinstance(spec, str) or not spec:
        problems.append(toml.problem(at, "a text is expected", value=spec, expected=" or ".join(known)))
    elif known and spec not in known:
        problems.append(toml.problem(at, f"no regime{nearest(spec, known)}", value=spec))


def _check_fields(
    fields: Mapping[str, Any], dimension: str, toml: TomlFile, at: Key, problems: list[Problem], *, alone: bool
) -> None:
    """Note unknown fields, and values of the wrong type, unit or size; `alone` is a value that is no table."""
    for field in fields:
        if field not in _FIELDS:
            problems.append(toml.problem((*at, field), f"unknown key{nearest(field, _FIELDS)}"))
    for field in ("value", "min", "max", "atol"):
        if field in fields:
            _quantity(fields[field], dimension, toml, at if alone else (*at, field), problems)
    rtol = fields.get("rtol", TOLERANCE)
    if not isinstance(rtol, int | float) or isinstance(rtol, bool):
        problems.append(toml.problem((*at, "rtol"), "a number is expected", value=rtol))
    for field in _SHARED:
        if field in fields:
            _origin(field, fields[field], toml, (*at, field), problems)
    if isinstance(rtol, int | float) and not 0 <= rtol < 1:
        problems.append(toml.problem((*at, "rtol"), "from 0 to less than 1 is expected", value=rtol))
    if set(fields) <= set(_FIELDS) and ("value" in fields) == ("min" in fields or "max" in fields):
        problems.append(toml.problem(at, "either a value, or min and max, is expected", expected=_EXAMPLE))


def _range(fields: Mapping[str, Any], dimension: str, toml: TomlFile, at: Key, problems: list[Problem]) -> None:
    """Note a range without numbers, and a tolerance below 0."""
    dimensions = (dimension,) if dimension else tuple(DIMENSIONS)
    for low, high, key, message in (
        (fields.get("min"), fields.get("max"), "max", "the expected range is empty: max must be at least min"),
        (0, fields.get("atol"), "atol", "0 or more is expected"),
    ):
        if low is None or high is None:
            continue
        shared = next((each for each in dimensions if _parses(low, each) and _parses(high, each)), None)
        if shared is not None and parse(low, shared) > parse(high, shared):
            problems.append(toml.problem((*at, key), message, value=high))


def _quantity(value: Any, dimension: str, toml: TomlFile, at: Key, problems: list[Problem]) -> None:
    """Note a quantity that has no meaning; without a dimension, one that has none in any dimension."""
    if dimension:
        try:
            parse(value, dimension)
        except UnitError as error:
            problems.append(toml.problem(at, str(error), value=value))
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number and not any(_parses(value, each) for each in DIMENSIONS):
        rate = _BYTE_OR_BIT.search(str(value))
        message = "a quantity with a known unit is expected"
        if rate:
            message += f"; {rate.group()!r} may be bits or bytes, which differ by 8: write bit or B"
        problems.append(toml.problem(at, message, value=value, expected=_EXAMPLE.replace("60 ms", "1.6 GB")))


def _parses(value: Any, dimension: str) -> bool:
    try:
        parse(value, dimension)
    except UnitError:
        return False
    return True
