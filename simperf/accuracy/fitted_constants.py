"""The list of constants that were read off published figures: where each stands, its value, and the figures.

The list is data (``data/fitted.toml``). A figure that a constant was read off restates what was given; a figure that
rests on a choice which was made after the answers were seen needs a prediction still, and names the choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from simperf.files import read_toml
from simperf.scenario import Scenario

__all__ = ["ListedConstant", "constants_behind", "fitted_constants", "key_of"]

_DATA = Path(__file__).parent / "data" / "fitted.toml"


@dataclass(frozen=True, slots=True)
class ListedConstant:
    """One constant that was read off published figures, or one choice that was made after they were seen.

    Parameters
    ----------
    name : str
    file : str
        Where it is set: a file of the package, a scenario by its name (a shell pattern), or a module's attribute as
        ``module:NAME``.
    entry : str
        The table of the file's lists, by its ``id``; empty where the file has keys of its own.
    key : str
        Key in it, with dots; empty for all that an attribute holds.
    value : object
        As it stands there.
    cases, variants : tuple of str
        Figures that it was read off, as shell patterns of their cases or scenarios, and of their variants.
    choice : bool
        A choice among several that the sources leave open, or that was made after the figures were seen; not a number.
    source : str
        What it was read off.
    quantities : tuple of str
        Numbers of a figure that it was read off; all if there are none.
    only : str
        What alone rests on it, in words, where no figure of the accuracy page does; empty elsewhere.
    """

    name: str
    file: str
    entry: str
    key: str
    value: Any
    cases: tuple[str, ...]
    variants: tuple[str, ...]
    choice: bool
    source: str
    quantities: tuple[str, ...] = ()
    only: str = ""

    def covers(self, case: str, scenario: str = "", variant: str = "", quantity: str = "") -> bool:
        """Whether it was read off a figure, by the figure's case, its scenario's name, its variant and its quantity."""
        named = any(fnmatchcase(name, pattern) for name in (case, scenario) for pattern in self.cases)
        return (
            named
            and (not self.variants or any(fnmatchcase(variant, pattern) for pattern in self.variants))
            and (not self.quantities or quantity in self.quantities)
        )

    @property
    def in_scenarios(self) -> bool:
        """Whether it is a value in files of scenarios."""
        return self.file.startswith("measured/")

    @property
    def in_measured_data(self) -> bool:
        """Whether it is a value in a folder of measured data, which is no part of the package."""
        return self.file.startswith("llm/")


@cache
def fitted_constants() -> tuple[ListedConstant, ...]:
    """Every constant of the list."""
    return tuple(
        ListedConstant(
            one["name"],
            one["file"],
            one.get("entry", ""),
            one.get("key", ""),
            one.get("value"),
            tuple(one.get("cases", ())),
            tuple(one.get("variants", ())),
            bool(one.get("choice", False)),
            one["source"],
            tuple(one.get("quantities", ())),
            one.get("only", ""),
        )
        for one in read_toml(_DATA).data["constant"]
    )


def constants_behind(
    case: str, scenario: Scenario | None = None, *, quantity: str = "", choice: bool = False
) -> tuple[str, ...]:
    """Names of the constants, or of the choices, that a figure was read for.

    Parameters
    ----------
    case : str
        The figure's case.
    scenario : Scenario, optional
        The variant that stands for it; a value in files of scenarios counts only where the variant has it.
    quantity : str
        Which of the figure's numbers.
    choice : bool
        Choices instead of numbers.

    Examples
    --------
    >>> constants_behind("roof-elementwise-l4")
    ('efficiency of kernels by family and architecture', 'time of the measuring program')
    """
    name = f"measured/{Path(scenario.path).stem}" if scenario is not None and scenario.path else ""
    variant = scenario.name if scenario is not None else ""
    found = []
    for one in fitted_constants():
        if one.choice is choice and one.covers(case, name, variant, quantity) and one.name not in found:
            here = not one.in_scenarios or (scenario is not None and key_of(scenario.data, one.key) == one.value)
            found += [one.name] if here else []
    return tuple(found)


def key_of(data: Mapping[str, Any], key: str) -> Any:
    """The value of a key with dots; None if there is none."""
    value: Any = data
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value
