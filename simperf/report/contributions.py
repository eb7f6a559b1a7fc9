"""Pictures of what contributes to a number: changes of a what-if question, parts of a difference, influences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from simperf.report.language import named, say
from simperf.report.style import NARROW, Scale, figure, heading, note, time_scale, written
from simperf.units import format_quantity

if TYPE_CHECKING:
    from simperf.study.explain import Explained
    from simperf.study.sensitivity import Sensitivity
    from simperf.study.what_if import WhatIf

__all__ = ["draw_differences", "draw_influences", "draw_what_if"]

_MORE, _LESS, _WHOLE = "#D55E00", "#0072B2", "#555555"
#: parts that are drawn
_MOST = 20


class _Part(NamedTuple):
    """A bar: its name, its signed value in SI units, its colour, and half the width of its interval."""

    name: str
    value: float
    color: str
    margin: float = 0.0


def draw_what_if(found: WhatIf) -> Any:
    """Bars of what each change contributes, of their interaction, and of all changes together."""
    parts = [_signed(one.name, one.change) for one in found.alone]
    if len(found.alone) > 1:
        parts.append(_signed(say("interaction"), found.interaction))
    whole = [_Part(say("together"), found.together.change, _WHOLE)] if len(found.alone) > 1 else []
    title = f"{found.result.name}: {say(found.metric)} {written(found.base.value, found.unit)}"
    if found.unit != "1":
        title += f", {say(found.together.name)}: {written(found.together.value, found.unit)}"
    return _bars(parts, whole, title, say("change of {}").format(say(found.metric)), found.unit)


def draw_differences(found: Explained) -> Any:
    """Bars of the parts of the difference between a recorded step and the simulated one."""
    parts = [_signed(one.part, one.difference) for one in found.parts]
    whole = [_Part(say("a step"), found.difference, _WHOLE)]
    title = say("Recorded {}, simulated {}").format(written(found.recorded, "s"), written(found.simulated, "s"))
    return _bars(parts, whole, title, say("recorded less simulated"), "s")


def draw_influences(found: Sensitivity) -> Any:
    """Bars of the influences of parameters, with their 95 % intervals."""
    parts = [_Part(one.key, one.total, _WHOLE, one.margin) for one in found.influences]
    morris = found.method == "morris"
    what = say("mean effect (mu*)") if morris else say("share of the variance (ST)")
    title = say("Influence on {}: {}, {} runs").format(say(found.metric), found.method.capitalize(), found.runs)
    return _bars(parts, [], title, what, found.unit if morris else "1")


def _signed(name: str, value: float) -> _Part:
    return _Part(name, value, _MORE if value > 0 else _LESS)


def _bars(parts: Sequence[_Part], whole: Sequence[_Part], title: str, what: str, unit: str) -> Any:
    """Signed bars below each other, each with its value: the first parts, and the whole."""
    shown = [*parts[:_MOST], *whole]
    most = max((abs(one.value) + one.margin for one in shown), default=0.0)
    scale = time_scale(most) if unit == "s" else Scale(1.0, unit)

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, title)
        for y, one in enumerate(shown):
            axes.barh(y, one.value / scale.factor, 0.7, color=one.color)
            if one.margin:
                ends = [(one.value + side * one.margin) / scale.factor for side in (-1, 1)]
                axes.plot(ends, [y, y], color="black", lw=1, marker="|", ms=5)
            right = one.value >= 0
            end = (one.value + one.margin if right else one.value) / scale.factor
            value = one.value if abs(one.value) > 1e-6 * most else 0.0
            text = f" {format_quantity(value, unit, digits=3) if unit != '1' else f'{value:.3g}'} "
            axes.text(end, y, text.replace(" us ", " µs "), ha="left" if right else "right", va="center", fontsize=8)
        axes.axvline(0, color="black", lw=0.8)
        axes.set_yticks(range(len(shown)), [named(one.name) for one in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.22 if made.get_figwidth() >= NARROW else 0.45)
        axes.set_xlabel(f"{what} ({scale.unit})" if scale.unit not in ("", "1") else what)
        if len(parts) > _MOST:
            note(axes, say("The first {} of {} are shown.").format(_MOST, len(parts)))

    return figure(fill, height=1.5 + 0.3 * max(2, len(shown)))
