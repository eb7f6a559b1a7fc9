"""Quantities with units: text outside, SI floats inside.

Seconds, bytes, bytes per second, FLOP and FLOP per second everywhere inside; a unit
is read and written only at the edges. Byte and bit rates differ by 8 and are never
guessed: ``Gb/s`` is refused with both readings offered. ``GB`` is 1e9 bytes and
``GiB`` is 2**30.

Prefixes and numbers are quantiphy's work (with ``binary=True``: without it ``GiB``
reads 7 % wrong); which unit belongs to which dimension is the table below.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any

from simperf.errors import UnitError, nearest

__all__ = [
    "DIMENSIONS",
    "Bytes",
    "BytesPerSecond",
    "FreeUnlessGiven",
    "PerSecond",
    "Ratio",
    "Seconds",
    "Unit",
    "format_quantity",
    "format_ratio",
    "headed",
    "parse",
    "parse_size",
]

#: dimension -> {accepted unit: factor to the SI unit of the dimension}
DIMENSIONS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "s": {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "day": 86400.0, "days": 86400.0},
        "B": {"B": 1.0, "bytes": 1.0, "bit": 0.125},
        "B/s": {"B/s": 1.0, "bit/s": 0.125, "bps": 0.125},
        "FLOP": {"FLOP": 1.0, "FLOPs": 1.0, "MAC": 2.0, "OP": 1.0},
        "FLOP/s": {"FLOP/s": 1.0, "FLOPS": 1.0, "OP/s": 1.0},
        "1/s": {
            "1/s": 1.0,
            "/s": 1.0,
            "Hz": 1.0,
            "IOPS": 1.0,
            "rpm": 1 / 60.0,
            "samples/s": 1.0,
            "images/s": 1.0,
            "1/h": 1 / 3600.0,
        },
        "m": {"m": 1.0},
        "m/s": {"m/s": 1.0},
        "W": {"W": 1.0},
        "USD": {"USD": 1.0},
        "USD/h": {"USD/h": 1.0},
        "1": {"": 1.0, "%": 0.01, "x": 1.0},
    }
)

#: units whose prefix would be read wrongly ("min" is not milli-inches) or is never used
_NO_PREFIX = {
    "min",
    "h",
    "d",
    "day",
    "days",
    "rpm",
    "%",
    "x",
    "bytes",
    "IOPS",
    "samples/s",
    "images/s",
    "1/s",
    "1/h",
    "USD/h",
}
_PREFIXES = ("", "k", "K", "M", "G", "T", "P", "E", "m", "u", "µ", "μ", "n", "p", "Ki", "Mi", "Gi", "Ti", "Pi")
_BINARY = ("B", "B/s", "bit", "bit/s", "FLOP", "FLOP/s", "")
#: of a message [B]
_MOST_SIZE = 2**60
#: characters of a text that a message repeats
_LONGEST = 120
_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*$")
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(?![\d,])")
_BYTE_OR_BIT = re.compile(r"^([kKMGTP]?i?)b(/s|ps)?$")
_NAMES = {
    "s": "time",
    "B": "size",
    "B/s": "bandwidth",
    "FLOP": "work",
    "FLOP/s": "compute rate",
    "1/s": "frequency",
    "m": "length",
    "m/s": "speed",
    "W": "power",
    "USD": "money",
    "USD/h": "price",
    "1": "plain number",
}
_EXAMPLES = {
    "s": "'5 us'",
    "B": "'160 MB' or '1 GiB'",
    "B/s": "'16 GB/s' or '100 Gbit/s'",
    "FLOP": "'6.4 TFLOP'",
    "FLOP/s": "'15.7 TFLOP/s'",
    "1/s": "'10000 rpm' or '500 k/s'",
    "m": "'10000 km'",
    "m/s": "'200000 km/s'",
    "W": "'300 W'",
    "USD": "'10 USD'",
    "USD/h": "'3.06 USD/h'",
    "1": "'0.8' or '80 %'",
}
#: by the beginning of what else a unit of time is called, how it is written
_LASTING = {"h": "'24 h'", "min": "'30 min'", "sec": "'30 s'", **dict.fromkeys("dwmy", "'60 days'")}


@lru_cache(maxsize=4096)
def _factor(unit: str, dimension: str) -> float | None:
    """Factor of `unit` to the SI unit of `dimension`, or None if it is not one of its units."""
    from quantiphy import Quantity

    table = DIMENSIONS[dimension]
    for base in sorted(table, key=len, reverse=True):
        if not unit.endswith(base):
            continue
        prefix = unit[: len(unit) - len(base)]
        if prefix and (base in _NO_PREFIX or prefix not in _PREFIXES):
            continue
        if prefix.endswith("i") and base not in _BINARY:
            continue
        return float(Quantity(f"1{prefix}", binary=True).real) * table[base]
    return None


def parse(text: str | float | int, dimension: str) -> float:
    """Read a quantity such as ``"16 GB/s"`` as a float in the SI unit of `dimension`.

    Parameters
    ----------
    text : str or number
        A number with a unit. A bare number is taken only where `dimension` is ``"1"``,
        or where it is zero (zero is the same in every unit).
    dimension : str
        The SI unit that is wanted, a key of `DIMENSIONS`.

    Raises
    ------
    UnitError
        No unit, an unknown or ambiguous one, one of another dimension, or a number
        that is not finite.

    Examples
    --------
    >>> parse("16 GB/s", "B/s")
    16000000000.0
    >>> parse("100 Gbit/s", "B/s")
    12500000000.0
    >>> parse("5 us", "s")
    5e-06
    >>> parse("1 GiB", "B")
    1073741824.0
    >>> parse("1 Gb/s", "B/s")
    Traceback (most recent call last):
        ...
    simperf.errors.UnitError: 'Gb/s' may be bits or bytes, which differ by 8: write 'Gbit/s' or 'GB/s'
    """
    what, example = _described(dimension), _EXAMPLES[dimension]
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise UnitError(f"{what} is expected, such as {example}")
    if not isinstance(text, str):
        if dimension != "1" and text != 0:
            raise UnitError(f"the unit is missing: write {what}, such as {example}")
        return _finite(float(text), str(text))
    match = _NUMBER.match(text)
    if match is None:
        raise UnitError(f"{what} is expected, such as {example}")
    number, unit = match.groups()
    if "," in number and not _GROUPED.match(number):
        raise UnitError("a comma only stands between thousands, as in '10,000 us'; decimals have a point: '1.5 us'")
    cleaned = number.replace("_", "").replace(",", "")
    if not unit and dimension != "1":
        if float(cleaned) == 0:
            return 0.0
        raise UnitError(f"the unit is missing: write {what}, such as {example}")
    factor = _factor(unit, dimension)
    if factor is None:
        raise UnitError(_explain(unit, dimension))
    _finite(float(cleaned), text)  # a Decimal has larger exponents than a float, and fewer than a text may
    return _finite(float(Decimal(cleaned) * Decimal(repr(factor))), text)


def _finite(value: float, text: str) -> float:
    if not math.isfinite(value):
        raise UnitError(f"a finite number is expected, not {_short(text)}")
    return value


def _short(text: object) -> str:
    told = str(text)
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}..."


def _described(dimension: str) -> str:
    """What is expected of a text, with its article."""
    return "an amount with its currency" if dimension == "USD" else f"a {_NAMES[dimension]}"


def _explain(unit: str, dimension: str) -> str:
    what, example = _described(dimension), _EXAMPLES[dimension]
    ambiguous = _BYTE_OR_BIT.match(unit)
    if ambiguous and dimension not in ("B", "B/s"):
        return f"{unit!r} looks like a unit of bandwidth or size, but {what} is expected, such as {example}"
    if ambiguous:
        prefix, per = ambiguous.group(1), "/s" if ambiguous.group(2) else ""
        return f"{unit!r} may be bits or bytes, which differ by 8: write '{prefix}bit{per}' or '{prefix}B{per}'"
    for other in DIMENSIONS:
        if other not in (dimension, "1") and _factor(unit, other) is not None:
            return f"{unit!r} is a unit of {_NAMES[other]}, but {what} is expected, such as {example}"
    known = [p + u for u in DIMENSIONS[dimension] for p in ("", "k", "M", "G", "u", "m") if u]
    hint = nearest(unit, known)
    lasting = next((one for start, one in _LASTING.items() if dimension == "s" and unit.lower().startswith(start)), "")
    return f"unknown unit {_short(unit)!r}{hint if 'mean' in hint else f'; write {lasting or example}'}"


def parse_size(text: str | int) -> int:
    """Read a message size as nccl-tests does: suffixes K, M, G are powers of 1024.

    A unit that names itself (``"100 MB"``, ``"1 MiB"``) is read as it says.

    Examples
    --------
    >>> parse_size("100M"), parse_size("8"), parse_size("1 MB")
    (104857600, 8, 1000000)
    """
    if isinstance(text, int) and not isinstance(text, bool):
        size = float(text) if abs(text) <= _MOST_SIZE else math.inf
    else:
        match = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*([kKmMgGtT]?)\s*", str(text))
        if match:
            power = " kmgt".index(match.group(2).lower() or " ")
            size = float(match.group(1)) * 1024**power
        else:
            size = parse(text, "B")
    if size > _MOST_SIZE:
        raise UnitError(f"at most 1 EiB is expected, not {_short(text)}")
    if size < 0 or size != int(size):
        raise UnitError(f"a whole number of bytes, 0 or more, is expected, not {_short(repr(text))}")
    return int(size)


def format_quantity(value: float, dimension: str, *, digits: int = 4) -> str:
    """Write an SI float with its unit and `digits` significant digits.

    Examples
    --------
    >>> format_quantity(0.06, "s"), format_quantity(1.6e10, "B/s"), format_quantity(0.0, "s")
    ('60.00 ms', '16.00 GB/s', '0 s')
    >>> format_quantity(1.718e15, "FLOP/s"), format_quantity(3e18, "B"), format_quantity(1000.0, "s")
    ('1.718 PFLOP/s', '3.000 EB', '16.67 min')
    >>> format_quantity(0.1234567, "1"), format_quantity(160e6, "B"), format_quantity(0.00123456, "USD")
    ('0.1235', '160.0 MB', '0.001235 USD')
    """
    if dimension == "1":
        return f"{value:.{digits}g}"
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {dimension}"
    if dimension in ("USD", "USD/h"):
        return f"{value:.2f} {dimension}" if 1 <= abs(value) < 1e9 else f"{value:.{digits}g} {dimension}"
    rounded = abs(float(f"{value:.{digits}g}"))
    if dimension == "s" and rounded >= 1000:
        hours = rounded >= 7200
        return f"{value / (3600 if hours else 60):.{digits}g} {'h' if hours else 'min'}"
    if dimension in ("B", "FLOP") and rounded < 1:  # there is no milli-byte, and mB is too easily read as MB
        return f"{value:.{digits}g} {dimension}"
    shown = _quantity()(value, "/s" if dimension == "1/s" else dimension)
    return str(shown.render(prec=digits - 1, strip_zeros=False))


def format_ratio(ratio: float) -> str:
    """A ratio for people: two decimals, or three digits below 1.

    Examples
    --------
    >>> format_ratio(1.0), format_ratio(5.3333), format_ratio(28423.1), format_ratio(0.12716)
    ('1.00x', '5.33x', '28,423x', '0.127x')
    """
    if ratio >= 1e4:
        return f"{ratio:,.0f}x"
    return f"{ratio:.2f}x" if ratio >= 0.9995 else f"{ratio:#.3g}x"


def headed(name: str, unit: str) -> str:
    """Head of a column of numbers in the SI unit `unit`, as tables with units are read again.

    Examples
    --------
    >>> headed("time", "s"), headed("ratio", "1"), headed("name", "")
    ('time [s]', 'ratio', 'name')
    """
    return name if unit in ("", "1") else f"{name} [{unit}]"


@lru_cache(maxsize=1)
def _quantity() -> Any:
    """Quantiphy's class, with peta and exa among what it writes."""
    from quantiphy import Quantity

    written: Any = type("_Written", (Quantity,), {})
    written.set_prefs(output_sf="EPTGMkmunpfa")
    return written


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks a float in a signature as a quantity of `dimension`; files then write it with a unit.

    Parameters
    ----------
    dimension : str
    above_0 : str
        What holds without the quantity, in words, where 0 would mean that and not nothing: files do not say 0 then.
    """

    dimension: str
    above_0: str = ""


Seconds = Annotated[float, Unit("s")]
Bytes = Annotated[float, Unit("B")]
BytesPerSecond = Annotated[float, Unit("B/s")]
#: of a store or a link that takes no time where nobody gives it one: 0 B/s would be free, and 1 B/s for ever
FreeUnlessGiven = Annotated[float, Unit("B/s", above_0="it takes no time")]
PerSecond = Annotated[float, Unit("1/s")]
Ratio = Annotated[float, Unit("1")]
