"""Settings of NCCL that a scenario or a command may give: its version, protocol and network, and who adds up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simperf.collectives.algorithms import algorithms, full_name
from simperf.collectives.nccl_plans import COLLECTIVES
from simperf.collectives.networks import network_names
from simperf.collectives.protocols import PROTOCOLS
from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.hardware import GpuPart, Machine

__all__ = [
    "ARCHITECTURES",
    "DEFAULTS",
    "HOSTED",
    "NCCL",
    "SETTINGS",
    "TIMINGS",
    "NcclSettings",
    "default_algorithm",
    "find_algorithm",
    "runs_on",
]

#: names under which NCCL is asked for, and what it may choose from: anything, or rings as with NCCL_ALGO=Ring
NCCL: dict[str, tuple[str, ...]] = {"nccl": (), "nccl-ring": ("ring",)}

#: options of these algorithms
SETTINGS = ("network", "in_network", "launches", "timing", "version", "protocol")

#: ways in which calls are timed: in a CUDA graph; one after the other in a stream, as nccl-tests has them; by events
#: around a call through torch; by kernels in a profile of calls through torch
TIMINGS = ("graph", "loop", "torch", "profiler")

#: those of them in which hosts take part (`simperf.execution.timed_calls`)
HOSTED = ("torch", "profiler")

#: architectures of GPUs that NCCL runs on
ARCHITECTURES = (
    *("kepler", "maxwell", "pascal", "volta", "turing"),
    *("ampere", "ada", "hopper", "blackwell", "blackwell-rtx"),
)

#: versions that the constants and the rules below are of: the code of 2.28, measured tables of 2.3 to 2.29
FIRST, LAST = (2, 0), (2, 29)
#: versions from which on NCCL has trees, has channels pass the same GPUs in every server, has the switch add up
TREES, SAME_GPUS, SWITCHES = (2, 4), (2, 5), (2, 18)

#: of NCCL
VERSION = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}")


@dataclass(frozen=True, slots=True)
class NcclSettings:
    """A set-up of NCCL.

    Parameters
    ----------
    network : str
        How it reaches other servers (`simperf.collectives.networks`); by the NICs' names if left out.
    in_network : bool, optional
        Whether switches add up; if left out, where the version and the machine can.
    launches : int
        GPUs that one process drives: it launches a kernel on each, one after the other. 0 if it was left out: as
        many as where it was measured, else one.
    version : tuple of int
        Major and minor version; empty for a present one.
    only : tuple of str
        Algorithms to choose from, as with NCCL_ALGO; all if left out.
    protocol : str
        The one protocol to choose from, as with NCCL_PROTO; all if left out.
    timing : str
        How calls are timed, one of `TIMINGS`. A tuner has the kernels of `HOSTED` alone.
    """

    network: str = ""
    in_network: bool | None = None
    launches: int = 0
    version: tuple[int, ...] = field(default=())
    only: tuple[str, ...] = ()
    protocol: str = ""
    timing: str = "loop"

    @classmethod
    def read(cls, algorithm: str, options: Mapping[str, Any] = {}, *, at: str = "options.") -> NcclSettings:
        """Settings from the options of the algorithm ``"nccl"`` or ``"nccl-ring"``.

        Parameters
        ----------
        algorithm : str
            One of `NCCL`.
        options : mapping
            Of the names in `SETTINGS`.
        at : str
            What stands before the name of an option where it was given.

        Raises
        ------
        InputError
            All options that are unknown or have no meaning.
        """
        problems = [
            Problem(
                f"{algorithm} has no option {key!r}{nearest(key, SETTINGS)}",
                key=f"{at}{key}",
                expected=", ".join(SETTINGS),
            )
            for key in options
            if key not in SETTINGS
        ]
        network, launches = options.get("network", ""), options.get("launches")
        switched, version = options.get("in_network"), options.get("version", "")
        protocol = str(options.get("protocol", ""))
        if network is not None and network != "" and network not in network_names():
            close = nearest(str(network), network_names())
            message = f"no such network of NCCL{close}"
            expected = ", ".join(network_names())
            problems.append(Problem(message, key=f"{at}network", value=str(network), expected=expected))
        if switched is not None and not isinstance(switched, bool):
            message = "whether switches add up"
            problems.append(Problem(message, key=f"{at}in_network", value=str(switched), expected="true or false"))
        counted = isinstance(launches, int) and not isinstance(launches, bool) and 1 <= launches <= 64
        if launches is not None and not counted:
            message = "GPUs that one process drives"
            problems.append(Problem(message, key=f"{at}launches", value=str(launches), expected="1 to 64"))
        timing = options.get("timing", "loop")
        if timing not in TIMINGS:
            message = f"no such way in which calls are timed{nearest(str(timing), TIMINGS)}"
            problems.append(Problem(message, key=f"{at}timing", value=str(timing), expected=", ".join(TIMINGS)))
        readable = isinstance(version, str) and (not version or VERSION.fullmatch(version))
        if not readable:  # of a number, 2.20 would be 2.2
            message = "a version of NCCL, as a text"
            problems.append(Problem(message, key=f"{at}version", value=str(version), expected='such as "2.28"'))
        elif version and not FIRST <= _numbers(version) <= LAST:
            message = "no version of NCCL that the model knows"
            expected = "{}.{} to {}.{}".format(*FIRST, *LAST)
            problems.append(Problem(message, key=f"{at}version", value=version, expected=expected))
        if protocol and protocol not in PROTOCOLS:
            message = f"no such protocol of NCCL{nearest(protocol, PROTOCOLS)}"
            problems.append(Problem(message, key=f"{at}protocol", value=protocol, expected=", ".join(PROTOCOLS)))
        if problems:
            raise InputError(problems)
        numbers = _numbers(version) if version else ()
        rings = "ring" in NCCL[algorithm] or (numbers and numbers < TREES)
        if switched and (rings or (numbers and numbers < SWITCHES)):
            why = "rings alone are asked for" if rings else f"NCCL {version} has no in-network reduction"
            raise InputError(Problem(why, key=f"{at}in_network", value="true", expected="false, or 2.18 and later"))
        return cls(network, switched, launches or 0, numbers, NCCL[algorithm], protocol, timing)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Algorithms that this version chooses from; all if empty."""
        return ("ring",) if self.version and self.version < TREES else self.only

    @property
    def switched(self) -> bool | None:
        """Whether switches add up; None where the machine says it."""
        return False if self.in_network is None and self.version and self.version < SWITCHES else self.in_network

    @property
    def spread(self) -> bool:
        """Whether channels take turns over all GPUs near a NIC; later (src/graph/search.cc) they share some."""
        return bool(self.version) and self.version < SAME_GPUS


