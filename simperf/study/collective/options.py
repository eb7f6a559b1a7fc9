"""Options that algorithms of a collective take, and the refusal of those that none of them takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from simperf.collectives import options_of
from simperf.collectives.settings import NCCL, SETTINGS, NcclSettings
from simperf.errors import InputError, Problem, nearest

__all__ = ["flag", "options_taken", "refuse_options"]

#: what an option is called on the command line, where that is not its own name
FLAGS = {"in_network": "--in-network", "version": "--nccl-version"}


def options_taken(collective: str, algorithm: str) -> tuple[str, ...]:
    """Options that an algorithm takes, beside the protocol."""
    if algorithm in NCCL:
        return tuple(key for key in SETTINGS if key != "protocol")
    return options_of(collective, algorithm)


def refuse_options(
    collective: str, names: Sequence[str], options: Mapping[str, Any], *, typed: Collection[str], exact: bool
) -> None:
    """Refuse options that none of the algorithms takes, and values without a meaning.

    Parameters
    ----------
    collective : str
        Which one.
    names : sequence of str
        The algorithms.
    options : mapping
        Options that were given, and the protocol.
    typed : collection of str
        All options of the command that were typed.
    exact : bool
        An event a send was asked for.

    Raises
    ------
    InputError
        All that is wrong.
    """
    libraries = [name for name in names if name in NCCL]
    ideal, tuned = "an idealised algorithm, such as --algo ring", "--algo nccl, on GPUs that it runs on"
    accepted = {key for name in names for key in options_taken(collective, name)} | {"protocol"}
    wrong = []
    for key in options:
        if key not in accepted:
            expected = tuned if key in options_taken(collective, "nccl") else ideal if libraries else ""
            known = [flag(one).removeprefix("--") for one in accepted]
            message = f"none of {', '.join(names)} has this option{nearest(flag(key).removeprefix('--'), known)}"
            wrong.append(Problem(message, key=flag(key), expected=expected))
    if len(libraries) == len(names):
        message = "NCCL brings latencies and rates of its own"
        given = [key for key in ("step_latency", "reduce_rate") if key in typed]
        wrong += [Problem(message, key=f"--{key.replace('_', '-')}", expected=ideal) for key in given]
    if libraries and exact:
        message = "NCCL's channels are flows, without an event for each send"
        wrong.append(Problem(message, key="--exact", expected=ideal))
    if libraries and options.get("in_network") and collective != "all-reduce":
        message = f"switches add up in an all-reduce, and do nothing for {collective}"
        wrong.append(Problem(message, key=flag("in_network"), value="true", expected="all-reduce, or leave it out"))
    for name in libraries[:1]:
        settings = {key: value for key, value in options.items() if key in (*options_taken("", name), "protocol")}
        try:
            NcclSettings.read(name, settings, at="")
        except InputError as error:
            wrong += [
                Problem(one.message, key=flag(one.key), value=one.value, expected=one.expected)
                for one in error.problems
            ]
    if wrong:
        raise InputError(wrong)


def flag(key: str) -> str:
    """An option as it is typed."""
    return FLAGS.get(key, f"--{key}")
