"""Programs that people write in a file of their own: ``python = "train.py:step"``."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from inspect import unwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from simperf.errors import InputError, Problem, SimperfError, nearest
from simperf.file_bytes import read_bytes
from simperf.programs import ProgramSpec

__all__ = ["failure", "invalid", "load_module", "load_program", "program_source", "split_reference", "unfit"]

_MOST_BYTES = 4 * 1024 * 1024  # of a Python file
_PYTHON = "a program of Python"


def load_program(reference: str, folder: str | os.PathLike[str] = ".") -> ProgramSpec:
    """Load a program from a Python file.

    Parameters
    ----------
    reference : str
        ``"file.py:function"``, the file relative to `folder`.
    folder : path
        Folder of the scenario.

    Raises
    ------
    InputError
        No such file or function, code that does not run, or a function that is no program.
    """
    name, function = split_reference(reference)
    path = Path(folder) / name
    module = load_module(path)
    found = getattr(module, function, None)
    if not callable(found):
        own = [key for key, value in vars(module).items() if callable(value) and value.__module__ == module.__name__]
        raise InputError(Problem(f"{path} has no function {function!r}{nearest(function, own)}"))
    try:
        return ProgramSpec.of(reference, found)
    except (SimperfError, NameError) as error:
        line = getattr(getattr(found, "__code__", None), "co_firstlineno", 0)
        raise InputError(unfit(error, function, path, line)) from None


def split_reference(reference: str) -> tuple[str, str]:
    """File and function of ``"file.py:function"``.

    Raises
    ------
    InputError
        It names no function.
    """
    name, colon, function = reference.rpartition(":")
    if not colon or not name or not function.isidentifier():
        raise InputError(Problem(f"{reference!r} names no function", expected='python = "file.py:function"'))
    return name, function


def unfit(error: Exception, function: str, path: Path, line: int) -> Problem:
    """A function that is no program."""
    expected = f"def {function}(m, *, n: int = 100): ... yield launch(kernel, m.gpu())"
    return Problem(str(error), file=str(path), line=line, expected=expected)


def load_module(path: Path) -> ModuleType:
    """Run a Python file of people's own, which may import its neighbours.

    Raises
    ------
    InputError
        There is none, or its code does not run.
    """
    source = program_source(path)
    module = ModuleType(f"simperf_own_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses and the like look their own module up
    linecache.checkcache(str(path))
    sys.path.insert(0, str(path.parent))
    try:
        exec(compile(source, str(path), "exec"), vars(module))
    except (SyntaxError, ValueError) as error:  # ValueError: null bytes
        raise InputError(invalid(error, path)) from None
    except (Exception, SystemExit) as error:
        raise InputError(_blame(error, str(path), "while it was loaded")) from None
    finally:
        sys.path.remove(str(path.parent))
    return module


def invalid(error: BaseException, path: Path) -> Problem:
    """A file that is no Python."""
    if not isinstance(error, SyntaxError):
        return Problem(f"not valid Python: {error}", file=str(path), expected=_PYTHON)
    shown, line = (error.text or "").strip()[:120], error.lineno or 0
    message, file = f"not valid Python: {error.msg}", error.filename or str(path)
    return Problem(message, file=file, line=line, value=shown, expected=_PYTHON)


def program_source(path: Path) -> bytes:
    """The text of a Python file.

    Raises
    ------
    InputError
        There is none, or it cannot be read.
    """
    if not path.exists():
        others = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        hint = nearest(path.name, others) if others else ""
        raise InputError(Problem(f"there is no Python file {str(path)!r}{hint}"))
    return read_bytes(path, most=_MOST_BYTES, expected="a Python file")


def failure(error: BaseException, spec: ProgramSpec) -> InputError:
    """Say in which line of the program `spec` the exception `error` was raised."""
    path = unwrap(spec.function).__code__.co_filename
    return InputError(_blame(error, path, f"in the program {spec.name!r}"))


def _blame(error: BaseException, path: str, when: str) -> Problem:
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename == path]
    frame: Any = mine[-1] if mine else None
    return Problem(
        f"{type(error).__name__} {when}: {error}",
        file=path,
        line=frame.lineno if frame else 0,
        value=frame.line if frame and frame.line else "",
    )
