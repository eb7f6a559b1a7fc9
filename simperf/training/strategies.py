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

from simperf.errors import InputError, Problem, nearest
from simperf.hardware import Machine
from simperf.training.data.buckets import BUCKET, FIRST_BUCKET
from simperf.training.field_types import refuse_types
from simperf.training.servers.compression import Codec, codec
from simperf.training.servers.multi_machine import Reduction
from simperf.training.servers.placement import Placement, Where, worker_gpus
from simperf.training.servers.staleness import Consistency
from simperf.units import Bytes, Ratio
from simperf.workload.routing import Routing

__all__ = [
    "DDP",
    "GRADIENT_BUCKET",
    "ONE_PROCESS",
    "REPLICATED",
    "STRATEGIES",
    "TRAINED",
    "ByHand",
    "Compression",
    "DataExchange",
    "DataParallel",
    "LocalSGD",
    "ModelParallel",
    "ServerUpdate",
    "Servers",
    "StageMessages",
    "Strategy",
    "has_option",
]


#: size of a bucket of gradients: NVIDIA/Megatron-LM, megatron/core/distributed/distributed_data_parallel.py, 40 million
#: of them in fp32
GRADIENT_BUCKET = "160 MB"

#: results of the device that a process may wait for
WAITS = ("batch", "sums", "loss", "norm")


