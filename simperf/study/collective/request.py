"""A collective to be timed, in the words of `simperf collective`: texts with units, read all at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simperf.collectives import Transport, algorithms
from simperf.collectives.bench import sizes_between
from simperf.collectives.executors.host_threads import BY_STACK, has_network_stacks
from simperf.collectives.settings import NCCL, default_algorithm, find_algorithm
from simperf.errors import InputError, Problem, UnitError, UnknownNameError
from simperf.hardware import Machine
from simperf.study.collective.comparison import AlgorithmComparison
from simperf.study.collective.machine import MachineChoice
from simperf.study.collective.options import refuse_options
from simperf.units import parse, parse_size

__all__ = ["CollectiveRequest", "SizeRange"]


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Message sizes from one to another, as nccl-tests' options -b, -e, -f and -i say them.

    Parameters
    ----------
    low, high : str
        Sizes such as ``"1M"``, which is 1 MiB.
    factor : float
        From size to size [1].
    step : str
        Instead of a factor; empty for none.
    """

    low: str = "1M"
    high: str = "1G"
    factor: float = 2.0
    step: str = ""

    def sizes(self) -> list[int]:
        """The sizes [B].

        Raises
        ------
        InputError
            All that is wrong with the options.
        """
        read = _Quantities()
        first, last = read.size(self.low, option="-b"), read.size(self.high, option="-e")
        by = read.size(self.step, option="-i") if self.step else 0
        read.refuse()
        if self.step and not by:
            raise InputError(Problem("sizes grow by a step of at least one byte", key="-i", value=self.step))
        return sizes_between(first, last, factor=self.factor, step=by)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRequest:
    """A collective, its algorithms and its machine as they were typed; errors name the options of the command.

    Parameters
    ----------
    collective : str
    machine : MachineChoice
        Without the rates of a topology.
    algorithms : str
        Names with commas between, ``"all"``, or empty for the default.
    options : mapping
        Of the algorithms; each gets those that it knows.
    protocol : str
        Protocol variant, empty for none.
    bandwidth, latency : str
        Of each link of a topology.
    step_latency, reduce_rate : str
        Of an idealised algorithm's sends; an empty rate is infinite.
    exact : bool
        Force the step-exact executor.
    force : bool
        Simulate what would be refused as too large.
    late, background : sequence of str
        As `simperf.study.collective.disturbances` reads them.
    given : collection of str
        Options that were typed, by the names of the command's parameters.
    """

    collective: str
    machine: MachineChoice
    algorithms: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    protocol: str = ""
    bandwidth: str = "50 GB/s"
    latency: str = "500 ns"
    step_latency: str = "0 s"
    reduce_rate: str = ""
    exact: bool = False
    force: bool = False
    late: Sequence[str] = ()
    background: Sequence[str] = ()
    given: Collection[str] = ()

    def comparison(self) -> AlgorithmComparison:
        """Read the options and build the machine.

        Raises
        ------
        InputError
            An option without a meaning here.
        UnknownNameError
            No such machine, collective or algorithm.
        """
        known = algorithms(self.collective)
        self.machine.refuse_unread(self.given)
        read = _Quantities()
        step_latency = read(self.step_latency, "s", option="--step-latency")
        reduce_rate = read(self.reduce_rate, "B/s", option="--reduce-rate") if self.reduce_rate else float("inf")
        try:
            transport = Transport(step_latency=step_latency, reduce_rate=reduce_rate)
        except InputError as error:
            raise InputError([replace(one, key=f"--{one.key.replace('_', '-')}") for one in error.problems]) from None
        choice = replace(
            self.machine,
            bandwidth=read(self.bandwidth, "B/s", option="--bandwidth"),
            latency=read(self.latency, "s", option="--latency"),
            dedicated=int(self.options.get("servers", 0)),
        )
        read.refuse()
        built = choice.build()
        names = _named(self.algorithms, self.collective, known, built.machine, built.ranks)
        named = self.algorithms != "all"
        options = {**self.options, "protocol": self.protocol}
        refuse_options(self.collective, names, options, typed=self.given, exact=self.exact and named)
        costs = {
            "--step-latency": self.step_latency if transport.step_latency > 0.0 else "",
            "--reduce-rate": self.reduce_rate,
            "--protocol": self.protocol if set(names).isdisjoint(NCCL) else "",
        }
        _refuse_costs(built.machine, costs)
        return AlgorithmComparison(
            collective=self.collective,
            algorithms=names,
            choice=choice,
            built=built,
            options=self.options,
            protocol=self.protocol,
            transport=transport,
            exact=self.exact,
            force=self.force,
            named=named,
            late=tuple(self.late),
            background=tuple(self.background),
        )


def _refuse_costs(machine: Machine, given: Mapping[str, str]) -> None:
    """Refuse options that say what a send costs, where the network stack of the machine's hosts does."""
    message = "the machine's hosts have a network stack, whose costs alone are those of sends"
    wrong = [Problem(message, key=key, value=text, expected=BY_STACK) for key, text in given.items() if text]
    if wrong and has_network_stacks(machine):
        raise InputError(wrong)


def _named(
    algo: str,
    collective: str,
    known: Sequence[str],
    machine: Machine,
    ranks: Sequence[str],
) -> tuple[str, ...]:
    """The algorithms that were asked for: the default, all, or those that were named."""
    default = default_algorithm(machine, ranks, collective)
    if not algo:
        return (default,)
    if algo == "all":
        return tuple(dict.fromkeys([default, *known] if default in NCCL else known))
    try:
        names = [find_algorithm(collective, name.strip()) for name in algo.split(",")]
    except UnknownNameError as error:
        raise InputError(Problem(str(error), key="--algo")) from None
    for name in names:
        if name in NCCL and not machine.servers:
            message = "NCCL runs on the GPUs of a machine, and a topology has none"
            raise InputError(
                Problem(message, key="--algo", value=name, expected="an idealised algorithm, such as ring")
            )
    return tuple(dict.fromkeys(names))


class _Quantities:
    """Reads options one after the other and remembers what is wrong with them.

    Examples
    --------
    >>> read = _Quantities()
    >>> read("50 GB/s", "B/s", option="--bandwidth")
    50000000000.0
    >>> read("5", "s", option="--latency")
    0.0
    >>> read.refuse()
    Traceback (most recent call last):
        ...
    simperf.errors.InputError: --latency: the unit is missing: write a time, such as '5 us' (read: 5)
    """

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def __call__(self, text: str, dimension: str, *, option: str) -> float:
        """Read a quantity of `dimension`, 0 or more; 0 if it is none."""
        try:
            value = parse(text, dimension)
            if value < 0:
                raise UnitError("it cannot be negative")
        except UnitError as error:
            self._problems.append(Problem(str(error), key=option, value=text))
            return 0.0
        return value

    def size(self, text: str, *, option: str) -> int:
        """Read a message size as nccl-tests does; 0 if it is none."""
        try:
            return parse_size(text)
        except UnitError as error:
            self._problems.append(Problem(str(error), key=option, value=text))
            return 0

    def refuse(self) -> None:
        """Tell all that was wrong.

        Raises
        ------
        InputError
            Something was.
        """
        if self._problems:
            raise InputError(self._problems)
