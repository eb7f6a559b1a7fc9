"""Programs by name: what a scenario file may ask for under ``[program] use = ...``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache, wraps
from typing import Annotated, Any, Literal, NamedTuple, Protocol, get_args, get_origin, get_type_hints

from annotated_types import Ge

from simperf.errors import InputError, Problem, SimperfError, nearest
from simperf.execution.frontend import Program
from simperf.registry import Registry

__all__ = [
    "PROGRAMS",
    "Count",
    "Options",
    "Parameter",
    "ProgramSpec",
    "Rules",
    "Unless",
    "field_types",
    "field_value",
    "file_value",
    "program",
]

#: how many, one at least; a scenario file is held to it
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a program: its annotation (with its `Unit`), default and meaning, and the type that it is of."""

    name: str
    annotation: Any
    default: Any
    doc: str
    section: str = ""

    @classmethod
    def of_field(cls, kind: Any, field: str, *, name: str = "", default: Any = MISSING) -> Parameter:
        """The parameter that sets a field of a dataclass; files say lists for its tuples, and auto for its None.

        Parameters
        ----------
        kind : type
            The dataclass, whose docstring says what its fields mean.
        field : str
        name : str
            Of the parameter; the field's by default.
        default : object
            Instead of the field's.
        """
        hint = field_types(kind)[field]
        if default is MISSING:
            one = next(each for each in fields(kind) if each.name == field)
            factory: Any = one.default_factory
            default = one.default if factory is MISSING else factory()
        if default is MISSING:
            raise SimperfError(f"the field {field!r} of {kind.__name__} needs a default, such as `n: int = 100`")
        if hint == bool | None:
            hint, default = _AUTO, _WORDS[default]
        elif get_origin(hint) is tuple:
            hint, default = list[get_args(hint)[0]], list(default)  # type: ignore[misc]
        elif get_origin(hint) is not None and issubclass(_plain(get_origin(hint)), Mapping):
            hint, default = dict[str, Any], dict(default)
        return cls(name or field, hint, default, parameter_docs(kind.__doc__ or "").get(field, ""), kind.__name__)


#: a choice that is made where nobody makes it
_AUTO = Literal["auto", "yes", "no"]
_WORDS = {None: "auto", True: "yes", False: "no"}


@cache
def field_types(kind: Any) -> dict[str, Any]:
    """Annotation of each field of a dataclass, with its unit."""
    return get_type_hints(kind, include_extras=True)


def _plain(origin: Any) -> type[Any]:
    return origin if isinstance(origin, type) else object


def field_value(kind: Any, field: str, value: Any) -> Any:
    """What a field of a dataclass is, where a parameter made by `Parameter.of_field` is `value`."""
    hint = field_types(kind)[field]
    if hint == bool | None:
        return {word: choice for choice, word in _WORDS.items()}[value]
    return tuple(value) if get_origin(hint) is tuple else value


def file_value(kind: Any, field: str, value: Any) -> Any:
    """What the parameter made by `Parameter.of_field` is, where a field of a dataclass is `value`."""
    if field_types(kind)[field] == bool | None:
        if value is not None and not isinstance(value, bool):
            message = "a value of another type is expected"
            raise InputError(Problem(message, key=field, value=repr(value), expected="True, False, or None for auto"))
        return _WORDS[value]
    return list(value) if isinstance(value, tuple) else value


class Unless(NamedTuple):
    """Parameters that have an effect only under a condition.

    Parameters
    ----------
    used : bool
        Whether the condition holds.
    names : sequence of str
        The parameters.
    why : str
        Why they have no effect where it does not.
    expected : str
        What would give them one.
    """

    used: bool
    names: tuple[str, ...]
    why: str
    expected: str


#: from the value of each parameter to what has an effect only together with something else
Rules = Callable[[Mapping[str, Any]], Iterable[Unless]]


def _no_rules(given: Mapping[str, Any]) -> Iterable[Unless]:
    return ()


class Options(Protocol):
    """What a program takes as one object: its parameters, and the object that their values make."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """By name."""

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all parameters; `folder` is where paths begin."""

    def made(self, given: Mapping[str, Any]) -> Any:
        """The object, of values of parameters; the others have their defaults."""


