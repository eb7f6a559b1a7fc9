"""Whole-number arithmetic of shell scripts: + - * / % and brackets."""

from __future__ import annotations

import re

__all__ = ["whole_value"]

_NUMBER = re.compile(r"[0-9]{1,18}")
_PARTS = re.compile(r"[0-9]{1,18}|[-+*/%()]")
#: parts of an expression at most
_MOST = 1000


def whole_value(text: str) -> str:
    """The value of an expression; empty where it has none of 64 bits.

    Examples
    --------
    >>> whole_value("2 * (3 + 4)"), whole_value("1 / 0"), whole_value("a")
    ('14', '', '')
    """
    parts = _PARTS.findall(text)
    if len(parts) > _MOST or "".join(parts) != re.sub(r"\s", "", text):
        return ""
    try:
        value, rest = _sum(parts, 0)
    except (IndexError, ValueError, ZeroDivisionError, RecursionError):
        return ""
    return str(value) if rest == len(parts) else ""


def _sum(parts: list[str], at: int) -> tuple[int, int]:
    value, at = _product(parts, at)
    while at < len(parts) and parts[at] in "+-":
        other, rest = _product(parts, at + 1)
        value, at = (value + other if parts[at] == "+" else value - other), rest
    return _whole(value), at


def _product(parts: list[str], at: int) -> tuple[int, int]:
    value, at = _factor(parts, at)
    while at < len(parts) and parts[at] in "*/%":
        other, rest = _factor(parts, at + 1)
        match parts[at]:
            case "*":
                value = _whole(value * other)
            case "/":
                value //= other
            case _:
                value %= other
        at = rest
    return value, at


def _factor(parts: list[str], at: int) -> tuple[int, int]:
    if parts[at] == "(":
        value, at = _sum(parts, at + 1)
        if parts[at] != ")":
            raise ValueError
        return value, at + 1
    if parts[at] == "-":
        value, at = _factor(parts, at + 1)
        return -value, at
    if not _NUMBER.fullmatch(parts[at]):
        raise ValueError
    return int(parts[at]), at + 1


def _whole(value: int) -> int:
    if abs(value) >= 2**63:
        raise ValueError
    return value
