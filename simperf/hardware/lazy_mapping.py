"""A mapping whose items come into being when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar, overload

__all__ = ["LazyMapping"]

T = TypeVar("T")
D = TypeVar("D")


class LazyMapping(Mapping[str, T], Generic[T]):
    """Items by id, made on first use and kept.

    Parameters
    ----------
    kind : str
        What an item is, in the singular.
    size : int
        How many there are.
    keys : callable
        Yields the ids in order.
    make : callable
        Makes the item of an id; raises `LookupError` for an unknown one.
    """

    __slots__ = ("_keys", "_kind", "_made", "_make", "_size")

    def __init__(self, kind: str, size: int, keys: Callable[[], Iterator[str]], make: Callable[[str], T]) -> None:
        self._kind, self._size, self._keys, self._make = kind, size, keys, make
        self._made: dict[str, T] = {}

    def __getitem__(self, key: str) -> T:
        item = self._made.get(key)
        if item is None:
            item = self._made[key] = self._make(key)
        return item

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        try:
            self[key]
        except LookupError:
            return False
        return True

    @overload
    def get(self, key: str, /) -> T | None: ...
    @overload
    def get(self, key: str, /, default: D) -> T | D: ...
    def get(self, key: str, /, default: D | None = None) -> T | D | None:
        """Item of `key`, or `default` if there is none."""
        try:
            return self[key]
        except LookupError:
            return default

    def __iter__(self) -> Iterator[str]:
        return self._keys()

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"<{self._size} {self._kind}s>"
