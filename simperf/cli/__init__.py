"""The command line: a thin shell over the Python API, one file a command.

Exit codes: 0 done; 1 a check or expectation failed; 2 bad input; 130 interrupted; 143 terminated; 129 the terminal
was closed.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

__all__ = ["main"]

_DEBUG = "--debug"
#: packages that commands import, and one that typer does from some version on
_NEEDED = ("simpy", "numpy", "networkx", "matplotlib", "pydantic", "typer", "rich", "tomli_w", "quantiphy")
_NEEDED_BY_THEM = ("click", "annotated_types", "typing_extensions")
#: commands that a message names where none is near to what was typed
_FEW = 6


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; no exception leaves this function.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = _DEBUG in given or os.environ.get("SIMPERF_DEBUG", "") not in ("", "0")
    words = [word for word in given if word != _DEBUG]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    try:
        with _terminable():
            code = _invoke(words)
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read the output has seen enough
        _silence()
        return 0
    except KeyboardInterrupt:
        return 130
    except _Terminated:
        return 143
    except SystemExit as error:
        _say(f"error: code of yours called sys.exit({error.code if error.code is not None else ''}), which ends Python")
        return 2
    except Exception as error:
        return _report(error, debug, measuring="measure" in words[:2])


class _Terminated(BaseException):
    """SIGTERM: leave as at Ctrl-C, so that no half-written file stays."""


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Turn SIGTERM into an exception, where nobody else has a handler for it and Python lets us have one."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    ours = os.getpid()

    def leave(number: int, frame: FrameType | None) -> None:
        if os.getpid() != ours:  # a forked worker, which its parent ends
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        raise _Terminated

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _silence() -> None:
    """Send what is still buffered for a reader that has gone to nowhere, so that leaving Python stays quiet."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _invoke(words: list[str]) -> int:
    from simperf.cli.app import command

    root = command()
    with root.make_context("simperf", words) as context:
        code = root.invoke(context)
    return code if isinstance(code, int) else 0


def _report(error: Exception, debug: bool, *, measuring: bool = False) -> int:
    """Say what went wrong; returns the exit code."""
    from simperf.errors import InputError, SimperfError

    name = type(error).__name__
    if name == "Exit":
        return int(getattr(error, "exit_code", 0))
    if name == "Abort":
        return 130
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        return _usage(error)
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, InputError):
        _say("\n".join(f"error: {problem}" for problem in error.problems))
        return error.exit_code
    if isinstance(error, SimperfError):
        _say(f"error: {error}")
        return error.exit_code
    if isinstance(error, ModuleNotFoundError) and (lacks := _lacking(error, measuring)):
        _say(lacks)
        return 2
    if isinstance(error, OSError):
        where = f": {error.filename}" if error.filename else ""
        _say(f"error: {error.strerror or error}{where}")
        return 2
    if isinstance(error, MemoryError):
        _say("error: this computer has not enough memory for the simulation; try a smaller scenario")
        return 2
    _say(f"error: {name}: {error}")
    if not debug:
        _say("This is a defect of simperf, please report it; --debug (or SIMPERF_DEBUG=1) shows where it happened.")
    return 2


def _lacking(error: ModuleNotFoundError, measuring: bool) -> str:
    """What to install, if a package that simperf needs is missing: all that are, in one message."""
    from importlib.util import find_spec

    def there(name: str) -> bool:
        try:
            return find_spec(name) is not None
        except ImportError:
            return False

    missing = [name for name in _NEEDED if not there(name)]
    first = (error.name or "").partition(".")[0]
    if first not in (*missing, *_NEEDED_BY_THEM):
        return ""
    names = [name.replace("_", "-") for name in dict.fromkeys([first, *missing])]
    told = f"error: this Python lacks {', '.join(names)} ({sys.executable})\n    pip install {' '.join(names)}"
    if measuring:
        told += '\n    Without them, torch alone measures: python -c "import simperf.calibrate as calibrate;'
        told += " calibrate.measure('training.json', set='training', minutes=8)\""
    return told


def _usage(error: Any) -> int:
    """A command line that the parser does not understand."""
    message, context = error.format_message().replace("Value error, ", ""), getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        _say(message)
        return 2
    lines = [f"error: {message or 'a command is missing'}"]
    if context is not None:
        commands = getattr(context.command, "commands", None)
        tried = message.split("'")[1] if "No such command" in message and "'" in message else ""
        if tried and "mean" not in message:
            from simperf.errors import nearest

            hint = nearest(tried, commands or ())
            if "mean" in hint or len(commands or ()) <= _FEW:
                lines[0] = lines[0].rstrip(".") + hint
        lines.append(context.get_usage())
        lines.append(f"`{context.command_path} --help` says more.")
    _say("\n".join(lines))
    return 2


def _say(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)  # noqa: T201
    except (BrokenPipeError, ValueError):
        return
