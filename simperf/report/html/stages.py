"""The parts of a report on a model that a layout divides: passes of its stages over time, and where a step goes."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.report.html.page import table
from simperf.report.html.picture import on_page
from simperf.report.language import say
from simperf.report.pipelines import stage_devices
from simperf.report.plots import draw
from simperf.report.stages import Stages, stages_of
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["stage_sections"]


def stage_sections(result: Result, prefix: str = "") -> list[tuple[str, str]]:
    """Titles and bodies of the sections on the pipeline and its stages; none without several stages.

    Parameters
    ----------
    result : Result
    prefix : str
        Tells several results on one page apart.
    """
    sections: list[tuple[str, str]] = []
    if len(stage_devices(result)) > 1:
        text = say("Passes of each stage over time; the number is that of the micro-batch.")
        sections.append(("Pipeline", on_page(lambda: draw(result, "pipeline"), name=f"{prefix}pipeline", text=text)))
    stages = stages_of(result.metrics)
    if stages is not None:
        text = say("Where a step of each stage goes: kernels, bubble, and communication that kernels do not hide.")
        picture = on_page(lambda: draw(result, "stages"), name=f"{prefix}stages", text=text)
        head, rows = _cells(stages)
        numbers = table(head, rows, caption=stages.title, numbers=range(len(head)))
        sections.append(("Stages", picture + numbers))
    return sections


def _cells(stages: Stages) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """A row a stage: percent of a step by kind, what is hidden, and the most memory at any time."""
    columns = stages.columns
    rows = [
        (
            str(stage),
            *(f"{100 * stages.share(stage, kind):.1f}" for kind in columns),
            f"{100 * stages.hidden(stage):.1f}",
            format_quantity(stages.memory[stage], "B") if stage in stages.memory else "-",
        )
        for stage in stages.times
    ]
    return ("stage", *columns, "(hidden communication)", "memory"), rows
