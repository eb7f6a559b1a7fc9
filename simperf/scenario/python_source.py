"""Programs in people's own Python files as far as their text says: found, and their parameters known, but never run."""

from __future__ import annotations

import ast
import os
import typing
from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from types import ModuleType
from typing import Any

from simperf.errors import InputError, Problem, ProgramError, SimperfError, nearest
from simperf.programs import ProgramSpec
from simperf.programs.parameters import Parameter
from simperf.scenario.python_program import invalid, program_source, split_reference, unfit

__all__ = ["read_program"]

_BUILTIN = {kind.__name__: kind for kind in (int, float, bool, str, list, dict, tuple)}
#: packages whose names annotations may have; importing them runs no code of the file's
_KNOWN_PACKAGES = ("simperf", "typing")


def read_program(reference: str, folder: str | os.PathLike[str] = ".", *, given: Sequence[str] = ()) -> ProgramSpec:
    """The program that a Python file defines, as `load_program` has it, without running the file.

    Parameters
    ----------
    reference : str
        ``"file.py:function"``, the file relative to `folder`.
    folder : path
        Folder of the scenario.
    given : sequence of str
        Parameters that a scenario gives. They are taken as they are where the text of the file does not say which the
        function has, as where it is imported or made by a decorator.

    Raises
    ------
    InputError
        No such file or function, a file that is no Python, or a function that is no program.
    """
    name, function = split_reference(reference)
    path = Path(folder) / name
    try:
        tree = ast.parse(program_source(path), str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(invalid(error, path)) from None
    defined = [one for one in _statements(tree.body) if isinstance(one, ast.FunctionDef) and one.name == function]
    if not defined:
        if function in _bound(tree):
            return _open(reference, given)
        own = [one.name for one in _statements(tree.body) if isinstance(one, ast.FunctionDef)]
        raise InputError(Problem(f"{path} has no function {function!r}{nearest(function, own)}"))
    found = defined[-1]
    if found.decorator_list or found.args.vararg or found.args.kwarg or _takes_object(found):
        return _open(reference, given)
    try:
        return ProgramSpec.of(reference, _stand_in(found, _Names(tree)))
    except SimperfError as error:
        raise InputError(unfit(error, function, path, found.lineno)) from None


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those under ``if``, ``try`` and ``with`` too."""
    for one in body:
        yield one
        for field in ("body", "orelse", "finalbody"):
            if isinstance(one, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(one, field, ()))


def _bound(tree: ast.Module) -> set[str]:
    """Names that a module imports or assigns."""
    found: set[str] = set()
    for one in _statements(tree.body):
        if isinstance(one, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in one.names}
        elif isinstance(one, ast.Assign | ast.AnnAssign | ast.ClassDef):
            found |= {node.id for node in ast.walk(one) if isinstance(node, ast.Name) and type(node.ctx) is ast.Store}
            found |= {one.name} if isinstance(one, ast.ClassDef) else set()
    return found


def _takes_object(function: ast.FunctionDef) -> bool:
    """Whether the one parameter after the session may be a dataclass, whose fields are the program's parameters."""
    taken = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs][1:]
    defaults = [*function.args.defaults, *(one for one in function.args.kw_defaults if one is not None)]
    return len(taken) == 1 and taken[0].annotation is not None and not defaults


def _open(reference: str, given: Sequence[str]) -> ProgramSpec:
    """A program whose parameters are not known."""
    return ProgramSpec(reference, _unplayed, {name: Parameter(name, Any, None, "") for name in given}, reference)


def _unplayed(*session: Any, **given: Any) -> Any:
    """What stands for the function: it is known, and was not loaded."""
    raise ProgramError("the Python file of this program was read, not run; load the scenario with its code")
    yield


def _stand_in(function: ast.FunctionDef, names: _Names) -> Any:
    """A generator function with the signature of one that stands in a file."""
    nodes = function.args
    plain = [*nodes.posonlyargs, *nodes.args]
    defaults = [*[None] * (len(plain) - len(nodes.defaults)), *nodes.defaults, *nodes.kw_defaults]
    arguments, hints = [], {}
    for index, (one, default) in enumerate(zip([*plain, *nodes.kwonlyargs], defaults, strict=True)):
        kind = Argument.POSITIONAL_OR_KEYWORD if index < len(plain) else Argument.KEYWORD_ONLY
        arguments.append(Argument(one.arg, kind, default=Argument.empty if default is None else _value(default)))
        if one.annotation is not None:
            hints[one.arg] = names.type_of(one.annotation)

    def program(*session: Any, **given: Any) -> Any:
        return (yield from _unplayed())

    stand_in: Any = program if _yields(function) else lambda: None
    stand_in.__name__ = function.name
    stand_in.__doc__ = ast.get_docstring(function)
    stand_in.__annotations__ = hints
    stand_in.__signature__ = Signature(arguments)
    return stand_in


def _yields(function: ast.FunctionDef) -> bool:
    """Whether a function is a generator: a ``yield`` of its own, not of one inside it."""
    rest: list[ast.AST] = list(function.body)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            rest += ast.iter_child_nodes(node)
    return False


def _value(node: ast.expr) -> Any:
    """A default that is written out; None for one that would have to be worked out."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


class _Names:
    """Types that a file's annotations name, as far as they are Python's own, typing's or this package's."""

    def __init__(self, tree: ast.Module) -> None:
        self._found: dict[str, Any] = dict(_BUILTIN)
        for one in _statements(tree.body):
            if isinstance(one, ast.ImportFrom) and one.level == 0 and _known(one.module or ""):
                module = _imported(one.module or "")
                for alias in one.names:
                    self._found[alias.asname or alias.name] = getattr(module, alias.name, Any)
            elif isinstance(one, ast.Import):
                for alias in one.names:
                    if _known(alias.name):
                        root = alias.name if alias.asname else alias.name.partition(".")[0]
                        self._found[alias.asname or root] = _imported(root)

    def type_of(self, node: ast.expr) -> Any:
        """The type that an annotation says; `typing.Any` for one that is not known."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return Any
        try:
            return self._resolved(node)
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            return Any

    def _resolved(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self._found[node.id]
        if isinstance(node, ast.Tuple):
            return tuple(self._resolved(each) for each in node.elts)
        if isinstance(node, ast.Attribute):
            owner = self._resolved(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr)
        if isinstance(node, ast.Subscript):
            return self._resolved(node.value)[self._resolved(node.slice)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return typing.Union[self._resolved(node.left), self._resolved(node.right)]  # noqa: UP007
        raise LookupError(ast.dump(node))


def _known(module: str) -> bool:
    return module.partition(".")[0] in _KNOWN_PACKAGES


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
