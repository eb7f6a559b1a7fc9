"""Figures inside a page: SVG that takes the page's ink, with a text for who does not see it."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

from simperf.report.style import styled

__all__ = ["inline"]

#: inks of simperf.mplstyle and matplotlib's black, which follow the page's light or dark ink instead
_INK = re.compile(r"#(?:000000|333333|444444|555555)\b")
_PAPER = re.compile(r"#ffffff\b")
_SOFT = re.compile(r"#(?:f0f0f0|eeeeee|f5f5f5)\b", re.IGNORECASE)


def inline(figure: Any, *, name: str, text: str) -> str:
    """A matplotlib figure as part of a page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    name : str
        Unique on the page: identifiers inside the picture begin with it.
    text : str
        What the picture shows, for who does not see it.
    """
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
    svg = _PAPER.sub("var(--paper)", _INK.sub("currentColor", svg))
    svg = _SOFT.sub("var(--soft)", svg)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--font)", svg)
    head = f'<svg role="img" aria-label="{escape(text, quote=True)}" '
    return f'<figure class="picture wide" tabindex="0">{head}{svg[5:]}<figcaption>{escape(text)}</figcaption></figure>'
