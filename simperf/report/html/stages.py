"""The parts of a report on a model that a layout divides: passes of its stages over time, and where a step goes."""

from __future__ import annotations

from simperf.report.html.page import table
from simperf.report.html.picture import on_page
from simperf.report.language import say
from simperf.report.pipelines import stage_devices
from simperf.report.plots import draw
from simperf.report.stages import stages_of
from simperf.results import Result

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
        head = ("stage", *stages.columns, "(hidden communication)", "memory")
        numbers = table(head, stages.rows(), caption=stages.title, numbers=range(len(head)))
        sections.append(("Stages", picture + numbers))
    return sections
