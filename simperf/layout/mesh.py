"""A mesh of ranks: coordinates by dimension, and process groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from simperf.errors import InputError, Problem, UnknownNameError

__all__ = ["Mesh"]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Ranks 0 to n - 1 in a grid of named dimensions, the innermost first.

    Neighbouring ranks differ in the first dimension: rank = c0 + n0 (c1 + n1 (c2 + ...)). Megatron-LM's ``order`` names
    the innermost dimension first, as here; `torch.distributed.DeviceMesh` names the outermost first.

    Parameters
    ----------
    dimensions : tuple of str
        Names, innermost first.
    sizes : tuple of int
        Ranks along each dimension, at least 1.

    Raises
    ------
    InputError
        No dimension, two of one name, not a size for each, or a size below 1.

    Examples
    --------
    >>> mesh = Mesh(("tp", "dp"), (2, 4))
    >>> mesh.size, mesh.coordinates(5), mesh.rank({"tp": 1, "dp": 2})
    (8, {'tp': 1, 'dp': 2}, 5)
    >>> mesh.places("dp")
    [0, 0, 1, 1, 2, 2, 3, 3]
    >>> mesh.groups("dp")
    ((0, 2, 4, 6), (1, 3, 5, 7))
    """

    dimensions: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        problems = []
        if not self.dimensions or len(self.dimensions) != len(self.sizes):
            message = f"{len(self.dimensions)} dimensions have {len(self.sizes)} sizes"
            problems.append(Problem(message, key="sizes", expected="one dimension or more, and a size for each"))
        if len(set(self.dimensions)) < len(self.dimensions):
            problems.append(
                Problem(
                    "two dimensions have one name",
                    key="dimensions",
                    value=", ".join(self.dimensions),
                    expected="a name of its own for each",
                )
            )
        problems += [
            Problem("a whole number of ranks, 1 or more, is expected", key=name, value=repr(size))
            for name, size in zip(self.dimensions, self.sizes, strict=False)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1
        ]
        if problems:
            raise InputError(problems)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return math.prod(self.sizes)

    def coordinates(self, rank: int) -> dict[str, int]:
        """Place of a rank along each dimension, from 0.

        Raises
        ------
        InputError
            There is no such rank.
        """
        rest, found = self._known(rank), {}
        for name, size in zip(self.dimensions, self.sizes, strict=True):
            rest, found[name] = divmod(rest, size)
        return found

    def places(self, dimension: str) -> list[int]:
        """Place of each rank along a dimension.

        Raises
        ------
        UnknownNameError
            No such dimension.
        """
        index = self._index(dimension)
        stride, size = self._strides()[index], self.sizes[index]
        return [rank // stride % size for rank in range(self.size)]

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """The rank at a place; dimensions that are left out count from 0.

        Raises
        ------
        UnknownNameError
            No such dimension.
        InputError
            A coordinate outside of its dimension.
        """
        found = 0
        strides = self._strides()
        for name, place in coordinates.items():
            index = self._index(name)
            if not 0 <= place < self.sizes[index]:
                expected = f"0 to {self.sizes[index] - 1}"
                raise InputError(Problem("outside of the mesh", key=name, value=str(place), expected=expected))
            found += place * strides[index]
        return found

    def groups(self, *dimensions: str) -> tuple[tuple[int, ...], ...]:
        """Process groups along one dimension or more: ranks whose other coordinates are equal.

        Parameters
        ----------
        *dimensions : str
            In any order; none gives groups of one rank.

        Returns
        -------
        tuple of tuple of int
            The groups in the order of their first ranks, the ranks of each in ascending order.

        Raises
        ------
        UnknownNameError
            No such dimension.
        """
        inside = self._offsets({self._index(name) for name in dimensions})
        others = self._offsets(set(range(len(self.sizes))) - {self._index(name) for name in dimensions})
        return tuple(tuple(first + offset for offset in inside) for first in others)

    def group(self, rank: int, *dimensions: str) -> tuple[int, ...]:
        """The process group of a rank along one dimension or more, in ascending order."""
        chosen = {self._index(name) for name in dimensions}
        place, strides = self.coordinates(rank), self._strides()
        first = rank - sum(place[self.dimensions[index]] * strides[index] for index in chosen)
        return tuple(first + offset for offset in self._offsets(chosen))

    def _index(self, dimension: str) -> int:
        if dimension not in self.dimensions:
            raise UnknownNameError("dimension of the mesh", dimension, self.dimensions)
        return self.dimensions.index(dimension)

    def _known(self, rank: int) -> int:
        if not 0 <= rank < self.size:
            raise InputError(Problem("no such rank", key="rank", value=str(rank), expected=f"0 to {self.size - 1}"))
        return rank

    def _strides(self) -> list[int]:
        """Distance of neighbours along each dimension, in ranks."""
        return [math.prod(self.sizes[:index]) for index in range(len(self.sizes))]

    def _offsets(self, chosen: set[int]) -> list[int]:
        """Ranks at all places along the `chosen` dimensions and at 0 along the others, in ascending order."""
        strides, found = self._strides(), [0]
        for index in sorted(chosen):
            found = [base + place * strides[index] for place in range(self.sizes[index]) for base in found]
        return found
