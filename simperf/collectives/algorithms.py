"""The table of algorithms: a new one is a file with a function under `@collective`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from simperf.collectives.plan import COLLECTIVES, Plan
from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.registry import Registry

__all__ = ["ALGORITHMS", "algorithms", "collective", "full_name", "make_plan", "options_of"]

PlanMaker: TypeAlias = Callable[..., Plan]

#: algorithm -> module of `simperf.collectives.plans` that registers it, imported when it is asked for; files there that
#: are not in the table are imported for a name that is in none
MODULES = {
    "all-reduce/bidirectional-ring": "bidirectional_ring",
    "all-reduce/binomial-tree": "binomial_tree",
    "broadcast/binomial-tree": "binomial_tree",
    "reduce/binomial-tree": "binomial_tree",
    "gather/binomial-tree": "binomial_tree",
    "scatter/binomial-tree": "binomial_tree",
    "all-gather/bruck": "bruck",
    "all-reduce/central": "central",
    "gather/direct": "direct",
    "scatter/direct": "direct",
    "all-to-all/direct": "direct",
    "send-recv/direct": "direct",
    "all-reduce/double-binary-tree": "double_binary_tree",
    "all-reduce/gloo": "gloo",
    "reduce-scatter/halving-doubling": "halving_doubling",
    "all-gather/halving-doubling": "halving_doubling",
    "all-reduce/halving-doubling": "halving_doubling",
    "all-reduce/hierarchical": "hierarchical",
    "all-reduce/in-network": "in_network",
    "all-reduce/multi-ring": "multi_ring",
    "reduce-scatter/multi-ring": "multi_ring",
    "all-gather/multi-ring": "multi_ring",
    "all-reduce/naive": "naive",
    "reduce/naive": "naive",
    "broadcast/naive": "naive",
    "all-to-all/pairwise": "pairwise",
    "all-reduce/pipelined-tree": "pipelined_tree",
    "broadcast/pipelined-tree": "pipelined_tree",
    "reduce/pipelined-tree": "pipelined_tree",
    "all-reduce/recursive-doubling": "recursive_doubling",
    "all-gather/recursive-doubling": "recursive_doubling",
    "reduce-scatter/ring": "ring",
    "all-gather/ring": "ring",
    "all-reduce/ring": "ring",
    "broadcast/ring": "ring",
    "all-reduce/server-trees": "server_trees",
    "reduce-scatter/sharded": "sharded",
    "all-gather/sharded": "sharded",
    "all-reduce/sharded": "sharded",
}

#: ``"all-reduce/ring"`` and so on -> function of the number of ranks
ALGORITHMS: Registry[PlanMaker] = Registry(
    "collective algorithm",
    package="simperf.collectives.plans",
    group="simperf.collectives",
    modules=MODULES,
    discover=True,
)

#: short names that people use, where a collective has no algorithm of that very name
_ALIASES = {"tree": "double-binary-tree", "rabenseifner": "halving-doubling", "direct": "sharded"}

#: largest number of ranks that a plan is made for
MAX_RANKS = 1 << 24


def collective(name: str, algorithm: str) -> Callable[[PlanMaker], PlanMaker]:
    """Register a plan maker, a function ``(nranks, *, options) -> Plan``.

    Parameters
    ----------
    name : str
        The collective, such as ``"all-reduce"``.
    algorithm : str
        The algorithm, such as ``"ring"``.
    """
    return ALGORITHMS.register(f"{name}/{algorithm}")


def algorithms(name: str) -> tuple[str, ...]:
    """Names of the algorithms of a collective.

    Raises
    ------
    UnknownNameError
        There is no such collective.
    """
    found = tuple(key.split("/", 1)[1] for key in ALGORITHMS if key.startswith(f"{name}/"))
    if not found:
        raise UnknownNameError("collective", name, COLLECTIVES)
    return found


def full_name(name: str, algorithm: str) -> str:
    """The name of an algorithm of a collective that an alias stands for; any other name as it is.

    Examples
    --------
    >>> full_name("all-reduce", "direct"), full_name("all-to-all", "direct"), full_name("all-reduce", "ring")
    ('sharded', 'direct', 'ring')
    """
    if not isinstance(algorithm, str):
        raise UnknownNameError(f"{name} algorithm", algorithm, algorithms(name))
    return algorithm if f"{name}/{algorithm}" in ALGORITHMS else _ALIASES.get(algorithm, algorithm)


def _maker(name: str, algorithm: str) -> PlanMaker:
    key = f"{name}/{full_name(name, algorithm)}"
    if key not in ALGORITHMS:
        raise UnknownNameError(f"{name} algorithm", algorithm, algorithms(name))
    return ALGORITHMS[key]


def options_of(name: str, algorithm: str) -> tuple[str, ...]:
    """Names of the options that an algorithm takes, such as ``("chunks", "degree")``."""
    return tuple(parameter.name for parameter in _options(_maker(name, algorithm)))


@lru_cache(maxsize=256)
def _options(maker: PlanMaker) -> tuple[inspect.Parameter, ...]:
    """Parameters after the number of ranks."""
    return tuple(inspect.signature(maker).parameters.values())[1:]


def _required(maker: PlanMaker) -> list[str]:
    return [parameter.name for parameter in _options(maker) if parameter.default is inspect.Parameter.empty]


def make_plan(name: str, algorithm: str, *, nranks: int, **options: Any) -> Plan:
    """Make the plan of a collective for a number of ranks.

    Parameters
    ----------
    name, algorithm : str
        What to do and how, such as ``"all-reduce"`` and ``"ring"``; an alias, such as ``"tree"``, will do.
    nranks : int
        Ranks that take part, at least 1. One rank alone has nothing to send.
    **options
        Options of the algorithm, see `options_of`.

    Raises
    ------
    UnknownNameError
        No such collective or algorithm; the nearest name is offered.
    InputError
        The number of ranks or an option has no meaning for the algorithm.

    Examples
    --------
    >>> plan = make_plan("all-reduce", "ring", nranks=4)
    >>> plan.steps, plan.sent, plan.nsends
    (6, 1.5, 24)
    """
    maker = _maker(name, algorithm)
    if isinstance(nranks, bool) or not isinstance(nranks, int) or not 1 <= nranks <= MAX_RANKS:
        raise InputError(
            Problem("a collective needs at least one rank", value=str(nranks), expected=f"1 to {MAX_RANKS} ranks")
        )
    known = options_of(name, algorithm)
    for key in options:
        if key not in known:
            message = f"{name} {algorithm} has no option {key!r}{nearest(key, known)}"
            raise InputError(Problem(message, key="options", value=key, expected=", ".join(known) or "no option"))
    missing = [key for key in _required(maker) if key not in options]
    if missing:
        raise InputError([Problem(f"{name} {algorithm} needs this option", key=key) for key in missing])
    return maker(nranks, **options)
