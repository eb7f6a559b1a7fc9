"""A training job that was read from a framework's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simperf.files import write_text
from simperf.scenario import Scenario

__all__ = ["ImportedJob"]


@dataclass(frozen=True, slots=True)
class ImportedJob:
    """A scenario that was made of a framework's configuration.

    Parameters
    ----------
    framework : str
        One of `simperf.frameworks.FRAMEWORKS`.
    tables : mapping
        The scenario's tables, as `simperf.make_scenario` takes them.
    text : str
        The scenario's file, with a comment for each value that is assumed.
    scenario : Scenario
        Ready for `simperf.run`.
    notes : tuple of str
        What the configuration has that is not simulated, or not understood.
    without_effect : tuple of str
        Options that change no time of a step.
    """

    framework: str
    tables: Mapping[str, Any]
    text: str
    scenario: Scenario
    notes: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scenario's file, whole or not at all."""
        write_text(path, self.text)
