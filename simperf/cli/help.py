"""Help of commands: grouped by task, with an example each, folded at words to the width of the terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

__all__ = ["EXAMPLES", "TASKS", "CommandApp", "HelpGroup"]

Function = TypeVar("Function", bound=Callable[..., Any])
#: commands by what a person wants to do, in the order of the help
TASKS: Mapping[str, tuple[str, ...]] = {
    "Predict": ("run", "collective", "replay", "import", "show", "explain"),
    "Decide": ("compare", "sweep", "limits", "plan"),
    "Parts and files": (*("init", "check", "scenarios", "programs", "catalog", "topo", "zoo", "trace", "schema"),),
    "Calibrate": ("calibrate", "accuracy"),
    "Learn": ("lesson",),
}
#: an example of each command
EXAMPLES: Mapping[str, str] = {
    "run": 'run d2l/async --set program.t2="5 us"',
    "compare": "compare d2l/sync-160mb",
    "sweep": 'sweep d2l/sync-160mb --vary "program.nbytes=10..160 MB:4"',
    "limits": "limits d2l/async",
    "plan": "plan --layouts llama3-8b --on dgx-h100 --gpus 8 --batch 8",
    "check": "check d2l/async",
    "show": "show result.json",
    "import": 'import --arguments "--num-layers 32 --hidden-size 4096 ..." --on dgx-h100 --gpus 8',
    "explain": "explain trace.json.gz job.toml",
    "replay": "replay trace.json.gz --on dgx-h100",
    "programs": "programs all-reduce",
    "topo": "topo dgx-1v",
    "collective": "collective all-reduce --server dgx-h100 -b 8 -e 1G -f 8",
    "trace": "trace model.py:make --input 32x3x224x224 -o model.json",
    "accuracy": "accuracy measured/two-gpus-v100",
    "schema": "schema scenario",
    "init": "init scenario first.toml",
    "scenarios list": "scenarios list",
    "scenarios copy": "scenarios copy d2l/async mine.toml",
    "catalog list": "catalog list gpu",
    "catalog show": "catalog show dgx-h100",
    "zoo list": "zoo list",
    "zoo show": "zoo show resnet50 --batch 64",
    "zoo make": "zoo make resnet50 --to models",
    "lesson list": "lesson list",
    "lesson open": "lesson open 1",
    "lesson export": "lesson export 1 lesson.html",
    "lesson guide": "lesson guide 1",
    "calibrate measure": "calibrate measure --quick -o machine.json",
    "calibrate cluster": "calibrate cluster --hosts 4 --rate 200mbit -o box.json",
    "calibrate import": "calibrate import all_reduce.log -o data.json",
    "calibrate fit": "calibrate fit machine.json -o profile.toml",
    "calibrate validate": "calibrate validate profile.toml machine.json",
    "calibrate leave-out": "calibrate leave-out FOLDER -o unseen.toml",
    "calibrate kernels": "calibrate kernels FOLDER h100-sxm5-80gb -o h100.toml",
}
#: commands that were called otherwise, and what they are called now
_RENAMED: Mapping[str, str] = {"calibrate unseen": "calibrate leave-out"}
#: options that were called otherwise, by command: what they are called now
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "collective": {"--beside": "--measured"},
    "limits": {"--flip": "--crossover"},
}
#: the widest help, and where the explanations of options and commands begin, at most [characters]
_WIDEST, _MARGIN = 120, 30
#: bounds of a number that need no words: none below 0, and what nobody comes near
_BOUNDS = ((re.compile(r"<=x<=\d{7,}"), "<=x"), (re.compile(r"0(\.0)?<=x(?![<\d])"), ""))


class _Help:
    """The help of a command or a group."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write("\n".join(_help(self, ctx)) + "\n")

    def get_usage(self, ctx: Any) -> str:
        """The line of the help that says how it is called, which errors repeat."""
        return _usage(self, ctx)


class _HelpCommand(_Help, TyperCommand):
    """A command whose help ends in an example, and that takes options by their earlier names, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line with the names that options have today."""
        renamed = _OPTIONS.get(self.name or "", {})
        parts = [arg.partition("=") for arg in args]
        return super().parse_args(ctx, [renamed.get(name, name) + equals + value for name, equals, value in parts])


