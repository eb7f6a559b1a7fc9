"""`simperf lesson`: lessons with sliders and exercises, as notebooks in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from simperf.cli.completion import lesson_names, page_names
from simperf.cli.help import CommandApp
from simperf.cli.options import Format

__all__ = ["app"]

app = CommandApp("List the lessons, open one in the browser, or write it as a page.")
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A name or number of `simperf lesson list`.", autocompletion=lesson_names)
]
Language = Annotated[Literal["en", "zh"], typer.Option("--language", help="English, or Simplified Chinese.")]


@app.command("list")
def list_lessons(language: Language = "en", output: Format = "table") -> None:
    """List the lessons in the order of the course."""
    from simperf.report.rows import rows_text
    from simperf.teach import find_lesson, lessons

    rows = []
    for name in lessons():
        lesson = find_lesson(name)
        text = lesson.text[language]
        row = {"number": lesson.order, "name": name, "section": lesson.section, "title": text.title}
        rows.append({**row, "exercises": len(lesson.exercises), "question": text.question})
    if output == "table":  # what names a lesson heads its lines
        shown = [{"lesson": f"{row['number']} {row['name']}", **row} for row in rows]
        rows = [{key: value for key, value in row.items() if key not in ("number", "name")} for row in shown]
    typer.echo(rows_text(rows, output))


@app.command("open")
def open_lesson(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A name or number of `simperf lesson list`; `playground`.", autocompletion=page_names
        ),
    ],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one.")] = 0,
    headless: Annotated[bool, typer.Option("--headless", help="Only serve it; open no browser.")] = False,
) -> int:
    """Serve a lesson or the playground here, at an address with a token, and open it in the browser; Ctrl-C ends it."""
    from simperf.cli.terminal import note
    from simperf.teach import find_lesson
    from simperf.teach.playground import PLAYGROUND, playground_notebook

    if name == PLAYGROUND:
        notebook, title = playground_notebook(), PLAYGROUND
    else:
        lesson = find_lesson(name)
        notebook, title = lesson.notebook, f"lesson {lesson.order}: {lesson.text['en'].title}"
    marimo = _marimo()
    note(f"{title}; Ctrl-C ends it")
    words = ["run", str(notebook), "--token", "--host", "127.0.0.1"]
    if port:
        words += ["--port", str(port)]
    return _call(marimo, words + (["--headless"] if headless else []))


@app.command("export")
def export(
    name: Name,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The page to write: .html.")],
    language: Language = "en",
) -> None:
    """Write a lesson, run once, as a page that needs no network; its sliders need `simperf lesson open`."""
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.files import write_text
    from simperf.teach import find_lesson
    from simperf.teach.static import static_page

    verify_outputs(page=target)
    lesson = find_lesson(name)
    _marimo()
    write_text(target, static_page(lesson, language))
    note(f"wrote {target}")


@app.command("guide")
def show_guide(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="One lesson only.", show_default=False)] = "",
    language: Language = "en",
    target: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write Markdown: .md.")] = None,
    output: Format = "table",
) -> None:
    """Print the guide for teachers: goals, minutes, and the answers, which the simulator gives."""
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.files import write_text
    from simperf.report.rows import rows_text
    from simperf.report.terminal import fold_text
    from simperf.teach import find_lesson, lessons
    from simperf.teach.guide import guide, guide_rows

    verify_outputs(text=target)
    chosen = [find_lesson(each) for each in ([name] if name else lessons())]
    if target is not None:
        write_text(target, guide(chosen, language))
        note(f"wrote {target}")
    elif output == "table":
        typer.echo(fold_text(guide(chosen, language)), nl=False)
    else:
        typer.echo(rows_text(guide_rows(chosen, language), output))


def _marimo() -> list[str]:
    """The command that runs marimo in this Python."""
    import importlib.util
    import sys

    from simperf.errors import SimperfError

    if importlib.util.find_spec("marimo") is None:
        raise SimperfError("lessons are marimo notebooks: pip install marimo")
    return [sys.executable, "-m", "marimo"]


def _call(marimo: list[str], words: list[str]) -> int:
    """Run marimo until it ends or is interrupted; nothing of it is left running."""
    import subprocess

    with subprocess.Popen([*marimo, *words]) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.terminate()
            process.wait(10)
            return 0
