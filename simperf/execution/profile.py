"""Costs of a framework's frontend: its part of the catalogue."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from simperf.hardware import FrontendPart

__all__ = ["FREE", "FrontendPart", "ObservedFrontend"]

#: A frontend that costs nothing: times come from the kernels' own t1, t2, t3.
FREE = FrontendPart(name="free", title="A frontend that costs nothing", sources={"default": "by definition"})

_FIELDS = frozenset(field.name for field in fields(FrontendPart))


class ObservedFrontend(FrontendPart):
    """A frontend that notes which of its constants a run reads.

    Examples
    --------
    >>> part = ObservedFrontend.of(FREE)
    >>> part.launch, part.read
    (0.0, {'launch'})
    """

    __slots__ = ("read",)
    read: set[str]

    @classmethod
    def of(cls, part: FrontendPart) -> ObservedFrontend:
        """The same constants, of which none was read."""
        values = {name: getattr(part, name) for name in _FIELDS}
        made = cls(**values)
        object.__setattr__(made, "read", set())
        return made

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if name in _FIELDS:
            object.__getattribute__(self, "read").add(name)
        return value
