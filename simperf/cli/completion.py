"""Names that a shell offers where an argument is typed; `simperf --install-completion` turns it on."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "collective_names",
    "file_kinds",
    "lesson_names",
    "machine_names",
    "model_names",
    "page_names",
    "part_names",
    "program_names",
    "scenario_names",
]


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def scenario_names(incomplete: str) -> list[str]:
    """Shipped scenarios; where none fits, the shell offers files."""
    from simperf.scenario import shipped_scenarios

    return _matching(shipped_scenarios(), incomplete)


def part_names(incomplete: str) -> list[str]:
    """Everything in the catalog."""
    from simperf.hardware import KINDS, Catalog

    catalog = Catalog.load()
    return _matching(dict.fromkeys(name for kind in KINDS for name in catalog.names(kind)), incomplete)


def machine_names(incomplete: str) -> list[str]:
    """Servers and clusters of the catalog."""
    from simperf.hardware import Catalog

    catalog = Catalog.load()
    return _matching([*catalog.names("server"), *catalog.names("cluster")], incomplete)


def model_names(incomplete: str) -> list[str]:
    """Models of the zoo: traced ones, and transformers by their dimensions."""
    from simperf.workload import zoo
    from simperf.workload.transformers.shipped import shipped_transformers

    return _matching(dict.fromkeys([*zoo.names(), *shipped_transformers()]), incomplete)


def program_names(incomplete: str) -> list[str]:
    """Programs that a scenario may run."""
    from simperf.programs import PROGRAMS

    return _matching(PROGRAMS, incomplete)


def collective_names(incomplete: str) -> list[str]:
    """Collectives."""
    from simperf.collectives.plan import COLLECTIVES

    return _matching(COLLECTIVES, incomplete)


def lesson_names(incomplete: str) -> list[str]:
    """Lessons."""
    from simperf.teach import lessons

    return _matching(lessons(), incomplete)


def page_names(incomplete: str) -> list[str]:
    """Pages that can be opened: lessons, and the playground."""
    from simperf.teach import lessons
    from simperf.teach.playground import PLAYGROUND

    return _matching([*lessons(), PLAYGROUND], incomplete)


def file_kinds(incomplete: str) -> list[str]:
    """Kinds of files that have a schema."""
    from simperf.study.file_schemas import schema_kinds

    return _matching(schema_kinds(), incomplete)
