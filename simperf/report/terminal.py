"""From something that rich can draw to text, for a terminal or for a file."""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "bar",
    "clock",
    "columns",
    "fold_comments",
    "fold_message",
    "fold_text",
    "titled",
    "to_lines",
    "to_text",
    "unicode_output",
]

#: columns of a file, a pipe, or a terminal that does not say
WIDTH = 80
#: columns below which lines are longer than the terminal
NARROWEST = 40
#: parts of a character, in eighths
_EIGHTHS = " ▏▎▍▌▋▊▉"


def unicode_output() -> bool:
    """Whether standard output can show block characters."""
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    return encoding.startswith("utf")


def bar(share: float, width: int, *, unicode: bool) -> str:
    """Draw a share [1] as a bar of `width` characters, in eighths of one; what is above 0 shows at least the smallest.

    Examples
    --------
    >>> bar(0.5, 8, unicode=False), bar(0.001, 8, unicode=False), bar(0.0, 8, unicode=False)
    ('####    ', '#       ', '        ')
    >>> bar(0.30, 8, unicode=True), bar(0.001, 8, unicode=True)
    ('██▍     ', '▏       ')
    """
    share = min(max(share, 0.0), 1.0)
    if not unicode:
        return ("#" * max(round(share * width), 1 if share > 0 else 0)).ljust(width)
    eighths = max(round(8 * share * width), 1 if share > 0 else 0)
    drawn = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
    return drawn.ljust(width)


def clock(seconds: float) -> str:
    """A time that is left, in minutes and seconds, or in hours too.

    Examples
    --------
    >>> clock(65.4), clock(7384)
    ('1:05', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def columns() -> int:
    """Width of the terminal; where standard output is none, what ``COLUMNS`` of the environment says, or 80."""
    if sys.stdout.isatty():
        return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)
    said = os.environ.get("COLUMNS", "")
    return max(NARROWEST, int(said)) if said.isascii() and said.isdigit() and len(said) < 5 else WIDTH


def to_lines(view: RenderableType, width: int) -> int:
    """Lines that a rich view takes at a width [characters]."""
    return len(to_text(view, width=width, color=False).splitlines())


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


def fold_comments(text: str) -> str:
    """Text in which comments, lines that begin with ``#``, fold at words where they are longer than the screen."""
    width = columns()
    return "\n".join(_folded(line, width, "#   ") if line.startswith("# ") else line for line in text.split("\n"))


def fold_text(text: str) -> str:
    """Text whose lines fold at words where they are longer than the screen; lists keep their indent."""
    import re

    width, item = columns(), re.compile(r" *(?:[-*] |\d+\. )?")
    lines = ((line, item.match(line)) for line in text.split("\n"))
    return "\n".join(_folded(line, width, " " * len(found[0] if found else "")) for line, found in lines)


def fold_message(text: str) -> str:
    """A message for standard error: on a terminal its lines fold at words; elsewhere each stays a line, for grep."""
    if not sys.stderr.isatty():
        return text
    width = max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)
    return "\n".join(_folded(line, width, " " * (len(line) - len(line.lstrip()) + 4)) for line in text.split("\n"))


def _folded(line: str, width: int, indent: str) -> str:
    """A line, folded at words where it is longer than so many columns; `indent` begins what follows."""
    import textwrap

    if len(line) <= width:
        return line
    kept = {"break_long_words": False, "break_on_hyphens": False, "replace_whitespace": False}
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=indent, **kept))  # type: ignore[arg-type]


def titled(title: str, body: RenderableType) -> list[RenderableType]:
    """A part of an output under its title, after an empty line."""
    from rich.padding import Padding
    from rich.text import Text

    return [Text(""), Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]
