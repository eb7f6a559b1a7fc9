"""The table of operation types, and building one from a file's table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, get_args, get_type_hints

from simperf.errors import InputError, Problem, SimperfError, UnitError, nearest
from simperf.registry import Registry
from simperf.units import parse
from simperf.workload.op import Op

__all__ = ["OP_KINDS", "REMOVED", "make_op", "op_parameters", "sizes"]

#: operation type -> module of `simperf.workload.kinds` that registers it, imported when it is asked for
MODULES = {
    "attention": "attention",
    "latent_attention": "attention",
    "bmm": "dense",
    "conv2d": "dense",
    "linear": "dense",
    "matmul": "dense",
    "moe": "experts",
    "copy": "memory",
    "custom": "memory",
    "embedding": "memory",
    "fill": "memory",
    "abs": "pointwise",
    "add": "pointwise",
    "cos": "pointwise",
    "div": "pointwise",
    "dropout": "pointwise",
    "elementwise": "pointwise",
    "exp": "pointwise",
    "gelu": "pointwise",
    "log": "pointwise",
    "maximum": "pointwise",
    "mul": "pointwise",
    "neg": "pointwise",
    "relu": "pointwise",
    "sigmoid": "pointwise",
    "silu": "pointwise",
    "sin": "pointwise",
    "sqrt": "pointwise",
    "sub": "pointwise",
    "tanh": "pointwise",
    "batchnorm": "rows",
    "cross_entropy": "rows",
    "layernorm": "rows",
    "pool2d": "rows",
    "reduction": "rows",
    "softmax": "rows",
    "amax": "scaling",
    "block_scaled_matmul": "scaling",
    "quantize": "scaling",
    "adam": "update",
    "sgd": "update",
}

#: operation type -> constructor from shapes to `Op`
OP_KINDS: Registry[Callable[..., Op]] = Registry(
    "op kind", package="simperf.workload.kinds", group="simperf.ops", modules=MODULES
)

#: operation type -> keys that it had once, each with what is written instead
REMOVED = {"attention": {"flash": 'library = "unfused" for false, no key for true'}}

#: keys of an operation's table that name and wire it, whatever its type
_COMMON = ("op", "name", "inputs", "outputs")
_LARGEST = 10**15
#: parameters that have a dimension: a file may write them with a unit
_UNITS = {"flops": "FLOP", "nbytes": "B", "written": "B"}


def sizes(**values: int) -> None:
    """Refuse sizes that are not whole, positive and of this world, all of them at once."""
    problems = [
        Problem("must be a whole number, 1 or more", key=key, value=repr(value))
        for key, value in values.items()
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST
    ]
    if problems:
        raise InputError(problems)


def op_parameters(kind: str) -> Mapping[str, inspect.Parameter]:
    """Parameters that operations of `kind` take, with their types and defaults, in order.

    Examples
    --------
    >>> list(op_parameters("matmul"))
    ['m', 'n', 'k', 'dtype']
    """
    parameters = inspect.signature(OP_KINDS[kind], eval_str=True).parameters
    return {name: one for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD}


def make_op(spec: Mapping[str, Any], *, key: str = "") -> Op:
    """Build an operation from a table such as ``{op = "matmul", m = 64, n = 64, k = 64}``.

    Parameters
    ----------
    spec : mapping
        ``op`` names the type; ``name``, ``inputs`` and ``outputs`` wire it; all else are the
        type's own parameters (`op_parameters`).
    key : str
        Where the table stands, to begin the keys of messages with.

    Raises
    ------
    InputError
        Unknown type or parameter, missing parameter, wrong type or size; all at once.

    Examples
    --------
    >>> make_op({"op": "matmul", "m": 4, "n": 5, "k": 6, "name": "y"}).flops
    240.0
    >>> make_op({"op": "matmul", "m": 4, "n": 5, "K": 6})
    Traceback (most recent call last):
        ...
    simperf.errors.InputError: K: matmul has no parameter 'K'; did you mean 'k'?
        expected: m, n, k, dtype, name, inputs, outputs
    k: matmul needs 'k'
    """
    prefix = f"{key}." if key else ""
    kind = spec.get("op")
    if not isinstance(kind, str):
        raise InputError(Problem("which operation? 'op' is missing", key=f"{prefix}op", expected=", ".join(OP_KINDS)))
    if kind not in OP_KINDS:
        raise InputError(Problem(f"unknown op kind {kind!r}{nearest(kind, OP_KINDS)}", key=f"{prefix}op"))
    parameters = op_parameters(kind)
    hints = get_type_hints(OP_KINDS[kind])
    problems: list[Problem] = []
    given: dict[str, Any] = {}
    for name, value in spec.items():
        if name in _COMMON:
            continue
        if name not in parameters or name in REMOVED.get(kind, {}):
            problems.append(_unknown(kind, name, value, parameters, key=prefix + name))
        elif name in _UNITS and isinstance(value, str):
            try:
                given[name] = parse(value, _UNITS[name])
            except UnitError as error:
                problems.append(Problem(str(error), key=prefix + name, value=repr(value)))
        elif not _fits(value, hints[name]):
            message = f"{name!r} of {kind} has the wrong type"
            problems.append(Problem(message, key=prefix + name, value=repr(value), expected=_type_name(hints[name])))
        else:
            given[name] = tuple(value) if isinstance(value, list) else value
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in spec:
            problems.append(Problem(f"{kind} needs {name!r}", key=prefix + name))
    wiring = {name: _names(spec.get(name, ()), prefix + name, problems) for name in ("inputs", "outputs")}
    label = spec.get("name", kind)
    if not isinstance(label, str) or not label:
        problems.append(Problem("a name is expected", key=f"{prefix}name", value=repr(label)))
    if problems:
        raise InputError(problems)
    try:
        op = OP_KINDS[kind](**given)
    except InputError as error:
        raise InputError([_moved(problem, prefix) for problem in error.problems]) from None
    except SimperfError as error:
        raise InputError(Problem(str(error), key=key or "op")) from None
    return op.named(label, wiring["inputs"], outputs=wiring["outputs"])


def _unknown(kind: str, name: str, value: object, parameters: Mapping[str, object], *, key: str) -> Problem:
    """The problem of a key that operations of a kind do not have, or no longer have."""
    if name in REMOVED.get(kind, {}):
        message = f"{kind} has no such key any more"
        return Problem(message, key=key, value=repr(value), expected=REMOVED[kind][name])
    message = f"{kind} has no parameter {name!r}{_meant(name, parameters)}"
    return Problem(message, key=key, expected=", ".join([*parameters, *_COMMON[1:]]))


def _meant(name: str, parameters: Mapping[str, object]) -> str:
    hint = nearest(name, parameters)
    return hint if "did you mean" in hint else ""


def _moved(problem: Problem, prefix: str) -> Problem:
    return Problem(problem.message, key=prefix + problem.key, value=problem.value, expected=problem.expected)


def _names(value: object, key: str, problems: list[Problem]) -> tuple[str, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value):
        return tuple(value)
    problems.append(Problem("a list of tensor names is expected", key=key, value=repr(value)))
    return ()


def _fits(value: object, hint: Any) -> bool:
    """Whether a value from a file may stand for a parameter annotated with `hint`."""
    options = get_args(hint) if NoneType in get_args(hint) else (hint,)
    if hint is int or int in options:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint is float or float in options:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint in (str, bool):
        return isinstance(value, hint)
    return isinstance(value, list | tuple) and all(isinstance(v, int) and not isinstance(v, bool) for v in value)


def _type_name(hint: Any) -> str:
    names = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
    return names.get(hint, "a whole number" if int in get_args(hint) and NoneType in get_args(hint) else "a list")
