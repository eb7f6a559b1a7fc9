"""Curves that lessons draw beside the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simperf.report.style import figure

__all__ = ["draw_curves"]

_LINES = (("#0072B2", "-"), ("#E69F00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))


def draw_curves(
    curves: Mapping[str, Iterable[tuple[float, float]]],
    *,
    x: str,
    y: str,
    here: tuple[float, float] | None = None,
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
            axes.plot(across, up, label=name, color=color, ls=line, marker="o", ms=3)
        for index, (name, value) in enumerate((marks or {}).items()):
            axes.axvline(value, color="#555555", ls=("--", ":")[index % 2], lw=1, label=name)
        if here is not None:
            axes.plot(*here, marker="D", ms=9, color="#D55E00", ls="none", label="the sliders' choice", zorder=5)
        for axis in log:
            getattr(axes, f"set_{axis}scale")("log")
            getattr(axes, f"{axis}axis").set_major_formatter(lambda value, _: f"{value:g}")
        if "y" not in log:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.legend(fontsize=8)

    return figure(fill, height=3.6)
