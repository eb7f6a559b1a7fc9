"""Times of a collective by size: rows as nccl-tests prints them, with their pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from simperf.collectives.bench import Row
from simperf.hardware import Machine
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.units import format_quantity

__all__ = ["CollectiveTable"]

_COLUMNS = ("algorithm", "choice", "nbytes", "time", "algbw", "busbw", "floor", "link", "load", "method", "channels")


@dataclass(frozen=True, eq=False)
class CollectiveTable(Sequence[Row]):
    """A row a size, in the order in which the sizes were given.

    Parameters
    ----------
    name : str
        Of the collective.
    algorithm : str
    machine : Machine
        Where it ran.
    ranks : tuple of str
        The GPUs that took part.
    rows : tuple of Row
    """

    name: str
    algorithm: str
    machine: Machine
    ranks: tuple[str, ...]
    rows: tuple[Row, ...]

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, index: int | slice) -> Row | tuple[Row, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def title(self) -> str:
        """The collective, and where it ran, in words."""
        return f"{self.name}: {len(self.ranks)} ranks on {self.machine.name}"

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw bus bandwidth over message size, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        pictures = report_module("collective_pictures")
        return drawn(pictures.draw_bandwidths({self.algorithm: self.rows}, title=self.title), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: bandwidth by size, what was chosen, the load of the links.

        Raises
        ------
        InputError
            The name does not end in ``.html``, or the file cannot be written.
        """
        question = f"How long does {self.name} take among {self.title.partition(': ')[2]}, by size?"
        rows, told = {self.algorithm: self.rows}, {"title": self.title, "question": question}
        write_page(path, lambda pages: pages.collective_report(rows, self.machine, **told))

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`, which the extra ``tables`` brings; in SI units."""
        return data_frame(({key: getattr(row, key) for key in _COLUMNS} for row in self.rows), _COLUMNS)

    def __repr__(self) -> str:
        return f"<CollectiveTable {self.title}, {self.algorithm}, {len(self)} sizes>"

    def _repr_html_(self) -> str:
        size = report_module("collectives").size_text
        header = ["size", "choice", "time", "algbw", "busbw"]
        rows = [
            [
                size(row.nbytes),
                row.choice or "idealised",
                format_quantity(row.time, "s"),
                format_quantity(row.algbw, "B/s"),
                format_quantity(row.busbw, "B/s"),
            ]
            for row in self.rows
        ]
        return html_table(header, rows, caption=f"{self.title}, {self.algorithm}")
