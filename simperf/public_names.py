"""Public names of a package, each loaded from its module on first use, so that a run imports only what it simulates."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["public_names"]


def public_names(
    package: str, modules: Mapping[str, Iterable[str]], *, shared: bool = False
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__`` (PEP 562).

    Parameters
    ----------
    package : str
        Its ``__name__``.
    modules : mapping of str to iterable of str
        The names that each of its modules provides, by the module's name within the package.
    shared : bool
        Names are those of other modules of the package too, which stay importable.

    Examples
    --------
    A package ``shop`` whose ``__init__`` has the line
    ``__getattr__, __dir__ = public_names(__name__, {"prices": ("Price", "total")})``
    gives ``shop.total`` without having loaded ``shop.prices`` before.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    class Package(ModuleType):
        """A package in which a name that is also one of its modules' stays what the module provides."""

        def __setattr__(self, name: str, value: Any) -> None:
            if name in homes and isinstance(value, ModuleType):
                if value.__name__ != f"{package}.{homes[name]}":
                    return
                value = getattr(value, name)
            super().__setattr__(name, value)

    if shared or not homes.keys().isdisjoint(modules):
        sys.modules[package].__class__ = Package

    def load(name: str) -> Any:
        if name not in homes:
            from simperf.errors import nearest

            raise AttributeError(f"module {package!r} has no name {name!r}{nearest(name, homes)}")
        found = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sorted(homes)
