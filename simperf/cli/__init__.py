"""The command line: a thin shell over the Python API, one file a command.

Exit codes: 0 done; 1 a check or expectation failed; 2 bad input; 130 interrupted; 143 terminated; 129 the terminal
was closed.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any

__all__ = ["Ending", "interruptible", "main"]

_DEBUG = "--debug"
#: packages that commands import, and one that typer does from some version on
_NEEDED = ("simpy", "numpy", "networkx", "matplotlib", "pydantic", "typer", "rich", "tomli_w", "quantiphy")
_NEEDED_BY_THEM = ("click", "annotated_types", "typing_extensions")
#: characters of a file's name that a message repeats
_LONGEST = 120
#: errors of writing
_NO_ROOM = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF)
#: of a number of thousands of digits
_WHOLE = "Input should be a whole number of at most 64 bits"
#: commands that a message names where none is near to what was typed
_FEW = 8
#: until an interrupt that was lost in a callback comes again [s]
_AGAIN = 0.01


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
    if sys.stderr is None:  # closed by whoever started us: its number must not become that of a file that we write
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        _say("error: standard output is closed\n    expected: > FILE, or > /dev/null")
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    ending = Ending()
    try:
        with interruptible(ending):
            code = _invoke(words)
            sys.stdout.flush()
        return ending.code if code == 128 + signal.SIGINT else code
    except BrokenPipeError:  # whoever read the output has seen enough
        _silence()
        return 0
    except KeyboardInterrupt:
        return ending.code
    except SystemExit as error:
        _say(f"error: code of yours called sys.exit({error.code if error.code is not None else ''}), which ends Python")
        return 2
    except Exception as error:
        if ending.came:  # an interrupt in the middle of an import may become another error on its way
            return ending.code
        return _report(error, debug, words)
    finally:
        # after an interrupt of a text that was executed, as classes of data are, ``python -m`` ends by SIGINT whatever
        # became of the interrupt, until another text is executed
        exec("")


class Ending:
    """Signal that has asked for an end, if one has: Ctrl-C, if nobody says another."""

    def __init__(self) -> None:
        self.number: signal.Signals = signal.SIGINT
        self.came = False

    @property
    def code(self) -> int:
        """The exit code that a shell would show: 130 (Ctrl-C), 143 (SIGTERM) or 129 (SIGHUP)."""
        return 128 + self.number


class _Handler:
    """Turns a signal into `KeyboardInterrupt` and notes it."""

    def __init__(self, ending: Ending) -> None:
        self.ending, self.process = ending, os.getpid()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self.process:  # a forked worker, which its parent ends
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.ending.number, self.ending.came = signal.Signals(number), True
        raise KeyboardInterrupt


@contextlib.contextmanager
def interruptible(ending: Ending | None = None) -> Iterator[Ending]:
    """Take a request to end, and a terminal that is closed, like Ctrl-C: as `KeyboardInterrupt`, so that all is kept.

    A signal that is ignored, as SIGHUP is under nohup, stays so, and one that somebody else handles; where Python lets
    us have no handler, nothing changes.

    Parameters
    ----------
    ending : Ending, optional
        Notes which signal came. By default that of the context around this one, so that both know it.
    """
    main = threading.current_thread() is threading.main_thread()
    names = ("SIGINT", "SIGTERM", "SIGHUP") if main else ()
    before = {number: signal.getsignal(number) for number in (getattr(signal, name, None) for name in names) if number}
    usual = (signal.SIG_DFL, signal.default_int_handler)
    around = [one.ending for one in before.values() if isinstance(one, _Handler)]
    ending = ending or (around[0] if around else Ending())
    taken = {number: one for number, one in before.items() if one in usual or isinstance(one, _Handler)}
    ignored = sys.unraisablehook
    try:
        for number in taken:
            signal.signal(number, _Handler(ending))
        if taken and not around:
            sys.unraisablehook = _again(ending, ignored)
        yield ending
    finally:
        sys.unraisablehook = ignored
        for number, handler in taken.items():
            signal.signal(number, handler)


def _again(ending: Ending, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook that repeats an interrupt which came within a callback that cannot raise, as one of a weak reference."""

    def hook(unraisable: Any) -> None:
        if ending.came and issubclass(unraisable.exc_type, KeyboardInterrupt):
            # later, from outside: a signal that this hook sent would come within this hook
            later = threading.Timer(_AGAIN, _repeat, (ending,))
            later.daemon = True
            later.start()
        else:
            otherwise(unraisable)

    return hook


def _repeat(ending: Ending) -> None:
    if isinstance(signal.getsignal(ending.number), _Handler):  # whoever could be interrupted has not ended since
        _thread.interrupt_main(ending.number)


def _silence() -> None:
    """Send what is still buffered for a reader that has gone to nowhere, so that leaving Python stays quiet."""
    _discard(sys.stdout)


def _discard(stream: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _invoke(words: list[str]) -> int:
    from simperf.cli.app import command

    root = command()
    if os.environ.get("_SIMPERF_COMPLETE"):  # a shell asks how a word may continue
        try:
            root.main(args=words, prog_name="simperf", standalone_mode=False)
        except SystemExit as ending:
            return int(ending.code or 0)
    try:
        context = root.make_context("simperf", words)
    except SystemExit as ending:  # the shell's completion was shown or installed
        return int(ending.code or 0)
    with context:
        code = root.invoke(context)
    return code if isinstance(code, int) else 0


def _report(error: Exception, debug: bool, words: Sequence[str]) -> int:
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
        option = _option_of(str(getattr(error, "name", "")), words)
        _say(f"error: {option}: {error}" if option else f"error: {error}")
        return error.exit_code
    if isinstance(error, ModuleNotFoundError) and (lacks := _lacking(error, "measure" in words[:2])):
        _say(lacks)
        return 2
    if isinstance(error, OSError):
        file = str(error.filename or "")
        named = file if len(file) <= _LONGEST else f"{file[:_LONGEST]}..."
        named = named or _unnamed(error)
        _say(": ".join(one for one in ("error", _option_of(file, words), named, error.strerror or str(error)) if one))
        return 2
    if isinstance(error, MemoryError):
        _say("error: this computer has not enough memory for this; try a smaller scenario or file, or fewer points")
        return 2
    _say(f"error: {name}: {error}")
    if not debug:
        _say("This is a defect of simperf, please report it; --debug (or SIMPERF_DEBUG=1) shows where it happened.")
    return 2


def _unnamed(error: OSError) -> str:
    """What an error of the system without a name is about: standard output, or the folder; empty if neither."""
    if error.errno in _NO_ROOM:  # whoever writes a file says its name
        _silence()
        return "standard output"
    try:
        os.getcwd()
    except OSError:
        return "the current folder"
    return ""


def _option_of(name: str, words: Sequence[str]) -> str:
    """The option of a command line that gives a name; empty if none does."""
    for before, word in pairwise(("", *words)):
        option, _, value = word.partition("=") if word.startswith("--") else (before, "", word)
        if name and option.startswith("-") and name in (value, value.partition(":")[0]):
            return option
    return ""


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
    message = message.replace("Unable to parse input string as an integer, exceeded maximum size", _WHOLE)
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
    from simperf.errors import printable
    from simperf.report.terminal import fold_message

    try:
        print(fold_message(printable(text)), file=sys.stderr, flush=True)  # noqa: T201
    except (OSError, ValueError):  # nobody reads it, or there is no room: the exit code says it alone
        _discard(sys.stderr)
