"""Target of a trace: ``module:function`` or ``file.py:function``, and the shapes of its inputs."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from simperf.errors import InputError, Problem, SimperfError, nearest
from simperf.workload.traced import InputShape

__all__ = ["blame", "load_target", "parse_input", "require_torch"]

_DTYPES = ("float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
_SHAPE = re.compile(r"\s*(\d+(?:\s*[x,]\s*\d+)*)\s*(?::\s*(\w+)\s*)?$")
_EXPECTED = "BATCHxSIZExSIZE..., as in 32x3x224x224, or 8x1024:int64 for tokens"
_LARGEST = 2**31


def require_torch(
    use: str = "tracing a model runs it in PyTorch (on its meta device: no GPU and no memory)",
    *,
    enough: str = "a build for CPUs is enough",
    without: str = "The models of `simperf zoo list` need no torch.",
) -> Any:
    """Import torch, or say how to get it.

    Parameters
    ----------
    use : str
        What torch is needed for; begins the message.
    enough, without : str
        Which torch is enough, and what can be had without.

    Raises
    ------
    SimperfError
        It is not installed.
    """
    try:
        import torch
    except ImportError as error:
        lacks = "" if error.name in (None, "torch") else f" (torch is there, but not {error.name}, which it needs)"
        message = f"{use}, which is not installed{lacks}.\n    pip install torch      ({enough})\n    {without}"
        raise SimperfError(message) from None
    return torch


def parse_input(text: str) -> tuple[int, InputShape]:
    """Read ``"32x3x224x224"`` or ``"8x1024:int64"``: the batch, and the shape of one sample.

    Raises
    ------
    InputError
        Not such a shape.

    Examples
    --------
    >>> parse_input("8x1024:int64")
    (8, InputShape(shape=(1024,), dtype='int64'))
    """
    found = _SHAPE.match(text)
    if not found:
        raise InputError(Problem("is no shape", key="--input", value=repr(text), expected=_EXPECTED))
    batch, *shape = (int(size) for size in re.split(r"\s*[x,]\s*", found.group(1)))
    dtype = found.group(2) or "float32"
    problems = []
    if dtype not in _DTYPES:
        problems.append(Problem(f"no type {dtype!r}{nearest(dtype, _DTYPES)}", key="--input", value=repr(text)))
    if not all(1 <= size <= _LARGEST for size in (batch, *shape)):
        problems.append(Problem("sizes must be 1 or more", key="--input", value=repr(text), expected=_EXPECTED))
    if problems:
        raise InputError(problems)
    return batch, InputShape(tuple(shape), dtype)


def load_target(reference: str) -> Any:
    """Import what ``module:name`` or ``file.py:name`` names.

    Raises
    ------
    InputError
        No such module, file or name, or code that does not run.
    """
    name, colon, attribute = reference.rpartition(":")
    if not colon or not name or not attribute:
        problem = Problem(
            "names no function", value=repr(reference), expected="module:function or file.py:function, as in net.py:net"
        )
        raise InputError(problem)
    module = _file(Path(name)) if name.endswith(".py") else _module(name)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            known = [key for key in vars(module) if not key.startswith("_")]
            raise InputError(Problem(f"no {attribute!r} in it{nearest(attribute, known)}", file=name))
        found = getattr(found, part)
    return found


def _module(name: str) -> ModuleType:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            expected = "a module that Python can import from here, or file.py:function"
            raise InputError(Problem(f"no module {name!r}", value=name, expected=expected)) from None
        raise InputError(blame(error, "while it was imported", file=name)) from None
    except Exception as error:
        raise InputError(blame(error, "while it was imported", file=name)) from None


def _file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"simperf_traced_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(Problem("no such Python file", file=str(path), expected="the file of the model's code"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        message, shown = f"not valid Python: {error.msg}", (error.text or "").strip()
        told = Problem(message, file=str(path), line=error.lineno or 0, value=shown, expected="a module of Python")
        raise InputError(told) from None
    except Exception as error:
        raise InputError(blame(error, "while it was loaded", file=str(path))) from None
    finally:
        sys.path.remove(str(path.parent))
    return module


def blame(error: BaseException, when: str, *, file: str = "", expected: str = "", where: str = "") -> Problem:
    """Say in which line of the user's own code an exception came up: the last frame outside torch and simperf."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _own(frame.filename)]
    frame = own[-1] if own else None
    text = str(error).strip().splitlines()
    message = f"{type(error).__name__} {when}: {text[0] if text else 'without a message'}"
    return Problem(
        message + (f" (in {where})" if where else ""),
        file=frame.filename if frame else file,
        line=(frame.lineno or 0) if frame else 0,
        value=(frame.line or "") if frame else "",
        expected=expected,
    )


def _own(filename: str) -> bool:
    here = str(Path(inspect.getfile(blame)).parent)
    torch = sys.modules.get("torch")
    folder = str(Path(torch.__file__).parent) if torch is not None and torch.__file__ else here
    library = str(Path(inspect.getfile(importlib)).parent)
    return not filename.startswith((here, folder, library, "<"))
