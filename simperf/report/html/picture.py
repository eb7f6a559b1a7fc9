"""Figures inside a page: SVG, with a text for who does not see it, as light or dark as the page."""

from __future__ import annotations

import base64
import io
import re
from html import escape
from typing import Any

from simperf.report.style import styled

__all__ = ["inline", "on_page", "printed"]

#: inks of simperf.mplstyle and matplotlib's black, which follow the page's light or dark ink instead
_INK = re.compile(r"#(?:000000|333333|444444|555555)\b")
_PAPER = re.compile(r"#ffffff\b")
_SOFT = re.compile(r"#(?:f0f0f0|eeeeee|f5f5f5)\b", re.IGNORECASE)
#: attributes that hold coordinates, and their digits beyond a hundredth of a point
_PLACES = re.compile(r'\b(?:d|x|y|points|transform)="[^"]*"')
_DIGITS = re.compile(r"(\.\d\d)\d+")
_WIDTH = re.compile(r'<svg[^>]*\bwidth="([\d.]+)pt"')
#: share of its own width below which a picture of a report is not drawn
_LEAST = 0.72
#: dots an inch of what is there for paper only
_DPI = 150


def inline(figure: Any, *, name: str, text: str) -> str:
    """A matplotlib figure as part of a page whose inks it takes, and as wide as the page makes it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    name : str
        Unique on the page: identifiers inside the picture begin with it.
    text : str
        What the picture shows, for who does not see it.
    """
    svg = _PAPER.sub("var(--paper)", _INK.sub("currentColor", _svg(figure, name)))
    return _figure(_SOFT.sub("var(--soft)", svg), text, "picture wide")


def on_page(figure: Any, *, name: str, text: str) -> str:
    """A matplotlib figure as part of a report; parameters as those of `inline`.

    In a dark page all its colours are turned over together, so that what could be told apart still can. It is never
    drawn so small that its words cannot be read; where there is no room it scrolls.
    """
    svg = _svg(figure, name)
    width = _WIDTH.search(svg)
    style = f'style="min-width: {float(width[1]) * _LEAST:.0f}pt" ' if width else ""
    return _figure(svg, text, "picture turned wide", style)


def printed(figure: Any, *, text: str) -> str:
    """A matplotlib figure for paper only: dots instead of lines, which are many where a run is long."""
    stream = io.BytesIO()
    with styled():
        figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<figure class="paper"><img alt="{escape(text, quote=True)}" src="data:image/png;base64,{data}"></figure>'


def _svg(figure: Any, name: str) -> str:
    """SVG without a head, its identifiers beginning with `name`, its words in the page's font."""
    stream = io.StringIO()
    with styled():
        from matplotlib import rc_context

        with rc_context({"svg.fonttype": "none"}):
            figure.savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = _PLACES.sub(lambda found: _DIGITS.sub(r"\1", found[0]), svg)
    return re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)


def _figure(svg: str, text: str, kind: str, style: str = "") -> str:
    head = f'<svg role="img" {style}aria-label="{escape(text, quote=True)}" '
    return f'<figure class="{kind}" tabindex="0">{head}{svg[5:]}<figcaption>{escape(text)}</figcaption></figure>'