@dataclass(frozen=True, slots=True)
class DDP:
    """DistributedDataParallel: a process a device, gradients averaged in buckets while the backward pass continues.

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
    waits : tuple of str
        what each process waits for in each micro-batch: batch, its copy, which follows what was launched before (no
        non_blocking); sums, before the forward pass the sum of a tensor of one number a sample (the lengths of its
        sentences) in Python, a launch each; loss, before the backward pass; and in each step: norm, before the
        optimizer, of all gradients, which Python compares with the largest that it lets through

    Raises
    ------
    InputError
        An unknown wait, or one twice.
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
    waits: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        odd = [one for one in self.waits if one not in WAITS]
        if odd or len(set(self.waits)) < len(self.waits):
            message = f"no such wait{nearest(odd[0], WAITS)}" if odd else "a wait stands here twice"
            expected = f"some of {', '.join(WAITS)}, each once"
            raise InputError(Problem(message, key="waits", value=", ".join(self.waits), expected=expected))


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
class StageMessages:
    """Messages of activations and their gradients from one stage of a pipeline to the next.

    Parameters
    ----------
    overlap : bool
        the message for a pass is received during the pass before it
    synchronous : bool
        the process waits for each message that it receives
    scattered : bool
        each tensor-parallel rank sends its part of a message to the next stage, where they gather it
    """

    overlap: bool = False
    synchronous: bool = False
    scattered: bool = False

    def __post_init__(self) -> None:
        refuse_types(self)


@dataclass(frozen=True, slots=True)
class DataExchange:
    """Exchange of gradients, their norm, and weights between ranks.

    All but the first four options are of ``zero-3``, fully sharded data parallelism, and `gathered` of each sharding
    if weights travel in fp8. With ``zero-3`` each layer is a unit that
    is gathered as a whole; the embedding and the head are one unit, as the root module of PyTorch's ``fully_shard``,
    whose weights stay from the forward to the backward pass.

    Parameters
    ----------
    bucket : float
        gradients travel in buckets of this size while the last backward passes continue; 0: together after them [B]
    overlap_weights : bool
        of zero-1 and zero-2: the next step begins while weights are gathered
    clip : bool
        the norm of all gradients is found by all ranks, and read by every process, before the update
    runs : int
        how often a step fills and drains the pipeline, each time with an equal share of its batch, after which
        gradients that travel while passes continue are exchanged, as torchtitan does
    reshard : str
        a layer's weights are given back after its forward pass and gathered again; never: they stay up to its last
        backward pass of a step; auto: always but for the last layer, and never where a pipeline has several stages
    prefetch : int
        layers ahead of the one that runs whose weights are gathered meanwhile
    reduce : str
        gradients are reduced after each backward pass, or after the last one of a step, up to which they are added up
        whole; auto: each, and last where a pipeline has several stages
    gathered : str
        precision in which weights are gathered; fp8: those that a recipe multiplies in fp8, with zero-1 and zero-2 too,
        where a rank keeps them in fp8 then
    kept : str
        precision of a rank's part of the weights: fp32; or as-products, beside a copy in fp32 that the optimizer
        updates, in another tensor
    flat : bool
        the weights of a layer are one tensor, which is gathered where it is read (FlatParameter); otherwise they are
        copied out of a buffer
    """

    bucket: Bytes = 0.0
    overlap_weights: bool = False
    clip: bool = True
    runs: int = 1
    reshard: Literal["auto", "always", "never"] = "auto"
    prefetch: int = 1
    reduce: Literal["auto", "each", "last"] = "auto"
    gathered: Literal["as-products", "fp32", "fp8"] = "as-products"
    kept: Literal["fp32", "as-products"] = "fp32"
    flat: bool = False

    def __post_init__(self) -> None:
        refuse_types(self)
        problems = []
        if not self.bucket >= 0.0:
            problems.append(Problem("a size of 0 or more is expected", key="bucket", value=f"{self.bucket:g}"))
        if self.runs < 1:
            message = "a whole number of 1 or more is expected"
            problems.append(Problem(message, key="pipeline_runs", value=str(self.runs)))
        if self.prefetch < 0:
            message = "a number of layers is expected, 0 or more"
            problems.append(Problem(message, key="prefetch", value=str(self.prefetch)))
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True)
class ModelParallel:
    """Model parallelism as Megatron-LM has it: each rank has a part of the layers, of their matrices, of the experts.

    How many ranks there are along each dimension, and what of states, gradients and weights data-parallel ranks keep a
    part of, is the job's layout.

    Parameters
    ----------
    microbatch : int
        samples of a micro-batch of each data-parallel rank
    schedule : str
        order of the passes on each stage of the pipeline, such as 1f1b, interleaved, gpipe or zb-h1
    chunks : int
        parts of the model on each stage, of schedule interleaved (virtual stages)
    stage_layers : tuple of int
        layers of each part of the model in the order of the forward pass, where they are not even
    recompute : str
        what the backward pass computes again: nothing, the inside of attention (selective), or each layer from its
        input (full)
    recompute_layers : int
        how many layers of each part of the model are computed again, the first ones; 0 for all
    sequence_parallel : bool
        tensor-parallel ranks share the tokens between the matrices
    messages : StageMessages
        how activations go from stage to stage
    routing : Routing
        of tokens to experts
    exchange : DataExchange
        how ranks send each other gradients and weights
    context_exchange : str
        how ranks that share sequences exchange keys and values: around a ring, gathered, or tokens for heads
    options : mapping of str to object
        of nccl: network, in_network, version, protocol
    """

    microbatch: int = 1
    schedule: str = "1f1b"
    chunks: int = 1
    stage_layers: tuple[int, ...] = ()
    recompute: Literal["none", "selective", "selective-op", "full"] = "none"
    recompute_layers: int = 0
    sequence_parallel: bool = False
    messages: StageMessages = field(default_factory=StageMessages)
    routing: Routing = field(default_factory=Routing)
    exchange: DataExchange = field(default_factory=DataExchange)
    context_exchange: Literal["ring", "all-gather", "all-to-all"] = "ring"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        refuse_types(self)
        problems = [
            Problem("a whole number of 1 or more is expected", key=key, value=str(value))
            for key, value in (
                ("microbatch", self.microbatch),
                ("chunks", self.chunks),
            )
            if value < 1
        ]
        if self.recompute_layers < 0:
            message = "a number of layers is expected, or 0 for all"
            problems.append(Problem(message, key="recompute_layers", value=str(self.recompute_layers)))
        if self.recompute_layers and self.recompute == "none":
            message, expected = "nothing is computed again", 'recompute = "full" or "selective"'
            value = str(self.recompute_layers)
            problems.append(Problem(message, key="recompute_layers", value=value, expected=expected))
        if problems:
            raise InputError(problems)


@dataclass(frozen=True, slots=True)
class Compression:
    """Encoding of gradients on their way to the servers.

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
        the same without compression is simulated beside it, and the whole run is given relative to it
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
    """Traffic of adding up and updating through a server's memory, and who updates.

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


Strategy: TypeAlias = DDP | LocalSGD | DataParallel | ByHand | ModelParallel | Servers

#: strategies of which every device has the whole model, by the names that files give them
REPLICATED: Mapping[str, type[Strategy]] = {
    "ddp": DDP,
    "data-parallel": DataParallel,
    "naive": ByHand,
    "local-sgd": LocalSGD,
}

#: strategies without servers
TRAINED: Mapping[str, type[Strategy]] = {**REPLICATED, "model-parallel": ModelParallel}

#: all strategies by name
STRATEGIES: Mapping[str, type[Strategy]] = {**TRAINED, "servers": Servers}

#: strategies of one process, which drives all devices of a server
ONE_PROCESS = (DataParallel, ByHand)


def has_option(strategy: str, option: str) -> bool:
    """Whether the strategy of a name has an option.

    Examples
    --------
    >>> has_option("ddp", "bucket"), has_option("naive", "bucket")
    (True, False)
    """
    return option in {one.name for one in fields(STRATEGIES[strategy])}
