"""Software stacks: what a communication library or a published program brings to a strategy.

A stack is a file of data, every number with its source: how many messages are under way, what a thread takes for a
request, how a server receives. A strategy says what travels where; its stack says how the library does it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from simperf.errors import InputError, Problem
from simperf.memory import Allocator
from simperf.training.servers.local_rings import GROUPED
from simperf.training.servers.staleness import Consistency
from simperf.training.strategies import STRATEGIES, Compression, DataExchange, ServerUpdate, StageMessages, Strategy
from simperf.units import Bytes, BytesPerSecond, Ratio, Seconds
from simperf.workload.layer_kernels import LayerKernels

__all__ = ["UNEVEN", "ServerTransport", "Serving", "Stack", "StackOption", "StackPace"]

#: standard deviation of the logarithm of a connection's claim on a port that several use, from one transfer to the
#: next: connections of TCP get equal shares only over many round trips. Fitted, one of five values tried (0 to 0.5), to
#: the asynchronous runs in twelve recordings of a cluster in one box (calibration/); 0.1 and 0.3 do nearly as well
UNEVEN = 0.2
#: largest spread: with it a few transfers have nearly all of a port
WIDEST = 10.0


@dataclass(frozen=True, slots=True)
class ServerTransport:
    """Transport of messages between workers and servers.

    Parameters
    ----------
    window : int
        transfers of a worker under way at one time, 0 for all
    duplex : bool
        the window holds for each direction, not for both together
    accepts : int
        transfers of a server under way at one time each way, 0 for all
    connections : int
        transfers between one worker and one server under way at one time each way, 0 for all
    requests : int
        slices that a worker has sent and not got back, posted one after the other, 0 for all
    priority : bool
        of those that wait, the first layer's go first
    message : float
        time of a message beside the wire: software at both ends [s]
    rate : float
        rate that one transfer cannot exceed [B/s]; 0 for no limit
    uneven : float
        spread of the shares of a port where workers do not wait for each other [1]; 0 keeps equal workers in step
    """

    window: int = 0
    duplex: bool = True
    accepts: int = 0
    connections: int = 0
    requests: int = 0
    priority: bool = False
    message: Seconds = 0.0
    rate: BytesPerSecond = 0.0
    uneven: Ratio = UNEVEN

    def __post_init__(self) -> None:
        problems = []
        if self.priority and not (self.window or self.connections):
            message = "a priority decides who goes next: it needs a window of transfers, or connections"
            problems.append(Problem(message, key="window", expected="1 or more"))
        if not 0.0 <= self.uneven <= WIDEST:
            problems.append(
                Problem(f"a spread from 0 to {WIDEST:g} is expected", key="uneven", value=f"{self.uneven:g}")
            )
        if not 0.0 <= self.message < math.inf:
            problems.append(Problem("a time of 0 or more is expected", key="message", value=f"{self.message:g}"))
        if not self.rate >= 0.0:
            problems.append(Problem("a rate above 0 is expected", key="rate", value=f"{self.rate:g}"))
        problems += _counts(self, ("window", "accepts", "connections", "requests"))
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True)
class Serving:
    """Handling of slices by the processes of workers and servers.

    Parameters
    ----------
    slice_size : float
        keys above this are cut [B]; 0 for none
    opening : bool
        before the first step every key is made known to its server, one slice after the other, as by BytePS
    handle : float
        time of the one thread that posts a worker's slices, for posting one and again for its answer [s]
    handlers : int
        workers whose threads take that long, the first ones; 0 for all
    buffers : int
        slices that a server takes in at one time, each until all workers' gradients are added up, 0 for all
    copiers : int
        threads that copy for each GPU, the last key first and what leaves for the CPU last; 0 for copy engines
    grouped : int
        slices of one call of the collectives inside a machine, where it adds up around rings
    take : float
        memory traffic on a worker's CPU of taking an answer from the network, for each of its bytes [1]
    server_memory : float
        bandwidth of the memory for what servers do, and for taking answers [B/s]; 0 takes the part's
    """

    slice_size: Bytes = 0.0
    opening: bool = False
    handle: Seconds = 0.0
    handlers: int = 0
    buffers: int = 0
    copiers: int = 0
    grouped: int = GROUPED
    take: float = 0.0
    server_memory: BytesPerSecond = 0.0

    def __post_init__(self) -> None:
        problems = []
        if not self.take >= 0.0:
            problems.append(Problem("memory traffic of 0 or more is expected", key="take", value=str(self.take)))
        if not 0.0 <= self.handle < math.inf:
            problems.append(Problem("a time of 0 or more is expected", key="handle", value=f"{self.handle:g}"))
        if not self.server_memory >= 0.0:
            problems.append(Problem("a rate above 0 is expected", key="server_memory", value=f"{self.server_memory:g}"))
        problems += _counts(self, ("handlers", "buffers", "copiers"))
        if problems:
            raise InputError(problems)


def _counts(options: ServerTransport | Serving, keys: tuple[str, ...]) -> list[Problem]:
    values = [(key, getattr(options, key)) for key in keys]
    message = "a number of 0 or more is expected"
    return [Problem(message, key=key, value=str(value)) for key, value in values if value < 0]


@dataclass(frozen=True, slots=True)
class StackOption:
    """An option that a stack sets, unless a scenario does.

    Parameters
    ----------
    kind : type
        Type that has the option.
    field : str
        The option.
    value : object
        As a file has it.
    source : str
        Where the value comes from.
    """

    kind: type[Any]
    field: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class StackPace:
    """Share of their isolated speed that kernels keep in the steps of a stack, on GPUs of one generation.

    What clocks, caches and whatever else a step does take from kernels beside the events that are simulated.

    Parameters
    ----------
    architecture : str
        of the GPU's part, such as hopper
    gpus : tuple of str
        parts of that architecture that are a generation of their own, such as gb300; all others if there are none
    share : float
        from above 0 to 1 [1]
    source : str
        measurements that it is fitted to
    """

    architecture: str = ""
    gpus: tuple[str, ...] = ()
    share: Ratio = 1.0
    source: str = ""

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            message, expected = "kernels are no faster in a step than alone", "above 0, at most 1"
            raise InputError(Problem(message, key="share", value=f"{self.share:g}", expected=expected))


@dataclass(frozen=True, slots=True)
class Stack:
    """A library or a published program, as far as it differs from a plain loop.

    Parameters
    ----------
    name : str
        of its file
    title : str
        what it is
    frontend : str
        frontend of the catalogue, whose times the host of a scenario has that names none
    frontend_source : str
        where this comes from
    strategy : str
        strategy that `options` are of, as files name it; empty for any
    options : tuple of StackOption
        what the library sets, each with its source
    transport : ServerTransport
        how messages travel between workers and servers
    serving : Serving
        what their processes do with slices
    optimizer : str
        an optimizer of `simperf.workload.optimizers`, or the implementation of the model's: for-loop, foreach or fused;
        empty for the model's own
    allocator : str
        of GPUs' memory, which decides what is reserved beyond what tensors hold: PyTorch's, in segments of fixed sizes;
        the same with expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF; none: reserved memory is not reported
    kernels : LayerKernels
        kernels of a transformer layer
    paces : tuple of StackPace
        what kernels keep of their speed in its steps, by generation of GPUs; 1 where none is given
    """

    name: str = ""
    title: str = ""
    frontend: str = ""
    frontend_source: str = ""
    strategy: str = ""
    options: tuple[StackOption, ...] = ()
    transport: ServerTransport = field(default_factory=ServerTransport)
    serving: Serving = field(default_factory=Serving)
    optimizer: str = ""
    allocator: Allocator = "none"
    kernels: LayerKernels = field(default_factory=LayerKernels)
    paces: tuple[StackPace, ...] = ()

    @classmethod
    def of(cls, name: str, strategy: str, options: Sequence[StackOption], **about: Any) -> Stack:
        """The stack of options; `about` are its title, frontend and paces.

        Raises
        ------
        InputError
            Options that do not go together.
        """
        made = {kind: kind(**_of(kind, options)) for kind in (ServerTransport, Serving, LayerKernels)}
        return cls(
            name,
            strategy=strategy,
            options=tuple(options),
            transport=cast(ServerTransport, made[ServerTransport]),
            serving=cast(Serving, made[Serving]),
            kernels=cast(LayerKernels, made[LayerKernels]),
            optimizer=str(_of(cls, options).get("optimizer", "")),
            allocator=_of(cls, options).get("allocator", "none"),
            **about,
        )

    def strategy_with(self, **options: Any) -> Strategy:
        """The strategy with the stack's options, and others instead of or beside them.

        Examples
        --------
        >>> from simperf.training.strategies import DDP
        >>> ddp = Stack.of("mine", "ddp", [StackOption(DDP, "bucket", 40e6, "its source")])
        >>> ddp.strategy_with(overlap=False)  # doctest: +ELLIPSIS
        DDP(algorithm='', options={}, bucket=40000000.0, ..., overlap=False, ...)
        """
        kind = STRATEGIES[self.strategy]
        inner: dict[str, Any] = {"compression": Compression, "consistency": Consistency, "update": ServerUpdate}
        inner |= {"messages": StageMessages, "exchange": DataExchange}
        given = {name: part(**_of(part, self.options)) for name, part in inner.items() if _of(part, self.options)}
        return kind(**{**_of(kind, self.options), **given, **options})

    def pace(self, architecture: str, gpu: str = "") -> StackPace:
        """The pace of kernels on a GPU: that of its part, else that of its architecture."""
        own = [one for one in self.paces if one.architecture == architecture and (not one.gpus or gpu in one.gpus)]
        return max(own, key=lambda one: len(one.gpus) > 0, default=StackPace(architecture))

    def in_use(self, job_parts: Iterable[Any]) -> dict[str, str]:
        """Source of each option that a part of a job has as the stack sets it, by name."""
        parts = {type(part): part for part in job_parts}
        return {
            one.field: one.source
            for one in self.options
            if one.kind in parts and getattr(parts[one.kind], one.field) == one.value
        }


def _of(kind: type[Any], options: Iterable[StackOption]) -> dict[str, Any]:
    """Fields of a type that options set."""
    return {one.field: one.value for one in options if one.kind is kind}
