"""Names for things that people may add: collectives, programs, modes, strategies.

A `Registry` maps a name to an object. Built-in modules register with the decorator;
an installed package adds its own through the entry-point group of the registry
(``simperf.collectives``, ``simperf.programs``, ...), which is read on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from simperf.errors import SimperfError, UnknownNameError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """A lazily filled table of named parts of one kind.

    Parameters
    ----------
    kind : str
        What the entries are, in the singular, for messages.
    package : str
        Package whose import registers the built-in entries.
    group : str
        Entry-point group through which installed packages add entries.

    Examples
    --------
    >>> shapes = Registry[str]("shape", package="", group="simperf.shapes")
    >>> shapes.add("ring", "o")
    >>> shapes["ring"]
    'o'
    >>> shapes["rig"]
    Traceback (most recent call last):
        ...
    simperf.errors.UnknownNameError: unknown shape 'rig'; did you mean 'ring'?
    """

    def __init__(self, kind: str, *, package: str, group: str) -> None:
        self.kind, self._package, self._group = kind, package, group
        self._entries: dict[str, T] = {}
        self._loaded = False

    def __repr__(self) -> str:
        return f"<Registry of {len(self)} {self.kind}s>"

    def register(self, name: str) -> Callable[[T], T]:
        """Register the decorated object under `name`."""

        def decorate(entry: T) -> T:
            self.add(name, entry)
            return entry

        return decorate

    def add(self, name: str, entry: T) -> None:
        """Register `entry`; two different entries of one name are an error."""
        if self._entries.get(name, entry) is not entry:
            raise SimperfError(f"the {self.kind} {name!r} is registered twice")
        self._entries[name] = entry

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        if self._package:
            import_module(self._package)
        for point in entry_points(group=self._group):
            self.add(point.name, point.load())

    def __getitem__(self, name: str) -> T:
        self._load()
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownNameError(self.kind, name, self._entries) from None

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._load()
        return len(self._entries)
