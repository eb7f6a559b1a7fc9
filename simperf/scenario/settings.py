"""A scenario: everything that a run needs, checked and in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simperf.cost.settings import CostSettings
from simperf.execution import FREE, FrontendPart
from simperf.hardware import Machine
from simperf.programs import ProgramSpec
from simperf.scenario.answer import Asked
from simperf.scenario.expectation import Expectation
from simperf.scenario.overrides import Override

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart

__all__ = ["CostSettings", "Scenario"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Scenario that `simperf.run` takes. Files make it through `load_scenario`, Python through `make_scenario`.

    Parameters
    ----------
    name : str
        The title; of a variant, its name.
    title, question, source, notes : str
    answer : Asked or None
        The number that answers the question; None ranks by time where the same work is done.
    rows : tuple of str
        Topics that it stands for.
    machine : Machine or None
        None where the file has no machine: the program runs on one device without limits.
    frontend : FrontendPart
    mode : str
        A key of `simperf.execution.MODES`.
    cost : CostSettings
    program : ProgramSpec
    parameters : mapping of str to object
        All of the program's parameters, defaults too, in SI units.
    seed : int
    force : bool
        Simulate as many events, points and samples as it takes, instead of refusing what would be too many.
    expectations : tuple of Expectation
        What the run must give; left out if `overridden`.
    measurements : tuple of Expectation
        What others measured on the real machine; left out if `overridden`.
    case, fitted : str
        The measured case, and what was fitted to anything, in words.
    variants : tuple of Scenario
        What `simperf compare` runs; empty for a variant itself.
    path : str
        File that it comes from, empty if none.
    data : mapping
        What the file said, after all overrides.
    overridden : bool
        The command line changed what is simulated, so that the file's expectations say nothing.
    profiles : tuple of ProfilePart
        What ``[calibration]`` names: fitted constants that stand for the catalogue's.
    adjusted : mapping of str to frozenset of str
        Kind and name of the parts of the machine that each profile changed, such as ``"link pcie3-x16"``.
    changes : tuple of Override
        Values that the caller gave in place of the file's, to say where a value comes from.
    """

    name: str
    program: ProgramSpec
    title: str = ""
    question: str = ""
    answer: Asked | None = None
    rows: tuple[str, ...] = ()
    source: str = ""
    notes: str = ""
    machine: Machine | None = None
    frontend: FrontendPart = FREE
    mode: str = "eager"
    cost: CostSettings = field(default_factory=CostSettings)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    force: bool = False
    expectations: tuple[Expectation, ...] = ()
    measurements: tuple[Expectation, ...] = ()
    case: str = ""
    fitted: str = ""
    variants: tuple[Scenario, ...] = ()
    path: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    overridden: bool = False
    profiles: tuple[ProfilePart, ...] = ()
    adjusted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    changes: tuple[Override, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        where = self.machine.name if self.machine is not None else "one device without limits"
        variants = f", {len(self.variants)} variants" if self.variants else ""
        return f"<Scenario {self.name!r}: {self.program.name} on {where}{variants}>"

    @property
    def draws(self) -> int:
        """Joint samples of fitted constants that its profiles hold; 0 without a profile."""
        return max((profile.draws for profile in self.profiles), default=0)