class HelpGroup(_Help, TyperGroup):
    """A group of commands whose help lists them by task."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant; one that was renamed ends in an error with its new name."""
        new = _RENAMED.get(f"{ctx.command_path} {args[0]}".partition(" ")[2])
        if new is not None:
            ctx.fail(f"'{args[0]}' is called '{new.rpartition(' ')[2]}' now: simperf {new}")
        return super().resolve_command(ctx, args)


class CommandApp(typer.Typer):
    """A `typer.Typer` whose commands have this help.

    Parameters
    ----------
    help : str
    options
        Of `typer.Typer`.
    """

    def __init__(self, help: str, **options: Any) -> None:
        settings = {"cls": HelpGroup, "rich_markup_mode": None, "no_args_is_help": True, "add_completion": False}
        super().__init__(help=help, **{**settings, **options})

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        """Declare a command, as `typer.Typer.command` does."""
        return super().command(name, **{"cls": _HelpCommand, **options})


def _help(command: Any, ctx: Any) -> Iterator[str]:
    width = max(40, min(shutil.get_terminal_size((80, 24)).columns, _WIDEST))
    yield from _wrapped(_usage(command, ctx), width, "", " " * 8)
    for paragraph in re.split(r"\n\s*\n", command.help or ""):
        yield ""
        yield from _wrapped(" ".join(paragraph.split()), width, "  ", "  ")
    arguments = [one for one in command.get_params(ctx) if one.param_type_name == "argument" and not one.hidden]
    if arguments:
        yield from _section("Arguments", [(_metavar(one), one.help or "") for one in arguments], width)
    panels: dict[str, list[tuple[str, str]]] = {}
    for one in command.get_params(ctx):
        record = one.get_help_record(ctx) if one.param_type_name == "option" else None
        if record is not None:
            panels.setdefault(getattr(one, "rich_help_panel", None) or "Options", []).append(_record(*record))
    for title in sorted(panels, key=lambda name: name == "Options"):  # those of the command alone stand last
        yield from _section(title, panels[title], width)
    commands = getattr(command, "commands", {})
    if commands:
        yield from _commands(commands, ctx, width)
    example = EXAMPLES.get(ctx.command_path.partition(" ")[2], "")
    if example or command.epilog:
        yield from ("", "Example:" if example else "Examples:")
        lines = [f"simperf {example}"] if example else command.epilog.splitlines()
        for line in lines:
            yield from _wrapped(line.strip(), width, "  ", "    ")


def _commands(commands: Any, ctx: Any, width: int) -> Iterator[str]:
    """Commands by task; those of a smaller group as they come."""
    rows = {name: (name, " ".join((commands[name].help or "").split())) for name in commands}
    tasks = TASKS if ctx.parent is None else {"Commands": tuple(commands)}
    for task, names in tasks.items():
        yield from _section(task, [rows[name] for name in names if name in rows], width)


def _usage(command: Any, ctx: Any) -> str:
    pieces = [_metavar(one) for one in command.get_params(ctx) if one.param_type_name == "argument"]
    pieces += ["COMMAND [ARGS]..."] if hasattr(command, "commands") else []
    return " ".join(["Usage:", ctx.command_path, "[OPTIONS]", *pieces])


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _record(names: str, text: str) -> tuple[str, str]:
    """An option without bounds that nobody comes near."""
    text, bracket, facts = text.rpartition("  [")
    if not bracket:
        return names, facts
    for pattern, short in _BOUNDS:
        facts = pattern.sub(short, facts)
    kept = [one for one in facts.removesuffix("]").split("; ") if one]
    return names, f"{text}  [{'; '.join(kept)}]" if kept else text


def _section(title: str, rows: list[tuple[str, str]], width: int) -> Iterator[str]:
    """A title and rows of a name and its explanation, which begins on a line of its own where the name is long."""
    margin = min(_MARGIN, max((len(name) for name, _ in rows), default=0) + 4)
    yield from ("", f"{title}:")
    for name, text in rows:
        longest = max(map(len, text.split()), default=0)
        indent = margin if margin + longest <= width else 6
        lead = f"  {name}"
        if len(lead) + 2 > indent:
            yield from _wrapped(name, width, "  ", "    ")
            lead = ""
        yield from _wrapped(text, width, lead.ljust(indent), " " * indent)


def _wrapped(text: str, width: int, first: str, then: str) -> list[str]:
    more = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=then, **more) or [  # type: ignore[arg-type]
        *([first.rstrip()] if first.strip() else [])
    ]
