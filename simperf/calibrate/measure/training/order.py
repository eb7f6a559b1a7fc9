"""The order of the set ``training``: rounds by priority, and in each round families in turn by the time they take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.budget import USUAL
from simperf.calibrate.measure.task import Task, check_families, note_text

__all__ = ["FAMILIES", "PlannedPoint", "in_turns", "interleaved", "spread", "training_tasks"]

#: family -> its module here, and its share of the time of a round
FAMILIES: Mapping[str, tuple[str, float]] = {
    "products": ("products", 4.0),
    "attention": ("attention", 2.0),
    "rows": ("rows", 1.0),
    "elements": ("elements", 1.0),
    "updates": ("updates", 1.0),
    "launches": ("launches", 1.0),
    "layers": ("layers", 1.0),
    "sustained": ("sustained", 0.5),
}
#: factors of a grid are spread by these bases
_BASES = (2, 3, 5, 7)


@dataclass(frozen=True, slots=True)
class PlannedPoint:
    """A point or several that may be measured.

    Parameters
    ----------
    round : int
        1 is measured first.
    title : str
        What it is, without its shape, for a note if it cannot be set up.
    make : callable
        Gives its task, or a note.
    """

    round: int
    title: str
    make: Callable[[], Task | str]


def training_tasks(bench: Bench, only: Sequence[str] = ()) -> list[tuple[str, Task | str]]:
    """All tasks of the set in their order, and notes on what cannot be measured here.

    Parameters
    ----------
    bench, only
        As for `simperf.calibrate.measure.task.tasks`, with the families that are listed here.
    """
    check_families(only, FAMILIES)
    listed: list[tuple[int, str, Task]] = []
    notes: dict[str, str] = {}
    for family, (module, _) in FAMILIES.items():
        if only and family not in only:
            continue
        for candidate in import_module(f"{__package__}.{module}").family(bench):
            try:
                made = candidate.make()
            except Exception as error:  # an operation that this torch does not have costs no other point
                told = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"[:160]
                made = note_text(candidate.title, f"not with torch {bench.torch.__version__}: {told}")
            if isinstance(made, str):
                notes.setdefault(made, family)
            else:
                listed.append((candidate.round, family, made))
    unique = {task.keys: (round_, family, task) for round_, family, task in reversed(listed)}
    listed = [one for one in listed if unique[one[2].keys][2] is one[2]]
    return [*((family, text) for text, family in notes.items()), *interleaved(listed)]


def interleaved(listed: Iterable[tuple[int, str, Task]]) -> Iterator[tuple[str, Task | str]]:
    """Tasks round by round; within one, next is the family that has had least of its share of the time.

    Parameters
    ----------
    listed : iterable of (round, family, Task)
        Of each family in the order in which they are of use.
    """
    rounds: dict[int, dict[str, list[Task]]] = {}
    for number, family, task in listed:
        rounds.setdefault(number, {}).setdefault(family, []).append(task)
    for number in sorted(rounds):
        waiting = {family: list(reversed(tasks)) for family, tasks in rounds[number].items()}
        spent = dict.fromkeys(waiting, 0.0)
        while waiting:
            family = min(waiting, key=lambda name: spent[name])
            task = waiting[family].pop()
            share = FAMILIES[family][1] if family in FAMILIES else 1.0
            spent[family] += (task.seconds or USUAL) / share
            yield family, task
            if not waiting[family]:
                del waiting[family]


def in_turns(listed: Iterable[tuple[str, Task | str]]) -> list[tuple[str, Task | str]]:
    """Notes, then tasks of families in turn; the first ones of a family are spread over all of them."""
    notes: list[tuple[str, Task | str]] = []
    families: dict[str, list[Task]] = {}
    for family, task in listed:
        if isinstance(task, str):
            notes.append((family, task))
        else:
            families.setdefault(family, []).append(task)
    ordered = ((family, tasks[index]) for family, tasks in families.items() for (index,) in spread(range(len(tasks))))
    return [*notes, *interleaved((1, family, task) for family, task in ordered)]


def spread(*factors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """All combinations of some values, so that any beginning is spread over each of them.

    The points of a Halton sequence (J. Halton, Numerische Mathematik 2, 1960), a base a factor; what it has not met in
    four times as many points comes last.

    Examples
    --------
    >>> spread((1, 2), "abc")
    [(1, 'a'), (2, 'b'), (1, 'c'), (2, 'a'), (1, 'b'), (2, 'c')]
    """
    everything = list(product(*factors))
    found: dict[tuple[Any, ...], None] = {}
    for index in range(4 * len(everything)):
        places = (_radical_inverse(index, base) for base in _BASES)
        found[tuple(values[int(at * len(values))] for values, at in zip(factors, places, strict=False))] = None
    return list(dict.fromkeys((*found, *everything)))


def _radical_inverse(index: int, base: int) -> float:
    """The digits of a number behind the point, in reverse."""
    value, place = 0.0, 1.0 / base
    while index:
        index, digit = divmod(index, base)
        value += digit * place
        place /= base
    return min(value, 1.0 - 1e-12)
