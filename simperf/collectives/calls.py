"""A call of a collective on a machine: by an idealised algorithm, or by what NCCL would choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any

from simperf.collectives.execute import Execution, check_size, execute
from simperf.collectives.executors.host_threads import BY_STACK, has_network_stacks
from simperf.collectives.executors.rotation import turns
from simperf.collectives.machine_plans import plan_for, reducing_sites
from simperf.collectives.nccl import COLLECTIVES
from simperf.collectives.placement import PLAIN, Transport, place
from simperf.collectives.plan_bounds import ASKED, PlanBounds
from simperf.collectives.protocols import protocol_transport
from simperf.collectives.settings import HOSTED, NCCL, NcclSettings
from simperf.collectives.tuners import tuner_of
from simperf.cost import MeasuredCollective, MeasuredCollectives
from simperf.errors import InputError, Problem
from simperf.hardware import Machine

__all__ = ["CONDITIONS", "Call", "Played"]


@dataclass(frozen=True, slots=True)
class Played:
    """A run, what a bound on its time depends on, and what NCCL chose.

    Parameters
    ----------
    run : Execution
        Times and bytes.
    transport : Transport
        How sends were carried.
    helpers : tuple of str
        Nodes beside the ranks that took part.
    choice : str
        Algorithm and protocol of NCCL; empty for an idealised algorithm.
    channels : int
        Channels of NCCL.
    """

    run: Execution
    transport: Transport
    helpers: tuple[str, ...] = ()
    choice: str = ""
    channels: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A collective of one size on a machine.

    Parameters
    ----------
    machine : Machine
        The machine.
    collective : str
        Which one.
    algorithm : str
        ``"nccl"`` or ``"nccl-ring"``, or an idealised one.
    nbytes : float
        Payload [B].
    ranks : sequence of str
        Node of each rank.
    transport : Transport
        How an idealised algorithm's sends are carried; NCCL brings its own.
    protocol : str
        For an idealised algorithm start, latencies and efficiency of this protocol of NCCL; for NCCL the only one
        that it may choose.
    exact : bool
        An event a send; NCCL's channels have none.
    entry_times : sequence of float, optional
        When each rank calls the collective [s].
    background : sequence of (str, str, float)
        Traffic from node to node [B/s].
    bounds : PlanBounds
        Most that is simulated.
    measured : MeasuredCollectives
        Times that NCCL's collectives take where they were measured.
    host : callable, optional
        Simulates the hosts where they take part in the timing of NCCL's calls; it gives the time of the call [s].
    """

    machine: Machine
    collective: str
    algorithm: str
    nbytes: float
    ranks: Sequence[str]
    _: KW_ONLY
    transport: Transport = PLAIN
    protocol: str = ""
    exact: bool = False
    entry_times: Sequence[float] | None = None
    background: Sequence[tuple[str, str, float]] = ()
    bounds: PlanBounds = ASKED
    measured: MeasuredCollectives = field(default_factory=MeasuredCollectives)
    host: Callable[[Call, NcclSettings], float] | None = None

    @property
    def known(self) -> MeasuredCollective | None:
        """Measurements of it; None if there are none, or if no library runs it."""
        if self.algorithm not in NCCL:
            return None
        return self.measured.among(self.collective, self.machine, self.ranks)

    def play(self, **options: Any) -> Played:
        """Simulate it alone, with the options of its algorithm.

        Raises
        ------
        InputError
            An option that has no meaning, or what NCCL does not take or cannot run on.
        """
        check_size(self.nbytes)
        return self._library(options) if self.algorithm in NCCL else self._idealised(options)

    def _idealised(self, options: dict[str, Any]) -> Played:
        """Simulate a plan, with nothing but wires and the transport."""
        machine, entry, transport = self.machine, self.entry_times, self.transport
        if self.protocol:
            if has_network_stacks(self.machine):
                message = "the machine's hosts have a network stack, which carries no protocol of NCCL"
                raise InputError(Problem(message, key="protocol", value=self.protocol, expected=BY_STACK))
            variant = protocol_transport(self.algorithm, self.protocol)
            transport = replace(variant, step_latency=transport.step_latency, reduce_rate=transport.reduce_rate)
        sites = reducing_sites(machine, self.algorithm, self.ranks, options)
        plan = plan_for(
            machine,
            self.collective,
            self.algorithm,
            ranks=self.ranks,
            nbytes=self.nbytes,
            transport=transport,
            bounds=self.bounds,
            **options,
        )
        placement = place(plan, machine, ranks=self.ranks, servers=sites)
        if not self.exact and (self.background or not turns(plan, placement, self.nbytes, transport, entry or (0.0,))):
            self.bounds.check(plan, placement)
        run = execute(
            plan,
            machine,
            nbytes=self.nbytes,
            entry_times=entry,
            transport=transport,
            background=self.background,
            exact=self.exact,
            placement=placement,
            bounds=self.bounds,
        )
        return Played(run, transport, (sites or machine.cpus) if plan.nservers else ())

    def _library(self, options: dict[str, Any]) -> Played:
        """Simulate what NCCL would choose."""
        other = "an idealised algorithm, such as ring"
        problems = []
        if self.collective not in COLLECTIVES:
            message = f"NCCL has no {self.collective} of its own"
            problems.append(Problem(message, key="algorithm", value=self.algorithm, expected=other))
        if not self.machine.servers:
            message = "NCCL runs on the GPUs of a machine, and a topology has none"
            problems.append(Problem(message, key="algorithm", value=self.algorithm, expected=other))
        if self.exact:
            message = "NCCL's channels are flows, without an event for each send"
            problems.append(Problem(message, key="exact", expected=other))
        if self.transport is not PLAIN:
            message = "NCCL brings latencies and rates of its own"
            problems.append(Problem(message, key="transport", expected=other))
        if problems:
            raise InputError(problems)
        given = {**options, "protocol": self.protocol} if self.protocol else options
        settings = NcclSettings.read(self.algorithm, given, at="")
        tuner = tuner_of(self.machine, self.ranks, self.collective, settings, measured=self.known)
        choice = tuner.best(self.nbytes)
        run = choice.play(entry_times=self.entry_times, background=self.background, bounds=self.bounds)
        if settings.timing in HOSTED:
            run = replace(run, time=self._hosted(settings))
        helpers = choice.placement.nodes[len(self.ranks) :]
        return Played(run, choice.transport, helpers, choice.name, len(choice.plan.channels))

    def _hosted(self, settings: NcclSettings) -> float:
        """Time of a call that hosts take part in [s]."""
        if self.host is None:
            message = "hosts take part in this timing, and a call alone has none"
            raise InputError(Problem(message, key="timing", value=settings.timing, expected="simperf.collective"))
        if self.entry_times is not None:
            message = f"the timing {settings.timing!r} says when each rank calls the collective"
            raise InputError(Problem(message, key="entry_times", expected="timing graph or loop"))
        return self.host(self, settings)


#: what a call may be given beside machine, collective, algorithm, payload and ranks
CONDITIONS = tuple(one.name for one in fields(Call) if one.kw_only)
