"""A table that fits the width that there is: cells fold at words, columns become lines, and no word is broken."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from simperf.report.phrases import numbers

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table
    from rich.text import Text

__all__ = ["FittedTable"]

#: characters between columns
_GAP = 2
#: a folded column of text keeps so many characters, if it has them
_NARROW = 18
#: rows that may become columns
_TURNED = 4


@dataclass(frozen=True, slots=True)
class FittedTable:
    """Cells in columns as a rich renderable: numbers to the right, text to the left.

    Where the columns are wider than the screen, text folds at words; then columns with one value are written once,
    above the table; then rows become columns, or each row is written as lines of ``name: value``.

    Parameters
    ----------
    header : sequence of str
        Names of the columns; empty for none.
    rows : sequence of sequence of str or rich.text.Text
    left : collection of str
        Columns of numbers that are aligned to the left.
    whole : collection of int
        Columns of text that do not fold.
    heads : int
        First columns that name a row where it is written as lines.
    bold : collection of int
        Rows of which the first cell is bold.
    gap : int
        Characters between columns.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | Text]]
    left: Collection[str] = ()
    whole: Collection[int] = ()
    heads: int = 1
    bold: Collection[int] = ()
    gap: int = _GAP

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table in the layout that fits; called by rich."""
        if self.rows or self.header:
            yield from self.views(options.max_width)

    def views(self, width: int) -> Iterator[Table | Text]:
        """Parts of the table at a width [characters]."""
        from rich.text import Text

        if (sizes := self.sizes(width)) is not None:
            yield self._table(sizes)
            return
        fixed = self._fixed()
        if fixed:
            rest = [index for index in range(self._count) if index not in fixed]
            short = self._only(rest)
            if (sizes := short.sizes(width)) is not None:
                yield Text("\n".join(_folded([self._pair(index, 0) for index in fixed], width, "in every row: ", "  ")))
                yield short._table(sizes)
                return
        if self.header and len(self.rows) <= _TURNED:
            turned = self._turned()
            if (sizes := turned.sizes(width)) is not None:
                yield turned._table(sizes)
                return
        for place in range(len(self.rows)):
            yield from self._lines(place, width)

    @property
    def _count(self) -> int:
        return len(self.header) or max((len(row) for row in self.rows), default=0)

    def _cells(self, index: int) -> list[str]:
        return [str(row[index]) if index < len(row) else "" for row in self.rows]

    def _right(self, index: int) -> bool:
        name = self.header[index] if self.header else ""
        cells = self._cells(index)
        return (not name or name not in self.left) and numbers(cells) and (bool(self.header) or index > 0)

    def sizes(self, width: int) -> list[int] | None:
        """Width of each column so that all fit at a width and no word is broken; None if they do not [characters]."""
        widest, bodies, least = [], [], []
        for index in range(self._count):
            cells = self._cells(index)
            lines = [len(line) for cell in cells for line in cell.split("\n")]
            words = max((len(word) for cell in cells for word in cell.split()), default=0)
            name = self.header[index] if self.header else ""
            head = max((len(word) for word in (name.split("\n") if "\n" in name else name.split())), default=0)
            most = max([*lines, *(len(line) for line in name.split("\n"))], default=0)
            rigid = self._right(index) or index in self.whole
            widest.append(most)
            bodies.append(max(lines, default=0))
            least.append(max(head, max(lines, default=0) if rigid else max(words, min(most, _NARROW))))
        room = width - self.gap * (self._count - 1)
        if sum(least) > room:
            return None
        # cells come before names of columns, which fold more easily
        bodies = [max(body, size) for body, size in zip(bodies, least, strict=True)]
        return _spread(_spread(least, bodies, room), widest, room)

    def _table(self, sizes: Sequence[int]) -> Table:
        from rich.table import Table
        from rich.text import Text

        grid = Table(box=None, padding=(0, self.gap, 0, 0), pad_edge=False, show_header=bool(self.header))
        for index, size in enumerate(sizes):
            name = self.header[index] if self.header else ""
            grid.add_column(Text(name, style="bold"), justify="right" if self._right(index) else "left", width=size)
        for place, row in enumerate(self.rows):
            cells = [Text(cell) if isinstance(cell, str) else cell for cell in row]
            if place in self.bold:
                cells[0] = Text(str(cells[0]), style="bold")
            grid.add_row(*cells)
        return grid

    def _fixed(self) -> list[int]:
        """Columns that say the same in every row, where there are several."""
        if not self.header or len(self.rows) < 2:
            return []
        return [index for index in range(self.heads, self._count) if len(set(self._cells(index))) == 1]

    def _only(self, kept: Sequence[int]) -> FittedTable:
        header, rows = [self.header[index] for index in kept], [[row[index] for index in kept] for row in self.rows]
        whole = [place for place, index in enumerate(kept) if index in self.whole]
        return FittedTable(header, rows, self.left, whole, self.heads, self.bold, self.gap)

    def _turned(self) -> FittedTable:
        """Rows as columns."""
        names = [str(row[0]) for row in self.rows]
        rows = [[self.header[index], *self._cells(index)] for index in range(1, self._count)]
        return FittedTable([self.header[0], *names], rows, left=names, gap=self.gap)

    def _pair(self, index: int, place: int) -> str:
        cell = str(self.rows[place][index]) if index < len(self.rows[place]) else ""
        name = self.header[index].replace("\n", " ") if self.header else ""
        return " ".join(f"{name}: {cell}".split() if name else cell.split())

    def _lines(self, place: int, width: int) -> Iterator[Text]:
        """A row as lines: its head, and below it what else there is."""
        from rich.text import Text

        heads = range(min(self.heads, self._count))
        bare = self.heads == 1
        head = [str(self.rows[place][0])] if bare else [self._pair(index, place) for index in heads]
        yield Text("\n".join(_folded(head, width, "", "  ")), style="bold" if place in self.bold else "")
        pairs = [self._pair(index, place) for index in range(len(heads), self._count)]
        said = [pair for index, pair in enumerate(pairs, len(heads)) if self._cells(index)[place]]
        if said:
            yield Text("\n".join(_folded(said, width, "  ", "  ")))


def _folded(parts: Sequence[str], width: int, first: str, then: str) -> list[str]:
    """Parts in lines of a width, three spaces apart; a part that fits in a line is not broken."""
    import textwrap

    lines, line = [], first
    for part in parts:
        lead = "" if line in (first, then) else "   "
        if len(line) + len(lead) + len(part) <= width:
            line += lead + part
            continue
        if line not in (first, then):
            lines.append(line)
            line = then
        if len(line) + len(part) > width:
            *before, line = textwrap.wrap(
                part, width, initial_indent=line, subsequent_indent=then + "  ", break_on_hyphens=False
            )
            lines += before
        else:
            line += part
    return [*lines, line] if line.strip() else lines


def _spread(sizes: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Sizes that grow towards what is wanted as far as there is room: who wants little gets all of it."""
    found, spare = list(sizes), room - sum(sizes)
    order = sorted(range(len(found)), key=lambda index: wanted[index] - found[index])
    for place, index in enumerate(order):
        given = max(0, min(wanted[index] - found[index], spare // (len(order) - place)))
        found[index] += given
        spare -= given
    return found
