"""The look that all pictures share: figures, colours, axes with units, and files that come out the same every time."""

from __future__ import annotations

import io
import os
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.files import write_bytes
from simperf.report.language import WIDE, current
from simperf.units import format_quantity

__all__ = [
    "COLORS",
    "HATCHES",
    "NARROW",
    "SUFFIXES",
    "Scale",
    "byte_scale",
    "columns",
    "figure",
    "figure_width",
    "folded",
    "heading",
    "letters_on",
    "note",
    "save",
    "sized",
    "styled",
    "time_scale",
    "written",
]

_STYLE = Path(__file__).with_name("simperf.mplstyle")

#: Colour of each category of work, wherever it is drawn (Okabe-Ito).
COLORS: Mapping[str, str] = {
    "compute": "#009E73",
    "memory": "#56B4E9",
    "communication": "#CC79A7",
    "copy": "#E69F00",
    "storage": "#0072B2",
    "overhead": "#D55E00",
    "host": "#F0E442",
    "wait": "#FFFFFF",
    "bubble": "#F7F0E0",
    "idle": "#E5E5E5",
}
#: Hatch of each category that colour alone does not tell apart from paper.
HATCHES: Mapping[str, str] = {"wait": "//////", "bubble": "//////", "idle": "...."}
#: Formats that can be written, by the end of the file's name.
SUFFIXES = (".png", ".svg", ".pdf")


class Scale(NamedTuple):
    """Scale of an axis: SI values are divided by `factor` and shown in `unit`."""

    factor: float
    unit: str


def letters_on(color: str) -> str:
    """``"black"`` or ``"white"``, whichever is easier to read on a colour such as ``"#009E73"``.

    By the contrast of the Web Content Accessibility Guidelines 2.2, section 1.4.3; the better has 4.58 at least.

    Examples
    --------
    >>> letters_on("#0072B2"), letters_on("#009E73"), letters_on("#F0E442")
    ('white', 'black', 'black')
    """
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "white"


def time_scale(longest: float) -> Scale:
    """Unit in which times up to `longest` [s] are easily read.

    Examples
    --------
    >>> time_scale(0.06), time_scale(90.0), time_scale(7200.0)
    (Scale(factor=0.001, unit='ms'), Scale(factor=1.0, unit='s'), Scale(factor=60.0, unit='min'))
    """
    steps = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"), (60.0, "min"), (3600.0, "h"))
    limits = (1e-6, 1e-3, 1.0, 600.0, 36000.0)
    return next(
        (Scale(*step) for step, limit in zip(steps, limits, strict=False) if longest < limit), Scale(*steps[-1])
    )


def byte_scale(largest: float) -> Scale:
    """Unit in which sizes up to `largest` [B] are easily read."""
    steps = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    return next((Scale(*step) for step in steps if largest >= step[0]), Scale(1.0, "B"))


def written(value: float, unit: str, *, digits: int = 4) -> str:
    """Text of a quantity in a picture, as `simperf.units.format_quantity` writes it but with the axes' µs."""
    return format_quantity(value, unit, digits=digits).replace(" us", " µs")


@contextmanager
def styled() -> Iterator[None]:
    """Context in which matplotlib draws in simperf's style; the user's own settings come back after it.

    A letter that no font here has is a box in a picture; on a page it stays text, for which the browser has a font.
    """
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        yield


#: width [inch] below which a picture has no room for anything beside its axes
NARROW = 6.0
_WIDTH: ContextVar[float] = ContextVar("width", default=8.0)


@contextmanager
def sized(width: float) -> Iterator[None]:
    """Context in which figures are so wide [inch] unless they say otherwise: narrower for a phone, say."""
    token = _WIDTH.set(width)
    try:
        yield
    finally:
        _WIDTH.reset(token)


def figure_width() -> float:
    """Width of figures that do not say theirs [inch]."""
    return _WIDTH.get()


def figure(draw: Callable[[Any], None], *, width: float | None = None, height: float = 4.5) -> Any:
    """Make a figure in simperf's style.

    Parameters
    ----------
    draw : callable
        Is given the empty `matplotlib.figure.Figure` and draws on it.
    width : float, optional
        Size [inch]; what `sized` says, 8 by default.
    height : float
        Size [inch].

    Returns
    -------
    matplotlib.figure.Figure
        Tied to no window; see `save`.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    language = current()
    fonts: Any = {"font.family": ["DejaVu Sans", *language.fonts]} if language.fonts else {}
    with styled(), rc_context(fonts):
        made = Figure(figsize=(_WIDTH.get() if width is None else width, height))
        draw(made)
        if language.remark:
            note(made.axes[0], language.remark)
    return made


def columns(axes: Any, count: int) -> int:
    """Columns of a legend of `count` entries that stands above a picture, right of the rows' names."""
    return min(count, max(2, int(0.9 * axes.figure.get_figwidth() - 1.2)))


#: letters of a note, and of a heading, in an inch
_LETTERS, _HEADING_LETTERS = 17, 11
#: wide letters in the room of a Latin one
_NARROWER = 0.55


def folded(text: str, made: Any, letters: float) -> str:
    """A text on as many lines as the width of a figure asks for, at so many Latin `letters` an inch."""
    width = made.get_figwidth() * letters * (_NARROWER if WIDE.search(text) else 1.0)
    return textwrap.fill(text, width=max(8, int(width)))


def heading(made: Any, text: str) -> None:
    """Say above a figure what it shows, on as many lines as its width asks for."""
    made.suptitle(folded(text, made, _HEADING_LETTERS), x=0.01, ha="left", fontsize=10, weight="bold")


def note(axes: Any, text: str) -> None:
    """Say below a picture what was aggregated or left out."""
    text = folded(text, axes.figure, _LETTERS)
    shown = axes.figure.get_supxlabel()
    axes.figure.supxlabel(f"{shown}\n{text}" if shown else text, fontsize=7.5, color="#555555", x=0.01, ha="left")


def save(picture: Any, path: str | os.PathLike[str], *, letters: bool = False) -> None:
    """Write a figure whole or not at all, as PNG, SVG or PDF by the end of the name; the same figure, the same bytes.

    Parameters
    ----------
    picture : matplotlib.figure.Figure
    path : path
    letters : bool
        Letters of SVG stay text, which can be searched, instead of outlines.

    Raises
    ------
    InputError
        The name ends otherwise, or the file cannot be written.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        expected = f"a name that ends in {', '.join(SUFFIXES)}"
        raise InputError(Problem("no picture format is known for this name", file=os.fspath(path), expected=expected))
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[suffix]
    stream = io.BytesIO()
    from matplotlib import rc_context

    with styled(), rc_context({"svg.fonttype": "none" if letters else "path"}):
        picture.savefig(stream, format=suffix[1:], metadata=metadata)
    write_bytes(path, stream.getvalue())