def _numbers(version: str) -> tuple[int, ...]:
    """Major and minor number of a version."""
    return tuple(int(part) for part in version.split(".")[:2])


#: of a present version that is left to choose
DEFAULTS = NcclSettings()


def runs_on(machine: Machine, ranks: Sequence[str]) -> bool:
    """Whether all ranks are GPUs that NCCL runs on."""
    parts = (machine.nodes[rank].part for rank in ranks)
    return bool(ranks) and all(isinstance(part, GpuPart) and part.architecture in ARCHITECTURES for part in parts)


def default_algorithm(machine: Machine | None, ranks: Sequence[str], collective: str = "all-reduce") -> str:
    """``"nccl"`` where it has the collective and runs, ``"gloo"`` on hosts' CPUs, else ``"ring"``, or what there is.

    Hosts' CPUs are ranks where messages between hosts have a cost of their own: a network stack.
    """
    if machine is not None and collective in COLLECTIVES and runs_on(machine, ranks):
        return "nccl"
    known = algorithms(collective)
    stack = machine.hosting.stack if machine is not None else None
    if machine is not None and stack is not None and all(machine.nodes[rank].kind == "cpu" for rank in ranks):
        return "gloo" if "gloo" in known else known[0]
    return "ring" if "ring" in known else known[0]


def find_algorithm(collective: str, name: str) -> str:
    """The full name of an algorithm that a scenario or a command names: NCCL, an idealised one or an alias of one.

    Raises
    ------
    UnknownNameError
        There is no such collective or algorithm; the nearest name is offered.
    """
    known = (*algorithms(collective), *(NCCL if collective in COLLECTIVES else ()))
    found = full_name(collective, name)
    if found not in known:
        raise UnknownNameError(f"{collective} algorithm", name, known)
    return found
