"""Settings of a lesson: what a reader changes with sliders, choices and switches, known before any page is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Menu", "Settings", "Slider", "Switch", "control", "defaults"]

#: points of a curve over a slider, at most
_POINTS = 9


@dataclass(frozen=True)
class Slider:
    """A number out of several.

    Parameters
    ----------
    values : sequence of number
        Those that can be chosen, rising.
    value : number
        The one that is chosen at first.
    """

    values: Sequence[float]
    value: float

    @property
    def log(self) -> bool:
        """Whether the values are spread over orders of magnitude, so that a logarithmic axis shows them best."""
        first, last = self.values[0], self.values[-1]
        return first > 0 and last >= 16 * first and self.values[1] - first < (last - first) / len(self.values)

    def points(self, *more: float) -> list[float]:
        """Values for a curve: both ends, some between them, and those of `more` that the slider has.

        Examples
        --------
        >>> Slider(range(1, 41), 10).points()
        [1, 6, 11, 16, 21, 25, 30, 35, 40]
        """
        last = len(self.values) - 1
        places = {round(place * last / (_POINTS - 1)) for place in range(_POINTS)}
        return sorted({self.values[place] for place in places} | {value for value in more if value in self.values})


@dataclass(frozen=True)
class Menu:
    """One of several.

    Parameters
    ----------
    options : sequence of str, or mapping of str to value
        Names, which a page shows in its language, and what each stands for.
    value : str
        Name of the one that is chosen at first.
    """

    options: Sequence[str] | Mapping[str, Any]
    value: str

    def named(self) -> dict[str, Any]:
        """Values that the names stand for."""
        return dict(self.options) if isinstance(self.options, Mapping) else {name: name for name in self.options}


@dataclass(frozen=True)
class Switch:
    """Yes or no."""

    value: bool = False


Settings = Mapping[str, Slider | Menu | Switch]


def defaults(settings: Settings) -> dict[str, Any]:
    """Values of the settings at first, by name.

    Examples
    --------
    >>> defaults({"n": Slider([1, 2], 2), "wait": Switch(), "where": Menu({"first": 0}, "first")})
    {'n': 2, 'wait': False, 'where': 0}
    """
    return {name: one.named()[one.value] if isinstance(one, Menu) else one.value for name, one in settings.items()}


def control(setting: Slider | Menu | Switch, value: Any, *, label: str, say: Callable[[str], str]) -> Any:
    """A setting at a value as a slider, a choice or a switch of marimo.

    Parameters
    ----------
    setting : Slider, Menu or Switch
    value : object
        What it is at: an option's value, not its name.
    label : str
    say : callable
        Gives the names of options in the language of the page.
    """
    import marimo as mo

    if isinstance(setting, Slider):
        return mo.ui.slider(steps=list(setting.values), value=value, label=label, show_value=True)
    if isinstance(setting, Menu):
        named = {say(key): one for key, one in setting.named().items()}
        chosen = next(key for key, one in named.items() if one == value)
        return mo.ui.dropdown(named, value=chosen, label=label)
    return mo.ui.switch(value=value, label=label)