class Fields:
    """A dataclass whose fields are the parameters of a program."""

    def __init__(self, kind: type[Any]) -> None:
        self._kind = kind
        self.parameters = {one.name: Parameter.of_field(kind, one.name) for one in fields(kind)}

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all fields."""
        return {name: one.default for name, one in self.parameters.items()} | dict(given)

    def made(self, given: Mapping[str, Any]) -> Any:
        """The dataclass, of values of its fields."""
        given = self.completed(given)
        return self._kind(**{name: field_value(self._kind, name, value) for name, value in given.items()})


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program and what may be set about it.

    Parameters
    ----------
    name : str
    function : callable
        Takes a `Session` and keyword arguments, returns a generator over verbs. A program that takes a dataclass in
        their place is given one that is made of them.
    parameters : mapping of str to Parameter
    title : str
        First line of its docstring.
    rules : callable, optional
        Which parameters have no effect, from the values of all.
    """

    name: str
    function: Callable[..., Program]
    parameters: Mapping[str, Parameter]
    title: str
    rules: Rules = _no_rules
    options: Options | None = None

    @classmethod
    def of(cls, name: str, function: Callable[..., Any], *, options: Options | None = None) -> ProgramSpec:
        """Read a function's signature and docstring.

        Parameters
        ----------
        name : str
        function : callable
            Its parameters after the session have annotations and defaults; or it has one, a dataclass.
        options : Options, optional
            Parameters of the object that it takes; by default the fields of its dataclass.

        Raises
        ------
        SimperfError
            It is no generator function, or a parameter has no annotation or no default.
        """
        if not inspect.isgeneratorfunction(function):
            raise SimperfError(f"the program {name!r} is no generator function: it has no yield in it")
        hints = get_type_hints(function, include_extras=True)
        docs = parameter_docs(inspect.getdoc(function) or "")
        title = (inspect.getdoc(function) or name).splitlines()[0]
        taken = list(inspect.signature(function).parameters.values())[1:]
        if options is None and len(taken) == 1 and is_dataclass(kind := hints.get(taken[0].name)):
            options = Fields(kind)  # type: ignore[arg-type]
        if options is not None:
            return cls(name, _of_keywords(name, function, options), options.parameters, title, options=options)
        parameters = {}
        for parameter in taken:
            if parameter.name not in hints or parameter.default is inspect.Parameter.empty:
                raise SimperfError(
                    f"the parameter {parameter.name!r} of the program {name!r} needs an annotation and a default, "
                    "such as `n: int = 100` or `size: Bytes = 1e6`"
                )
            parameters[parameter.name] = Parameter(
                parameter.name, hints[parameter.name], parameter.default, docs.get(parameter.name, "")
            )
        return cls(name, function, parameters, title)

    def idle(self, given: Mapping[str, Any]) -> frozenset[str]:
        """Parameters that have no effect beside the others, which are `given` or have their defaults."""
        values = {name: one.default for name, one in self.parameters.items()} | dict(given)
        return frozenset(name for rule in self.rules(values) if not rule.used for name in rule.names)


def _of_keywords(name: str, function: Callable[..., Program], options: Options) -> Callable[..., Program]:
    """The program that makes the object which `function` takes of keyword arguments."""

    @wraps(function)
    def play(m: Any, **given: Any) -> Program:
        for key in given:
            if key not in options.parameters:
                raise TypeError(f"the program {name!r} has no parameter {key!r}{nearest(key, options.parameters)}")
        return (yield from function(m, options.made(given)))

    return play


def parameter_docs(doc: str) -> dict[str, str]:
    """First description line of each parameter of a NumPy-style docstring."""
    found: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(doc).partition("Parameters\n")[2].splitlines()[1:]:
        if line and not line.startswith(" "):
            name = line.partition(":")[0].strip()
        elif name and line.strip() and name not in found:
            found[name] = line.strip()
    return found


#: name of a program -> module of `simperf.programs` that it is in; only that one is imported when it is run
MODULES = {
    "async-chain": "asynchrony",
    "what-blocks": "asynchrony",
    "launch-queue": "asynchrony",
    "run-ahead": "asynchrony",
    "forward-passes": "asynchrony",
    "expression": "asynchrony",
    "copy-overlap": "copies",
    "host-copy": "copies",
    "epoch": "epochs",
    "checkpointed-training": "epochs",
    "memory-reads": "hardware",
    "pointer-chase": "hardware",
    "disk-reads": "hardware",
    "sends": "hardware",
    "round-trips": "hardware",
    "server-loss": "loss",
    "two-devices": "parallel",
    "streams": "parallel",
    "timers": "parallel",
    "input-pipeline": "pipeline",
    "failing-job": "reality",
    "recommender": "recommender",
    "operations": "regimes",
    "additions": "regimes",
    "decoder-forward": "regimes",
    "servers-or-ring": "rivals",
    "parameter-server": "servers",
    "training-step": "step",
    "all-reduce": "synchronisation",
    "train": "training",
    "stragglers": "uneven",
    "link-flaps": "uneven",
}

PROGRAMS: Registry[ProgramSpec] = Registry(
    "program", package="simperf.programs", group="simperf.programs", modules=MODULES
)


def program(
    name: str, *, rules: Rules = _no_rules, options: Options | None = None
) -> Callable[[Callable[..., Program]], Callable[..., Program]]:
    """Register a generator function as the program `name`.

    Parameters
    ----------
    name : str
    rules : callable, optional
        Which of its parameters have no effect, from the values of all.
    options : Options, optional
        Parameters of the one object that it takes beside the session.
    """

    def decorate(function: Callable[..., Program]) -> Callable[..., Program]:
        PROGRAMS.add(name, replace(ProgramSpec.of(name, function, options=options), rules=rules))
        return function

    return decorate
