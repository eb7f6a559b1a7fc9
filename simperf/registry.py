"""Names for things that people may add: collectives, programs, modes, strategies.

A `Registry` maps a name to an object. Built-in modules register with the decorator, and are
imported when one of their names is asked for; a file that is put beside those of a table is found,
too. An installed package adds its own through the entry-point group of the registry
(``simperf.collectives``, ``simperf.programs``, ...), which is read when all names are asked for, or
one that is not built in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from simperf.errors import SimperfError, UnknownNameError

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """A lazily filled table of named entries of one kind.

    Parameters
    ----------
    kind : str
        What the entries are, in the singular, for messages.
    package : str
        Package of the modules that register built-in entries; its import registers them all where `modules` is empty.
    group : str
        Entry-point group through which installed packages add entries.
    modules : mapping of str to str
        Built-in name to the module of `package` that registers it, which is imported when the name is first asked for.
    discover : bool
        Modules of `package` that `modules` does not name may register entries too: they are imported when all names are
        asked for, or one that is in no table.

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

    def __init__(
        self,
        kind: str,
        *,
        package: str,
        group: str,
        modules: Mapping[str, str] | None = None,
        discover: bool = False,
    ) -> None:
        self.kind, self._package, self._group, self._discover = kind, package, group, discover
        self.modules: Mapping[str, str] = modules or {}
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
        home = f"{self._package}.{self.modules[name]}" if name in self.modules else ""
        if home and home not in sys.modules:  # it is not the built-in one: that one is there first
            import_module(home)
        if self._entries.get(name, entry) is not entry:
            raise SimperfError(f"the {self.kind} {name!r} is registered twice")
        self._entries[name] = entry

    @contextmanager
    def temporary_entries(self, **entries: T) -> Iterator[None]:
        """A block with entries of its own: `entries`, those added in it, and those of packages installed meanwhile."""
        for name in self:
            self._find(name)  # a module registers at its first import only, which is not to be in the block
        before = self._entries
        self._entries, self._loaded = dict(before), False
        try:
            for name, entry in entries.items():
                self.add(name, entry)
            yield
        finally:
            self._entries, self._loaded = before, True

    def _find(self, name: str) -> T | None:
        """The entry called `name`, of which only its own module is imported if it is a built-in one."""
        if name not in self._entries and name in self.modules:
            import_module(f"{self._package}.{self.modules[name]}")
        if name not in self._entries:
            self._load()
        return self._entries.get(name)

    def _load(self) -> None:
        """Import what registers entries of names that no table says: a package without a table, installed packages."""
        if self._loaded:
            return
        self._loaded = True
        if self._discover:
            named = set(self.modules.values())
            for found in iter_modules(import_module(self._package).__path__):
                if found.name not in named:
                    import_module(f"{self._package}.{found.name}")
        elif self._package and not self.modules:
            import_module(self._package)
        for point in entry_points(group=self._group):
            self.add(point.name, point.load())

    def __getitem__(self, name: str) -> T:
        entry = self._find(name)
        if entry is None:
            raise UnknownNameError(self.kind, name, list(self))
        return entry

    def __contains__(self, name: object) -> bool:
        if name in self._entries or name in self.modules:
            return True
        self._load()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted({*self._entries, *self.modules}))

    def __len__(self) -> int:
        self._load()
        return len({*self._entries, *self.modules})
