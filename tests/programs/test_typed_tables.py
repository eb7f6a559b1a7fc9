"""Dataclasses as tables: values with their units, and back; what is wrong with its key."""

from dataclasses import dataclass, field

import pytest

from simperf.files import TomlFile
from simperf.programs.parameters import field_value
from simperf.programs.typed_tables import field_values, table_type, written_fields, written_value
from simperf.units import Bytes, Seconds

TOML = TomlFile("a.toml", {}, "")


@dataclass(frozen=True)
class Inner:
    """A table.

    Parameters
    ----------
    count : int
        how many
    """

    count: int = 1


@dataclass(frozen=True)
class Outer:
    """A table of tables.

    Parameters
    ----------
    size : float
        bytes
    waits : tuple of float
        times
    names : tuple of str
        words
    eager : bool or None
        a choice
    inner : Inner
        a table
    several : tuple of Inner
        an array of tables
    """

    size: Bytes = 1.0
    waits: tuple[Seconds, ...] = ()
    names: tuple[str, ...] = ()
    eager: bool | None = None
    inner: Inner = field(default_factory=Inner)
    several: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("size", 2.5e6, "2500000.0 B"),
        ("size", "4 MB", "4 MB"),
        ("waits", (0.5, "2 ms"), ["0.5 s", "2 ms"]),
        ("names", ("a", "b"), ["a", "b"]),
        ("eager", None, "auto"),
        ("eager", True, "yes"),
    ],
)
def test_a_value_is_written_with_its_unit(name, value, written):
    assert written_value(Outer, name, value) == written


def test_what_differs_is_written_and_read_back():
    made = Outer(2.5e6, (0.5, 2e-3), ("a",), False, Inner(3), (Inner(4),))
    table = written_fields(made, Outer())
    assert written_fields(Outer(), Outer()) == {}
    assert table["inner"] == {"count": 3}
    assert table["several"] == [{"count": 4}]
    problems = []
    read = {
        (one.kind, one.field, one.at): field_value(one.kind, one.field, one.value)
        for one in field_values(Outer, table, TOML, ("job",), problems)
    }
    assert problems == []
    assert read == {
        (Outer, "size", ("job", "size")): 2.5e6,
        (Outer, "waits", ("job", "waits")): (0.5, 2e-3),
        (Outer, "names", ("job", "names")): ("a",),
        (Outer, "eager", ("job", "eager")): False,
        (Inner, "count", ("job", "inner", "count")): 3,
        (Inner, "count", ("job", "several", 0, "count")): 4,
    }


@pytest.mark.parametrize(
    ("table", "key", "words"),
    [
        (3, "job", "a table is expected"),
        ({"sise": 1}, "job.sise", "Outer has no option 'sise'; did you mean 'size'"),
        ({"inner": {"count": "many"}}, "job.inner.count", "a value of another type is expected"),
        ({"several": []}, "job.several", "one table is expected"),
        ({"several": [{}, {}]}, "job.several", "one table is expected"),
        ({"size": "3 s"}, "job.size", "a size is expected"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(table, key, words):
    problems = []
    assert list(field_values(Outer, table, TOML, ("job",), problems)) == []
    assert [one.key for one in problems] == [key]
    assert words in problems[0].message


def test_types_of_tables():
    assert [table_type(hint) for hint in (Inner, tuple[Inner, ...], int, tuple[int, ...])] == [Inner, Inner, None, None]
