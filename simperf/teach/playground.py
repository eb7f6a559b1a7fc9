"""The playground: one page whose settings stand in its address, and what a job of these settings gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from simperf.files import read_toml
from simperf.hardware import GpuPart
from simperf.results import Result
from simperf.scenario import make_scenario
from simperf.study.limits import Limits
from simperf.teach.exercise import Language
from simperf.teach.lesson import LANGUAGES, lessons_folder
from simperf.teach.pictures import picture
from simperf.teach.settings import Menu, Settings, Slider, control, defaults
from simperf.units import format_quantity

__all__ = ["PLAYGROUND", "Address", "Menu", "Playground", "Slider", "playground_notebook"]

#: what `simperf lesson open` calls it
PLAYGROUND = "playground"
#: speed-ups that are listed, and the least that counts as one [1]
_MOST, _LEAST = 5, 1e-3
_BAR = "height: 0.7rem; border-radius: 2px; background: #0072B2;"
_MEMORY = "memory: "
#: settings that only a layout has
_OF_LAYOUT = ("tp", "pp")


def playground_notebook() -> Path:
    """The notebook of the playground."""
    return lessons_folder() / PLAYGROUND / f"{PLAYGROUND}.py"


class Address:
    """The settings that the address of a page holds; what has no meaning there is left out.

    Parameters
    ----------
    query : mapping of str to str
        Parameters of the address, to which changes are written.
    """

    def __init__(self, query: Any) -> None:
        self._query = query

    def language_switch(self) -> Any:
        """A choice of language, which the address holds too."""
        import marimo as mo

        code: Language = "zh" if self._query.get("language") == "zh" else "en"
        named = {name: code for code, name in LANGUAGES.items()}

        def keep(value: str) -> None:
            self._query.set("language", value)

        return mo.ui.radio(named, value=LANGUAGES[code], inline=True, on_change=keep)

    def read(self, settings: Settings) -> dict[str, Any]:
        """The values of settings: those of the address where they are ones, else those at first."""
        values = defaults(settings)
        for name, setting in settings.items():
            text = self._query.get(name)
            if isinstance(setting, Slider):
                values[name] = next((one for one in setting.values if str(one) == text), values[name])
            elif isinstance(setting, Menu):
                values[name] = setting.named().get(text, values[name])
        return values

    def keep(self, values: Mapping[str, Any]) -> None:
        """Write the values of settings to the address."""
        for name, value in values.items():
            if self._query.get(name) != str(value):
                self._query.set(name, str(value))


class Playground:
    """The page in one language.

    Parameters
    ----------
    language : str

    Attributes
    ----------
    text : dict of str to str
        Its words.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        table = read_toml(playground_notebook().with_suffix(".toml")).data[language]
        self._names: Mapping[str, str] = table["names"]
        self.text: dict[str, str] = {key: value for key, value in table.items() if key != "names"}

    def controls(self, settings: Settings, address: Address) -> Any:
        """The settings with labels, at the values of the address; each change is written to it."""
        import marimo as mo

        values = address.read(settings)
        made = {
            name: control(one, values[name], label=self.text[name], say=self._say) for name, one in settings.items()
        }
        return mo.ui.dictionary(made, on_change=address.keep)

    def _say(self, name: str) -> str:
        return self._names.get(name, name)

    def opening(self, chosen: Any) -> Any:
        """Title, question and those controls that have an effect."""
        import marimo as mo

        head = mo.md(f"# {self.text['title']}\n\n**{self.text['question']}**")
        hidden = () if chosen.value["strategy"] == "layout" else _OF_LAYOUT
        shown = [one for name, one in chosen.items() if name not in hidden]
        return mo.vstack([head, mo.hstack(shown, wrap=True, justify="start", gap=1)])

    def used(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that have an effect: tensor and pipeline parallelism belong to a layout."""
        layout = values["strategy"] == "layout"
        return {**values, **({} if layout else dict.fromkeys(_OF_LAYOUT, 1))}

    def indivisible(self, values: Mapping[str, Any]) -> bool:
        """Whether a layout is asked for with a traced model, which it cannot divide."""
        return values["strategy"] == "layout" and not values["model"].startswith("GPT")

    def headline(self, result: Result) -> Any:
        """Time of a step, rate, and what memory holds: what is known before anything is drawn."""
        import marimo as mo

        step = format_quantity(result.metrics["time per step"].value, "s")
        rate = f"{result.metrics['samples per second'].value:,.0f}/s"
        head = mo.md(f"## {self.text['step']}: {step}, {self.text['rate']}: {rate}")
        return mo.vstack([head, *self._interval(result), *self._memory(result)])

    def _interval(self, result: Result) -> list[Any]:
        import marimo as mo

        if "time per step" not in result.intervals:
            return []
        low, high = (format_quantity(end, "s", digits=3) for end in result.intervals["time per step"])
        return [mo.md(self.text["interval"].format(low=low, high=high))]

    def timeline(self, result: Result) -> Any:
        """The timeline of the step."""
        import marimo as mo

        words, text = self._names, self.text["timeline"]
        draw = partial(result.plot, kind="gantt")
        return mo.Html(picture(draw, self.language, name="run", text=text, words=words, once=True))

    def _memory(self, result: Result) -> list[Any]:
        import marimo as mo

        parts = {
            name.removeprefix(_MEMORY): one.value for name, one in result.metrics.items() if name.startswith(_MEMORY)
        }
        if not parts and "memory" in result.metrics:
            parts = {"memory": result.metrics["memory"].value}
        total = sum(parts.values())
        if not total:
            return []
        rows = [(self._names.get(name, name), value) for name, value in parts.items() if value > 1e-3 * total]
        machine = make_scenario(result.scenario).machine
        nodes = [machine.nodes[gpu] for gpu in machine.gpus] if machine else []
        capacity = min((one.part.memory_capacity for one in nodes if isinstance(one.part, GpuPart)), default=math.inf)
        told = self.text["fits"].format(used=_gib(total), capacity=_gib(capacity))
        head = f"### {self.text['memory']}: {told}"
        bars = "".join(_bar(name, value / total, _gib(value)) for name, value in rows)
        return [mo.md(head), mo.Html(f'<div class="simperf-bars">{bars}</div>')]

    def helps(self, found: Limits) -> Any:
        """Limits of the job, and what each faster resource would bring."""
        import marimo as mo

        better = [one for one in found.speed_ups if not one.error and abs(one.change) > _LEAST][:_MOST]
        lines = [f"## {self.text['limits']}", ""]
        if better:
            share = f"{100 * better[0].change:.1f} %"
            lines.append(self.text["limited"].format(name=f"**{better[0].resource.name}**", share=share))
        else:
            lines.append(self.text["nothing"])
        widest = max((abs(one.change) for one in better), default=1.0)
        bars = "".join(
            _bar(one.resource.name, abs(one.change) / widest, f"{100 * one.change:+.1f} %") for one in better
        )
        return mo.vstack(
            [
                mo.md("\n".join(lines)),
                mo.md(f"### {self.text['helps']}: {self.text['resource']}, {self.text['change']}"),
                mo.Html(f'<div class="simperf-bars">{bars}</div>'),
                mo.md(self.text["address"]),
            ]
        )


def _gib(size: float) -> str:
    """A size [B] in the unit that capacities of GPUs are named by."""
    return f"{size / 2**30:.3g} GiB"


def _bar(name: str, share: float, number: str) -> str:
    """A row: a name, a bar of so much of the width, and the number."""
    bar = f'<div style="{_BAR} width: {100 * share:.1f}%"></div>'
    cells = f'<span style="overflow-wrap: anywhere">{name}</span><div>{bar}</div><span>{number}</span>'
    style = "display: grid; grid-template-columns: 9rem 1fr 6rem; gap: 0.6rem; align-items: center; max-width: 40rem"
    return f'<div style="{style}">{cells}</div>'
