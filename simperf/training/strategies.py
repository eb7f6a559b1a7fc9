"""Strategies of training: small frozen types, each with the options that it has.

A strategy says how devices share the work and how gradients or weights travel. An option that a strategy does not
have cannot be given to it::

    DDP(bucket=40e6, bucket_view=False)
    Servers(servers=4, placement="sliced", consistency=Consistency("bounded", bound=2))

What a communication library or a published program brings beside it is a `simperf.training.stack.Stack`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.hardware import Machine
from simperf.training.data.buckets import BUCKET, FIRST_BUCKET
from simperf.training.servers.compression import Codec, codec
from simperf.training.servers.multi_machine import Reduction
from simperf.training.servers.placement import Placement, Where, worker_gpus
from simperf.training.servers.staleness import Consistency
from simperf.units import Bytes, Ratio

__all__ = [
    "DDP",
    "ONE_PROCESS",
    "REPLICATED",
    "STRATEGIES",
    "ByHand",
    "Compression",
    "DataParallel",
    "LocalSGD",
    "ServerUpdate",
    "Servers",
    "Strategy",
    "has_option",
    "strategy_type",
]


@dataclass(frozen=True, slots=True)
class DDP:
    """DistributedDataParallel: a process a device, gradients averaged in buckets while the backward pass goes on.

    Parameters
    ----------
    algorithm : str
        of all-reduce, such as ring; nccl chooses by size as NCCL would; if none is named, nccl where it runs, else ring
    options : mapping of str to object
        of the algorithm; of nccl: network, in_network, launches, timing, version, protocol
    bucket : float
        size at which a bucket of gradients is closed [B]
    first_bucket : float
        the same for the first bucket [B]
    bucket_view : bool
        gradients lie in their buckets from the start; without it they are copied there and back (PyTorch's default)
    broadcast : bool
        the weights of rank 0 go to all at the start
    overlap : bool
        communication during computation; without it, buckets wait for the end of the backward pass
    slowdown : float
        how many times slower kernels are while a collective runs beside them [1]
    accumulate : int
        micro-batches a step; gradients travel after the last (no_sync)
    watched : bool
        each process waits for its device after every step, as one that prints the loss
    """

    algorithm: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    bucket: Bytes = BUCKET
    first_bucket: Bytes = FIRST_BUCKET
    bucket_view: bool = True
    broadcast: bool = False
    overlap: bool = True
    slowdown: Ratio = 1.0
    accumulate: int = 1
    watched: bool = False


@dataclass(frozen=True, slots=True)
class LocalSGD:
    """Local SGD: every device trains by itself, and weights are averaged now and then.

    Parameters
    ----------
    every : int
        steps from one averaging of the weights to the next
    algorithm : str
        of all-reduce, as for `DDP`
    options : mapping of str to object
        of the algorithm
    accumulate : int
        micro-batches a step
    watched : bool
        each process waits for its device after every step, as one that prints the loss
    """

    every: int = 1
    algorithm: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    accumulate: int = 1
    watched: bool = False


@dataclass(frozen=True, slots=True)
class DataParallel:
    """torch.nn.DataParallel: one process drives all devices of a server, and everything goes through the first.

    Parameters
    ----------
    watched : bool
        the process waits for its devices after every step, as one that prints the loss
    """

    watched: bool = False


@dataclass(frozen=True, slots=True)
class ByHand:
    """Data parallelism as taught: one process, parameter by parameter onto device 0 and back; it has no options."""


@dataclass(frozen=True, slots=True)
class Compression:
    """How gradients are encoded on their way to the servers.

    Parameters
    ----------
    codec : str
        none, top-k, random-k, 8-bit or 1-bit
    ratio : float
        share of the elements that top-k and random-k send [1]
    dense_below : float
        keys and slices below this go as they are [B]
    on : str
        where workers encode and decode: on the GPU, or on the CPU, to which gradients go dense then
    free : bool
        encoding and decoding take no time
    beside_dense : bool
        the same without compression is played beside it, and the whole run is given relative to it
    """

    codec: str = "none"
    ratio: float = 0.01
    dense_below: Bytes = 0.0
    on: Literal["gpu", "cpu"] = "gpu"
    free: bool = False
    beside_dense: bool = False

    def made(self) -> Codec:
        """The codec with these options.

        Raises
        ------
        InputError
            There is no such codec, or a number without meaning.
        """
        found = codec(self.codec, ratio=self.ratio, smallest=self.dense_below)
        return found.free() if self.free else found


@dataclass(frozen=True, slots=True)
class ServerUpdate:
    """What adding up and updating move through a server's memory, and who updates.

    Parameters
    ----------
    add : float
        memory traffic of adding a gradient up, for each of its bytes [1]
    apply : float
        memory traffic of updating the weights, for each of their bytes [1]
    on_workers : bool
        the workers run the model's optimizer, and the servers only add up (update_on_kvstore=False in MXNet)
    """

    add: float = 3.0
    apply: float = 3.0
    on_workers: bool = False


@dataclass(frozen=True, slots=True)
class Servers:
    """Parameter servers: workers push gradients and pull weights, key by key.

    Parameters
    ----------
    servers : int
        parameter servers
    where : str
        on the CPUs or GPUs of the workers' machines, or on the CPUs of dedicated machines, the last ones
    nodes : tuple of str
        the servers' nodes, instead of servers and where
    placement : str
        keys to servers: in turn, by size, or every key cut into one part a server
    reduction : str
        where a machine adds up first: nowhere, on one GPU, its CPU, all GPUs in turn, or around NCCL's rings
    via_host : bool or None
        whether gradients go to the machine's CPU before the network; auto: if it adds up first
    spread : bool or None
        whether weights go to one GPU and from there to the others; auto: unless the CPU adds up
    consistency : Consistency
        how the workers are kept together
    compression : Compression
        how gradients are encoded
    update : ServerUpdate
        what adding up and updating take
    overlap : bool
        gradients travel as they become ready; without it, after the backward pass
    barrier : bool
        a step begins when all weights are there; without it, a layer waits for its own only
    """

    servers: int = 1
    where: Where = "cpu"
    nodes: tuple[str, ...] = ()
    placement: Placement = "balanced"
    reduction: Reduction = "none"
    via_host: bool | None = None
    spread: bool | None = None
    consistency: Consistency = field(default_factory=Consistency)
    compression: Compression = field(default_factory=Compression)
    update: ServerUpdate = field(default_factory=ServerUpdate)
    overlap: bool = True
    barrier: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("consistency", Consistency), ("compression", Compression), ("update", ServerUpdate)):
            if not isinstance(value := getattr(self, name), kind):
                message = f"{kind.__name__}(...) is expected, not {type(value).__name__}"
                raise InputError(Problem(message, key=name, value=repr(value), expected=f"{kind.__name__}()"))
        rule = self.consistency
        if rule.mode != "bounded" and rule.bound != math.inf:
            message = f"0 is expected: mode is {rule.mode!r}, a bound is of 'bounded'"
            raise InputError(Problem(message, key="bound", value=f"{rule.bound:g}"))

    def workers(self, machine: Machine, gpus: int = 0) -> tuple[str, ...]:
        """Nodes of the workers: the first `gpus` (0: all) of the machines that are not set aside for servers.

        Raises
        ------
        InputError
            There are fewer GPUs than asked for, or none is left to train.
        """
        count, where = len(self.nodes) or self.servers, "cpu" if self.nodes else self.where
        return worker_gpus(machine, gpus, servers=count, where=where)


Strategy: TypeAlias = DDP | LocalSGD | DataParallel | ByHand | Servers

#: strategies of which every device has the whole model, by the names that files give them
REPLICATED: Mapping[str, type[Strategy]] = {
    "ddp": DDP,
    "data-parallel": DataParallel,
    "naive": ByHand,
    "local-sgd": LocalSGD,
}

#: all strategies by name
STRATEGIES: Mapping[str, type[Strategy]] = {**REPLICATED, "servers": Servers}

#: strategies of one process, which drives all devices of a server
ONE_PROCESS = (DataParallel, ByHand)


def strategy_type(name: str) -> type[Strategy]:
    """The type of the strategy `name`.

    Raises
    ------
    UnknownNameError
        There is no such strategy.
    """
    if name not in STRATEGIES:
        raise UnknownNameError("strategy", name, STRATEGIES)
    return STRATEGIES[name]


def has_option(strategy: str, option: str) -> bool:
    """Whether the strategy of a name has an option.

    Examples
    --------
    >>> has_option("ddp", "bucket"), has_option("naive", "bucket")
    (True, False)
    """
    return option in {one.name for one in fields(STRATEGIES[strategy])}
