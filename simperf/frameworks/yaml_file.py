"""Values of YAML files with their lines, within limits; the reader is PyYAML, an optional package."""

from __future__ import annotations

from typing import Any

from simperf.errors import InputError, Problem
from simperf.file_bytes import read_text
from simperf.files import DEEPEST

__all__ = ["read_yaml"]

#: bytes of a file, and values that it stands for where some are named again [B, 1]
_MOST_BYTES, _MOST_VALUES = 256 * 1024, 20_000


def read_yaml(path: str) -> list[tuple[str, Any, int]]:
    """Key, value and line of each value of a YAML file that is no table; lists are values.

    Parameters
    ----------
    path : str
        Keys are joined by dots.

    Raises
    ------
    InputError
        It cannot be read, is no YAML or too large, or PyYAML is not installed.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        message, expected = "YAML needs PyYAML", "pip install pyyaml; or key=value arguments"
        raise InputError(Problem(message, file=path, expected=expected)) from None
    expected = "a YAML file of NeMo"
    text = read_text(path, most=_MOST_BYTES, expected=expected)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        constructor = yaml.SafeLoader("")
        found: list[tuple[str, Any, int]] = []
        rest: list[tuple[str, Any, int]] = [("", root, 0)]
        while rest:
            name, node, depth = rest.pop()
            if len(found) + len(rest) > _MOST_VALUES or depth > DEEPEST:
                message = f"more than {_MOST_VALUES:,} values, or tables in one another to a depth of {DEEPEST}"
                raise InputError(Problem(message, file=path, expected=expected))
            if isinstance(node, yaml.MappingNode):
                rest += [
                    (f"{name}.{key.value}" if name else str(key.value), value, depth + 1)
                    for key, value in reversed(node.value)
                    if isinstance(key, yaml.ScalarNode)
                ]
            elif isinstance(node, yaml.SequenceNode):
                if all(isinstance(one, yaml.ScalarNode) for one in node.value):
                    values = [constructor.construct_object(one) for one in node.value]
                    found.append((name, values, node.start_mark.line + 1))
                else:
                    rest += [(f"{name}.{index}", one, depth + 1) for index, one in enumerate(node.value)]
            elif isinstance(node, yaml.ScalarNode):
                found.append((name, constructor.construct_object(node), node.start_mark.line + 1))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = f"not valid YAML: {getattr(error, 'problem', None) or 'it cannot be read'}"
        line = mark.line + 1 if mark is not None else 0
        raise InputError(Problem(message, file=path, line=line, expected=expected)) from None
    except (RecursionError, ValueError):
        message = "not valid YAML: values in one another without an end, or no number"
        raise InputError(Problem(message, file=path, expected=expected)) from None
    return found
