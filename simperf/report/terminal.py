"""From something that rich can draw to text, for a terminal or for a file."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["bar", "columns", "plain_grid", "titled", "to_text", "unicode_output"]

#: columns of a file, a pipe, or a terminal that does not say
WIDTH = 80


def unicode_output() -> bool:
    """Whether standard output can show block characters."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return encoding.startswith("utf")


def bar(share: float, width: int, *, unicode: bool) -> str:
    """Draw a share [1] as a bar of `width` characters; what is above 0 shows at least one.

    Examples
    --------
    >>> bar(0.5, 8, unicode=False), bar(0.001, 8, unicode=False), bar(0.0, 8, unicode=False)
    ('####    ', '#       ', '        ')
    """
    filled = max(round(share * width), 1 if share > 0 else 0)
    return ("█" if unicode else "#") * min(filled, width) + " " * max(0, width - filled)


def columns() -> int:
    """Width of the terminal, or 80 where standard output is none."""
    return max(40, shutil.get_terminal_size((WIDTH, 24)).columns) if sys.stdout.isatty() else WIDTH


def to_text(view: RenderableType, *, width: int | None = None, color: bool | None = None) -> str:
    """Text of a rich view, without blanks at the ends of lines.

    Parameters
    ----------
    view : rich renderable
    width : int, optional
        Columns; default: the terminal's, or 80 where standard output is none.
    color : bool, optional
        Whether to write colour codes; default: on a terminal, unless the environment sets ``NO_COLOR``
        (no-color.org).
    """
    from rich.console import Console

    terminal = sys.stdout.isatty()
    if width is None:
        width = columns()
    if color is None:
        color = terminal and not os.environ.get("NO_COLOR")
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(view)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def plain_grid() -> Table:
    """A table without lines, whose first column is not broken."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    return grid


def titled(title: str, body: RenderableType) -> list[RenderableType]:
    """A part of an output under its title, after an empty line."""
    from rich.padding import Padding
    from rich.text import Text

    return [Text(""), Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]
