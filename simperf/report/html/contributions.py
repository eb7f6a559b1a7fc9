"""Reports of what contributes to a number: changes of a what-if question, parts of a difference, influences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simperf.hardware import Machine
from simperf.report.contributions import draw_differences, draw_influences, draw_what_if
from simperf.report.html.page import PageSection, numeric, page, paragraphs, reproduction, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import result_sections
from simperf.report.language import say
from simperf.units import format_quantity

if TYPE_CHECKING:
    from simperf.study.explain import Explained
    from simperf.study.sensitivity import Sensitivity
    from simperf.study.what_if import WhatIf

__all__ = ["difference_report", "influences_part", "sensitivity_report", "what_if_report"]


def what_if_report(found: WhatIf, *, machine: Machine | None = None, command: str = "") -> str:
    """A page on a what-if question: contributions, the critical path of each run, and the run as it is in detail.

    Parameters
    ----------
    found : WhatIf
    machine : Machine, optional
        What the job used.
    command : str
        What makes the page again.
    """
    text = say("Change of the {} with each change alone, their interaction, and all together.").format(
        say(found.metric)
    )
    header, rows = found.rows()
    numbers = table(header, rows, caption=f"Contributions to the {found.metric}", numbers=numeric(rows))
    picture = on_page(lambda: draw_what_if(found), name="what-if", text=text)
    sections = [PageSection("What if", picture + numbers)]
    header, paths = found.path_rows()
    told = paragraphs(f"{one.name}: {found.reason(one)}" for one in found.runs[1:])
    caption = "The critical path of each run, by activity"
    cells = table(header, paths, caption=caption, numbers=range(1, len(header)))
    sections.append(PageSection("Why", told + cells))
    for each in result_sections(found.result, machine=machine, prefix="a-"):
        sections.append(PageSection(f"As it is: {each.title}", each.body, name=each.anchor))
    sections += reproduction(command, f"Seed {found.result.seed}. The same scenario and seed give the same bytes.")
    base, together = (format_quantity(one.value, found.unit) for one in (found.base, found.together))
    changes = ", ".join(one.name for one in found.alone)
    answer = f"{together} instead of {base}"
    title, lead = f"What if: {found.result.name}", [f"The {found.metric} with {changes}."]
    return page(title, sections, question=found.result.question, answer=answer, lead=lead)


def difference_report(found: Explained, *, command: str = "") -> str:
    """A page on a recorded step beside the simulated one: the parts of the difference.

    Parameters
    ----------
    found : Explained
    command : str
        What makes the page again.
    """
    text = say("Parts of the difference between the recorded step and the simulated one.")
    header, rows = found.rows()
    picture = on_page(lambda: draw_differences(found), name="differences", text=text)
    caption = f"A step of {found.device}, part by part"
    numbers = table(header, rows, caption=caption, numbers=range(1, len(header)))
    sections = [PageSection("Where the difference is", picture + numbers)]
    if found.notes:
        sections.append(PageSection("Notes", paragraphs(found.notes)))
    recorded, simulated = format_quantity(found.recorded, "s"), format_quantity(found.simulated, "s")
    answer, told = f"Recorded {recorded}, simulated {simulated}", f"{found.told[0].upper()}{found.told[1:]}."
    return page("Recorded and simulated step", [*sections, *reproduction(command)], answer=answer, lead=[told])


def sensitivity_report(found: Sensitivity, *, command: str = "") -> str:
    """A page on which of several uncertain parameters matter.

    Parameters
    ----------
    found : Sensitivity
    command : str
        What makes the page again.
    """
    sections = [PageSection("Influences", influences_part(found))]
    first = found.influences[0] if found.influences else None
    answer = f"{first.key} matters most" if first and first.total > 0 else "None of the parameters matters"
    lead = [f"{found.method.capitalize()}'s method, {found.runs} runs."]
    title = f"Influences on the {found.metric}"
    return page(title, [*sections, *reproduction(command)], answer=answer, lead=lead)


def influences_part(found: Sensitivity) -> str:
    """The picture and the table of influences, as part of a page."""
    header, rows = found.rows()
    text = say("Influence of each parameter on the {}.").format(say(found.metric))
    picture = on_page(lambda: draw_influences(found), name="influences", text=text)
    caption = f"{found.method}, {found.runs} runs"
    return picture + table(header, rows, caption=caption, numbers=numeric(rows))
