"""Runs that would simulate too many events: refused before they begin, by the parameter that makes them so long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from simperf.errors import InputError, Problem
from simperf.programs.registry import ProgramSpec
from simperf.units import Unit, format_quantity

__all__ = ["refuse_many_events"]

#: steps of the search for the value that would do
_STEPS = 8
#: excess that is no more than how a value is rounded when it is written
_ROUNDED = 0.01


def refuse_many_events(spec: ProgramSpec, given: Mapping[str, Any], most: float) -> None:
    """Refuse a run that would simulate more events than `most`.

    Parameters
    ----------
    spec : ProgramSpec
    given : mapping
        Values of all its parameters, in SI units.
    most : float
        Events that a run may simulate.

    Raises
    ------
    InputError
        The number of events, the parameter that makes it so large, and the value of it that would do.
    """
    events = spec.events(given)
    if not events > most:
        return
    name = _largest(spec, given, most)
    message = f"about {events:.3g} events would be simulated, more than {most:.3g}"
    told = f"{_bound(spec, given, name, events, most)}; or --force (run.force = true), which simulates them all"
    raise InputError(Problem(message, key=name, value=_written(spec, name, given[name]), expected=told))


def _largest(spec: ProgramSpec, given: Mapping[str, Any], most: float) -> str:
    """The parameter that makes a run so long: of those whose default would do, the one that is furthest from 1."""
    changed = [name for name, one in spec.parameters.items() if name in given and given[name] != one.default]
    events = {name: spec.events({**given, name: spec.parameters[name].default}) for name in changed}
    enough = [name for name, number in events.items() if number <= most]
    if enough:
        return max(enough, key=lambda name: _distance(given[name]))
    return min(events or spec.parameters, key=lambda name: events.get(name, 0.0))


def _distance(value: Any) -> float:
    """Orders of magnitude between a value and 1."""
    return abs(math.log10(value)) if isinstance(value, int | float) and value > 0 else 0.0


def _bound(spec: ProgramSpec, given: Mapping[str, Any], name: str, events: float, most: float) -> str:
    """The value of a parameter with which as many events as may be are simulated, in words."""
    value = given[name]
    if isinstance(value, int | float) and not isinstance(value, bool):
        for power, words in ((1.0, "at most"), (-1.0, "at least")):
            bound, played = float(value), events
            for _ in range(_STEPS):
                bound *= (most / played) ** power
                tried = int(bound) if isinstance(value, int) else bound
                played = spec.events({**given, name: tried}) if tried > 0 else events
                if 0.5 * most < played <= most * (1 + _ROUNDED):
                    return f"{name} of {words} {_written(spec, name, tried)}"
    if layers := getattr(value, "layers", 0):
        return f"a {name} of at most {int(layers * most / events):,} layers"
    return f"another {name}"


def _written(spec: ProgramSpec, name: str, value: Any) -> str:
    """A value as a file has it."""
    annotation = spec.parameters[name].annotation
    if get_origin(annotation) is Annotated and isinstance(value, int | float):
        for one in get_args(annotation)[1:]:
            if isinstance(one, Unit):
                return format_quantity(float(value), one.dimension, digits=3)
    if layers := getattr(value, "layers", 0):
        return f"{layers:,} layers"
    return f"{value:,}" if isinstance(value, int) else str(value)
