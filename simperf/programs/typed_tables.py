"""Tables of a file that are dataclasses: each key a field, a table inside it a field that is a dataclass itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import ValidationError

from simperf.errors import Problem, nearest
from simperf.file_problems import problems_of
from simperf.files import TomlFile
from simperf.programs.adapters import adapter
from simperf.programs.parameters import Parameter, field_types, file_value
from simperf.units import Unit

__all__ = ["FieldValue", "field_values", "table_type", "written_fields", "written_value"]

Key = tuple[str | int, ...]


class FieldValue(NamedTuple):
    """A field of a dataclass that a file sets.

    Parameters
    ----------
    kind : type
        The dataclass.
    field : str
    value : object
        As its `Parameter` has it.
    written : object
        As the file says it.
    at : tuple
        Key path in the file.
    """

    kind: type[Any]
    field: str
    value: Any
    written: Any
    at: Key


def table_type(hint: Any) -> type[Any] | None:
    """The dataclass that a field of this annotation is a table of, or an array of tables; None for a plain value."""
    if get_origin(hint) is tuple:
        hint = get_args(hint)[0]
    return hint if isinstance(hint, type) and is_dataclass(hint) else None


def written_fields(value: Any, base: Any) -> dict[str, Any]:
    """The table of a dataclass: the fields in which `value` differs from `base`, as a file says them.

    Examples
    --------
    >>> from simperf.training.strategies import DDP
    >>> written_fields(DDP(bucket=40e6, overlap=False), DDP())
    {'bucket': '40000000.0 B', 'overlap': False}
    """
    found: dict[str, Any] = {}
    kind: Any = type(value)
    for name, hint in field_types(kind).items():
        one, usual = getattr(value, name), getattr(base, name)
        if one == usual:
            continue
        inner = table_type(hint)
        if inner is not None:
            several = inner is not hint
            found[name] = [written_fields(each, inner()) for each in one] if several else written_fields(one, usual)
        else:
            found[name] = written_value(kind, name, one)
    return found


def written_value(kind: Any, field: str, value: Any) -> Any:
    """A field of a dataclass as a file says it: numbers, which are in SI units, with their unit.

    Examples
    --------
    >>> from simperf.training.strategies import DDP
    >>> written_value(DDP, "bucket", 40e6), written_value(DDP, "bucket", "40 MB")
    ('40000000.0 B', '40 MB')
    """
    hint = field_types(kind)[field]
    item = get_args(hint)[0] if get_origin(hint) is tuple else hint
    unit = next((each.dimension for each in get_args(item)[1:] if isinstance(each, Unit)), "1")

    def written(one: Any) -> Any:
        number = isinstance(one, int | float) and not isinstance(one, bool)
        return f"{one!r} {unit}" if number and unit != "1" else one

    found = file_value(kind, field, value)
    return [written(each) for each in found] if isinstance(found, list) else written(found)


def field_values(kind: Any, data: Any, toml: TomlFile, at: Key, problems: list[Problem]) -> Iterator[FieldValue]:
    """Values that the table `data` at key path `at` sets of the dataclass `kind`, and of the dataclasses in it.

    What is wrong is added to `problems`.
    """
    if not isinstance(data, Mapping):
        problems.append(toml.problem(at, "a table is expected", value=data, expected=f"[{'.'.join(map(str, at))}]"))
        return
    hints = field_types(kind)
    for name, value in data.items():
        place = (*at, name)
        if name not in hints:
            problems.append(toml.problem(place, f"{kind.__name__} has no option {name!r}{nearest(name, hints)}"))
            continue
        inner = table_type(hints[name])
        if inner is not None and get_origin(hints[name]) is tuple:
            if not isinstance(value, list) or len(value) != 1:
                problems.append(toml.problem(place, "one table is expected", expected=f"one [[{'.'.join(place)}]]"))
                continue
            yield from field_values(inner, value[0], toml, (*place, 0), problems)
        elif inner is not None:
            yield from field_values(inner, value, toml, place, problems)
        else:
            try:
                parameter = Parameter.of_field(kind, name)
                yield FieldValue(kind, name, adapter(parameter).validate_python(value), value, place)
            except ValidationError as error:
                problems += problems_of(error, toml, place, known=[])
