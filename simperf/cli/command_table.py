"""Commands by name, of which only the one that is called is imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from simperf.cli.help import CommandApp

__all__ = ["CommandTable", "lazy_group"]


class CommandTable(MutableMapping[str, Any]):
    """Commands of a group, each made of its function or its `typer.Typer` when it is first asked for.

    Parameters
    ----------
    homes : mapping of str to (str, str)
        Module, and name in it, by the command's name, in the order in which help lists them.
    """

    def __init__(self, homes: Mapping[str, tuple[str, str]]) -> None:
        self._homes = dict(homes)
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            module, attribute = self._homes[name]
            self._made[name] = _command(name, getattr(import_module(module), attribute))
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._homes.setdefault(name, ("", ""))
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._homes[name]
        self._made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def _command(name: str, found: Any) -> Any:
    """The command that typer makes of a function or of an app with commands of its own."""
    app = CommandApp("")
    app.callback()(lambda: None)  # a group, however few commands it has
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        app.command(name)(found)
    return typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]


def lazy_group(homes: Mapping[str, tuple[str, str]], group: type[TyperGroup] = TyperGroup) -> type[TyperGroup]:
    """A group for ``typer.Typer(cls=...)`` whose commands are those of a `CommandTable`; a subclass of `group`."""

    class LazyGroup(group):  # type: ignore[misc,valid-type]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.commands = CommandTable(homes)

    return LazyGroup
