"""Figures inside a page: SVG, with a text for readers who do not see it, as light or dark as the page."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from simperf.report.html.templating import component
from simperf.report.style import sized, styled

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["inline", "on_page", "printed"]

#: inks of simperf.mplstyle and matplotlib's black, which follow the page's light or dark ink instead
_INK = re.compile(r"#(?:000000|333333|444444|555555)\b")
_PAPER = re.compile(r"#ffffff\b")
_SOFT = re.compile(r"#(?:f0f0f0|eeeeee|f5f5f5)\b", re.IGNORECASE)
#: attributes that hold coordinates, and their digits beyond a hundredth of a point
_PLACES = ("d", "x", "y", "points", "transform")
_DIGITS = re.compile(r"(\.\d\d)\d+")
#: a path of straight lines alone
_STRAIGHT = re.compile(r"M [-\d.]+ [-\d.]+(?: [ML] [-\d.]+ [-\d.]+| z)*")
_FONT = re.compile(r"'DejaVu Sans'[^;\"]*")
#: widths in which a picture is drawn [inch]: the page shows the one that it has room for
_WIDTHS = {"desk": 8.0, "phone": 4.2}
#: dots an inch of what is there for paper only
_DPI = 150
#: colours of that
_COLOURS = 64
_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"


def inline(figure: Any, *, name: str, text: str) -> str:
    """A matplotlib figure as part of a page whose inks it takes, and as wide as the page makes it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    name : str
        Unique on the page: identifiers inside the picture begin with it.
    text : str
        What the picture shows, for readers who do not see it.
    """
    svg = _PAPER.sub("var(--paper)", _INK.sub("currentColor", _svg(figure, name, text)))
    return str(component("figure", [_drawn(_SOFT.sub("var(--soft)", svg))], text, "picture wide"))


def on_page(draw: Callable[[], Any], *, name: str, text: str) -> Markup:
    """A figure as part of a report, drawn once for a desk and once for a phone, and as wide as the page.

    In a dark page all its colours are turned over together, so that what could be distinguished still can.

    Parameters
    ----------
    draw : callable
        Makes a figure, as wide as `simperf.report.style.sized` says.
    name, text : str
        As those of `inline`.
    """
    drawings = []
    for kind, width in _WIDTHS.items():
        with sized(width):
            drawings.append(_drawn(_svg(draw(), f"{name}-{kind}", text, kind)))
    return component("figure", drawings, text, "picture turned")


def printed(figure: Any, *, text: str) -> Markup:
    """A matplotlib figure for paper only: dots instead of lines, which are many where a run is long."""
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    data = base64.b64encode(_indexed(stream.getvalue())).decode("ascii")
    return component("printed", text, data)


def _short_path(path: str) -> str:
    """A path of straight lines without the points that change nothing: twice the same, or on the way along an axis.

    Examples
    --------
    >>> _short_path("M 1 1 L 1 2 L 1 2 L 1 3 L 4 3 L 2 3 z"), _short_path("M 1 1 L 1 1")
    ('M 1 1 L 1 3 L 4 3 L 2 3 z', 'M 1 1 L 1 1')
    """
    words = path.split()
    if not _STRAIGHT.fullmatch(" ".join(words)):
        return path
    kept: list[tuple[str, str, str]] = []
    place = 0
    while place < len(words):
        if words[place] == "z":
            kept.append(("z", "", ""))
            place += 1
            continue
        letter, x, y = words[place : place + 3]
        place += 3
        if letter == "L" and kept[-1][0] == "L" and kept[-1][1:] == (x, y):
            continue
        if letter == "L" and len(kept) > 1 and kept[-1][0] == "L" and kept[-2][0] != "z":
            (_, x0, y0), (_, x1, y1) = kept[-2:]
            if (x0 == x1 == x and _between(y0, y1, y)) or (y0 == y1 == y and _between(x0, x1, x)):
                kept.pop()
        kept.append((letter, x, y))
    return " ".join(f"{letter} {x} {y}" if x else letter for letter, x, y in kept)


def _between(first: str, middle: str, last: str) -> bool:
    return float(first) <= float(middle) <= float(last) or float(first) >= float(middle) >= float(last)


def _indexed(png: bytes) -> bytes:
    """A PNG of few colours, which takes a third of the bytes; inks and the steps between them are all that there is."""
    from PIL import Image

    stream = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(_COLOURS).save(stream, format="png", optimize=True)
    return stream.getvalue()


def _drawn(svg: str) -> Markup:
    from markupsafe import Markup

    return Markup(svg)


def _svg(figure: Any, name: str, text: str, kind: str = "") -> str:
    """SVG that is as wide as its place, its identifiers beginning with `name`, its words in the page's font."""
    from matplotlib import rc_context

    stream = io.StringIO()
    with styled(), rc_context({"svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    root = ElementTree.fromstring(stream.getvalue())
    for parent in root.iter():
        for child in [one for one in parent if one.tag == f"{{{_SVG}}}metadata"]:
            parent.remove(child)
    for each in root.iter():
        for key, value in each.attrib.items():
            if key == "id":
                each.set(key, f"{name}-{value}")
            elif key in (f"{{{_LINK}}}href", "href"):
                each.set(key, value.replace("#", f"#{name}-", 1))
            elif "url(#" in value:
                each.set(key, value.replace("url(#", f"url(#{name}-"))
            elif key in _PLACES:
                places = _DIGITS.sub(r"\1", value)
                each.set(key, _short_path(places) if key == "d" else places)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    kept = {key: value for key, value in root.attrib.items() if key != "height"}
    root.attrib.clear()
    # as wide as the page, and not much wider than it was drawn
    given = {"role": "img", "aria-label": text, "style": f"max-width: {1.15 * width:.0f}pt"}
    root.attrib.update(given | ({"class": kind} if kind else {}) | kept)
    made = ElementTree.tostring(root, encoding="unicode")
    for space in (f' xmlns="{_SVG}"', f' xmlns:xlink="{_LINK}"'):  # which a page knows
        made = made.replace(space, "", 1)
    return _FONT.sub("var(--font)", made)
