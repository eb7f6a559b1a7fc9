"""A table of the stages of a pipeline: where a step of each goes, in percent, and what it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from simperf.report.fitted_table import FittedTable
from simperf.results import Metric
from simperf.units import format_quantity

__all__ = ["Stages", "stages_of"]

_TIME = re.compile(r"stage (\d+): (.+)")
_MEMORY = re.compile(r"memory of stage (\d+)")
#: share of a step below which a column is left out, as its numbers would all be 0.0 [1]
_SHOWN = 5e-4
_HIDDEN = "hidden "
_EXPOSED = "exposed "


class Stages(NamedTuple):
    """Metrics of the stages of a run.

    Parameters
    ----------
    times : mapping of int to mapping of str to float
        By stage and kind, in a step [s].
    memory : mapping of int to float
        By stage, the maximum over time [B].
    step : float
        Time of a step [s].
    names : frozenset of str
        Of these metrics.
    """

    times: Mapping[int, Mapping[str, float]]
    memory: Mapping[int, float]
    step: float
    names: frozenset[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Kinds whose times add up to a step, and that take some of it on any stage."""
        kinds = dict.fromkeys(kind for own in self.times.values() for kind in own if not kind.startswith(_HIDDEN))
        return tuple(kind for kind in kinds if any(self.share(stage, kind) >= _SHOWN for stage in self.times))

    def share(self, stage: int, kind: str) -> float:
        """Part of a step that a stage spends so [1]."""
        return self.times[stage].get(kind, 0.0) / self.step if self.step else 0.0

    def hidden(self, stage: int) -> float:
        """Communication of a stage that kernels hide, all dimensions together, as a part of a step [1]."""
        return sum(self.share(stage, kind) for kind in self.times[stage] if kind.startswith(_HIDDEN))

    @property
    def title(self) -> str:
        """Title of the table."""
        exposed = any(kind.startswith(_EXPOSED) for kind in self.columns)
        return f"Stages: percent of a step{', communication by what is exposed,' if exposed else ''} and memory"

    def rows(self) -> list[tuple[str, ...]]:
        """Cells of each stage: its number, percent of a step by `columns`, what is hidden, and the most memory."""
        return [
            (
                str(stage),
                *(f"{100 * self.share(stage, kind):.1f}" for kind in self.columns),
                f"{100 * self.hidden(stage):.1f}",
                format_quantity(self.memory[stage], "B") if stage in self.memory else "-",
            )
            for stage in self.times
        ]

    def table(self) -> FittedTable:
        """The table: a row a stage; what is hidden, if it is anything."""
        hides = any(self.hidden(stage) >= _SHOWN for stage in self.times)
        words = [kind.removeprefix(_EXPOSED).replace(" ", "\n", 1) for kind in self.columns]
        rows = [[*cells, *([f"({hidden})"] if hides else []), memory] for *cells, hidden, memory in self.rows()]
        return FittedTable(["stage", *words, *(["(hidden)"] if hides else []), "memory"], rows, gap=1)


def stages_of(metrics: Mapping[str, Metric]) -> Stages | None:
    """Stages that metrics tell of; None if they tell of none.

    Parameters
    ----------
    metrics : mapping of str to Metric
        Of a result.
    """
    times: dict[int, dict[str, float]] = {}
    memory: dict[int, float] = {}
    names = set()
    for name, one in metrics.items():
        if (found := _TIME.fullmatch(name)) and one.unit == "s":
            times.setdefault(int(found[1]), {})[found[2]] = one.value
            names.add(name)
        elif found := _MEMORY.fullmatch(name):
            memory[int(found[1])] = one.value
            names.add(name)
    step = metrics.get("time per step")
    return Stages(times, memory, step.value, frozenset(names)) if times and step is not None else None
