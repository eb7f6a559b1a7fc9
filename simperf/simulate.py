"""A program that stands in the session itself, such as a cell of a notebook, simulated without a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from simperf.errors import InputError, Problem
from simperf.files import TomlFile
from simperf.programs import ProgramSpec
from simperf.programs.adapters import read_parameters
from simperf.results import Result
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.units import Unit

__all__ = ["simulate"]

#: keywords of `simulate`, which a program's parameters cannot be called
_OPTIONS = ("machine", "frontend", "mode", "seed", "name")


def simulate(
    program: Callable[..., Any],
    /,
    *,
    machine: str | Mapping[str, Any] = "desktop-1gpu",
    frontend: str | Mapping[str, Any] = "pytorch",
    mode: str = "eager",
    seed: int = 0,
    name: str = "",
    **parameters: Any,
) -> Result:
    """Simulate a generator over verbs on a machine, with its timeline.

    Parameters
    ----------
    program : callable
        Takes a `Session` and, by keyword, what `parameters` gives; yields verbs.
    machine : str or mapping
        A name of the catalog, or a ``[machine]`` table.
    frontend : str or mapping
        A name of the catalog, or a ``[frontend]`` table.
    mode : str
        How operations reach the devices: ``"eager"``, ``"synchronous"``, ``"scripted"``, ``"captured"``, ...
    seed : int
    name : str
        Of the result; default: the function's.
    **parameters
        Of the program: quantities in SI units, or texts such as ``"20 us"``, where its annotations say their unit.

    Raises
    ------
    InputError
        The function is no program, or one of its parameters is called as an option here; or a name or parameter is not
        known.
    SimperfError
        As `simperf.run`.

    Examples
    --------
    >>> from simperf import Kernel, launch, synchronize
    >>> def chain(m, *, n: int = 3):
    ...     for _ in range(n):
    ...         yield launch(Kernel("add", time=20e-6, launch=10e-6), m.gpu())
    ...     yield synchronize(m.gpu())
    >>> round(simulate(chain, frontend={"use": "pytorch", "result": "0 s"}).time * 1e6)
    70
    """
    if not callable(program):
        raise InputError(Problem("a generator function is expected", value=repr(program), expected="def step(m): ..."))
    spec = ProgramSpec.of(program.__name__, program)
    if taken := [key for key in _OPTIONS if key in spec.parameters]:
        message = "the program's parameter has the name of an option of simulate, which would take its value"
        raise InputError([Problem(message, key=key, expected="another name of the parameter") for key in taken])
    for key, value in (("machine", machine), ("frontend", frontend)):
        if not isinstance(value, str | Mapping):
            message = f"a {key} is expected, not {type(value).__name__}"
            raise InputError(Problem(message, key=key, value=repr(value), expected=f"a name, or a [{key}] table"))
    base = make_scenario(
        {
            "machine": {"use": machine} if isinstance(machine, str) else dict(machine),
            "frontend": {"use": frontend} if isinstance(frontend, str) else dict(frontend),
            "execution": {"mode": mode},
            "program": {"use": "async-chain"},
            "run": {"seed": seed},
        }
    )
    problems: list[Problem] = []
    said = {name: _said(spec, name, value) for name, value in parameters.items()}
    values = read_parameters(spec, said, TomlFile("", {}, ""), ("program",), problems)
    if problems:
        raise InputError(problems)
    title = name or spec.name
    data = {**base.data, "program": {"python": spec.name, **said}}
    return run(replace(base, name=title, title=title, program=spec, parameters=values, data=data))


def _said(spec: ProgramSpec, name: str, value: Any) -> Any:
    """A number for a quantity as a file would say it: in a program of Python, numbers are in SI units."""
    parameter = spec.parameters.get(name)
    if parameter is None or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    units = (entry.dimension for entry in get_args(parameter.annotation)[1:] if isinstance(entry, Unit))
    dimension = next(units, "1")
    return value if dimension == "1" else f"{value!r} {dimension}"
