"""Pictures of lessons: curves beside the timeline, and any figure as part of a lesson's page."""

from __future__ import annotations

import atexit
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

from simperf.report.html.picture import inline
from simperf.report.language import named, say, spoken
from simperf.report.style import figure, sized

__all__ = ["draw_curves", "draw_points", "picture"]

#: widths of a picture [inch]: one for each is drawn, and the page shows the one that it has room for
_WIDTHS = {"wide": 8.0, "narrow": 4.2}
_ONCE = 4.8
#: fonts are the reader's; in a dark page all colours are turned over together
_STYLE = """<style>
.simperf-picture { --paper: #fff; --soft: #f0f0f0; --font: system-ui, sans-serif; }
.simperf-picture figure { margin: 0; }
.simperf-picture svg { color: #000; width: 100%; height: auto; max-width: 60rem; }
.simperf-picture text { white-space: pre; }
.dark .simperf-picture svg { filter: invert(1) hue-rotate(180deg); }
.simperf-picture figcaption { font-size: 0.9rem; }
.simperf-once svg { max-width: 44rem; }
.simperf-narrow { display: none; }
@media (max-width: 40rem) { .simperf-wide { display: none; } .simperf-narrow { display: block; } }
h1, h2 { overflow-wrap: anywhere; }
</style>"""
#: held while a picture is drawn
_DRAWING = Lock()
#: how long the end of the interpreter waits for it [s]
_LONGEST = 10.0
_ending = Event()
_LINES = (("#0072B2", "-"), ("#E69F00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))


def draw_curves(
    curves: Mapping[str, Iterable[tuple[float, float]]],
    *,
    x: str,
    y: str,
    here: tuple[float, float] | None = None,
    mine: tuple[float, float] | None = None,
    marks: Mapping[str, float] | None = None,
    log: str = "xy",
) -> Any:
    """Draw lines over a common axis, with the reader's own choice as a dot.

    Parameters
    ----------
    curves : mapping of str to points
        Name to points, in the units that the axes' labels say.
    x, y : str
        Labels of the axes, with units.
    here : pair of float, optional
        What the sliders chose.
    mine : pair of float, optional
        What the reader predicted.
    marks : mapping of str to float, optional
        Vertical lines by name, such as what a formula says.
    log : str
        Which axes are logarithmic: ``"xy"``, ``"x"``, ``"y"`` or ``""``.

    Returns
    -------
    matplotlib.figure.Figure
    """

    def fill(made: Any) -> None:
        axes = made.subplots()
        for index, (name, points) in enumerate(curves.items()):
            color, line = _LINES[index % len(_LINES)]
            across, up = zip(*points, strict=True)
            axes.plot(across, up, label=named(name), color=color, ls=line, marker="o", ms=3)
        for index, (name, value) in enumerate((marks or {}).items()):
            axes.axvline(value, color="#555555", ls=("--", ":")[index % 2], lw=1, label=named(name))
        if here is not None:
            axes.plot(*here, marker="D", ms=9, color="#D55E00", ls="none", label=say("the sliders' choice"), zorder=5)
        if mine is not None:
            axes.plot(*mine, marker="*", ms=12, color="#CC79A7", ls="none", label=say("your prediction"), zorder=4)
        for axis in log:
            getattr(axes, f"set_{axis}scale")("log")
            getattr(axes, f"{axis}axis").set_major_formatter(lambda value, _: f"{value:g}")
        if "y" not in log:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(say(x))
        axes.set_ylabel(say(y))
        axes.legend(fontsize=8)

    return figure(fill, height=3.6)


def draw_points(
    groups: Mapping[str, Iterable[tuple[float, float]]],
    *,
    x: str,
    y: str,
    here: tuple[float, float] | None = None,
    marks: Mapping[str, float] | None = None,
) -> Any:
    """Draw points over two linear axes, with the reader's own choice as a diamond and the lowest one in a ring.

    Parameters
    ----------
    groups : mapping of str to points
        Name to points, in the units that the axes' labels say.
    x, y : str
        Labels of the axes, with units.
    here : pair of float, optional
        What the sliders chose.
    marks : mapping of str to float, optional
        Vertical lines by name, such as a limit.

    Returns
    -------
    matplotlib.figure.Figure
    """

    def fill(made: Any) -> None:
        axes = made.subplots()
        known = [point for points in groups.values() for point in points]
        for (name, points), mark, (color, _) in zip(groups.items(), "os^v", _LINES, strict=False):
            axes.plot(*zip(*points, strict=True), label=named(name), color=color, marker=mark, ms=6, ls="none")
        lowest = min(known, key=lambda point: point[1])
        axes.plot(*lowest, marker="o", ms=14, mfc="none", mec="#009E73", mew=2, ls="none", label=say("the fastest"))
        for name, value in (marks or {}).items():
            axes.axvline(value, color="#555555", ls="--", lw=1, label=named(name))
        if here is not None:
            axes.plot(*here, marker="D", ms=9, color="#D55E00", ls="none", label=say("the sliders' choice"), zorder=5)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(say(x))
        axes.set_ylabel(say(y))
        axes.legend(fontsize=8)

    return figure(fill, height=3.6)


def picture(
    draw: Callable[[], Any], language: str, *, name: str, text: str, words: Mapping[str, str], once: bool = False
) -> str:
    """Drawing of `draw` as HTML: once for a wide page and once for a phone's.

    Parameters
    ----------
    draw : callable
        Makes a figure as wide as `simperf.report.style.sized` says.
    language : str
        Of the words in it.
    name : str
        Unique on the page.
    text : str
        What is to be seen, which stands below.
    words : mapping of str to str
        More words than the catalogue of the language has.
    once : bool
        Draw it once only, for both: quicker, and smaller than a wide page would have room for.
    """
    parts = [_STYLE]
    for kind, width in ({"once": _ONCE} if once else _WIDTHS).items():
        with _drawing(), sized(width), spoken(language, words=words, drawn=False):
            made = _wrapped(draw())
            inside = inline(made, name=f"{name}-{kind}", text=text)
        parts.append(f'<div class="simperf-picture simperf-{kind}" lang="{language}">{inside}</div>')
    return "".join(parts)


def _wrapped(made: Any) -> Any:
    """The figure with the names of its axes in as many lines as they need."""
    letters = int((made.get_figwidth() - 1.4) / 0.075)
    for axes in made.axes:
        axes.set_xlabel(textwrap.fill(axes.get_xlabel(), letters))
    return made


@contextmanager
def _drawing() -> Iterator[None]:
    """One picture at a time, and none from when the interpreter ends.

    A page's thread is a daemon. The end of the interpreter ends it at its next step in Python, and with it the whole
    process, by an abort, where C++ code of Matplotlib called that step.
    """
    if _ending.is_set():  # it keeps the lock
        raise SystemExit
    with _DRAWING:
        if _ending.is_set():
            raise SystemExit
        yield


def _end() -> None:
    _ending.set()
    _DRAWING.acquire(timeout=_LONGEST)


atexit.register(_end)
