"""Parameter servers and key-value stores: one or many, synchronous or not.

"Dive into Deep Learning", sections 12.7.1, 12.7.3 and 12.7.4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, cast

from simperf.errors import InputError, Problem
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import Unless, program
from simperf.programs.unused import slows, unused
from simperf.training.alone import time_alone
from simperf.training.feeding import Feeding
from simperf.training.fitting import fit_speed
from simperf.training.jitter import Constant, distribution
from simperf.training.replica import Traced, faster
from simperf.training.servers.compression import codec
from simperf.training.servers.kvstore import UNEVEN, StoreOptions
from simperf.training.servers.local_rings import GROUPED
from simperf.training.servers.multi_machine import AROUND, Reduction
from simperf.training.servers.parameter_server import ServerRun, parameter_server, report
from simperf.training.servers.placement import Placement, Where, server_nodes, worker_gpus
from simperf.training.servers.shard_server import ServerWork
from simperf.training.servers.staleness import Consistency, Mode
from simperf.training.servers.worker import Loop, Pace
from simperf.training.step import TrainingStep, even_step
from simperf.training.stragglers import slowed
from simperf.training.variation import slowest
from simperf.units import Bytes, BytesPerSecond, PerSecond, Ratio, Seconds
from simperf.workload.zoo import load

__all__ = ["train_with_servers"]

Family = Literal["lognormal", "normal", "gamma", "exponential", "weibull"]
YesNo = Literal["auto", "yes", "no"]


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    """What has an effect only together with something else."""
    layers = ("layers", "forward", "backward", "weights", "sizes", "sample", "update")
    on_workers = given["update"] > 0 or given["update_on_workers"]
    sparse = given["compression"] in ("top-k", "random-k")
    compressed = given["compression"] != "none"
    together = given["mode"] in ("synchronous", "backup")
    return (
        Unless(not given["model"], layers, "a model of the zoo brings its own layers", "no model"),
        Unless(bool(given["model"]), ("precision",), "layers in round numbers have none", "a model of the zoo"),
        Unless(bool(given["model"]), ("update_on_workers",), "layers take update on the workers", "a model of the zoo"),
        Unless(not on_workers, ("apply",), "the workers update, the servers only add up", "an update on the servers"),
        Unless(not given["nodes"], ("servers", "where"), "the servers' nodes are named", "no nodes"),
        Unless(sparse or not compressed, ("ratio",), "every element is sent", 'compression = "top-k" or "random-k"'),
        Unless(compressed, ("ratio", "dense_below", "codec_on", "free_codec"), "nothing is encoded", "a compression"),
        Unless(given["placement"] != "sliced", ("slice_size",), "every key is cut anyway", "another placement"),
        Unless(given["window"] > 0, ("duplex",), "there is no window", "window = 1 or more"),
        Unless(given["reduction"] in AROUND, ("grouped",), "no rings add up", "reduction = " + " or ".join(AROUND)),
        Unless(together, ("variation",), "nobody waits for the slowest", 'mode = "synchronous" or "backup"'),
        Unless(not together, ("uneven",), "workers stay in step", 'mode = "asynchronous" or "bounded"'),
        Unless(given["handle"] > 0, ("handlers",), "no thread takes any time", "handle above 0"),
        Unless(given["jitter"] > 0, ("family",), "no time varies", "jitter above 0"),
        Unless(given["stragglers"] > 0, ("slowdown",), "no worker is slow", "stragglers = 1 or more"),
        Unless(bool(given["disk"]), ("stored",), "nothing is read", "a disk"),
        slows(given),
    )


@program("parameter-server", rules=_rules)
def train_with_servers(
    m: Session,
    *,
    steps: int = 3,
    total: int = 0,
    opening: bool = False,
    workers: int = 0,
    servers: int = 1,
    where: Where = "cpu",
    nodes: list[str] = [],
    batch: int = 32,
    model: str = "",
    precision: str = "fp32",
    alone: PerSecond = 0.0,
    layers: int = 10,
    forward: Seconds = 0.0,
    backward: Seconds = 0.0,
    weights: Bytes = 100e6,
    sizes: list[float] = [],
    sample: Bytes = 0.0,
    update: Seconds = 0.0,
    update_on_workers: bool = False,
    placement: Placement = "balanced",
    slice_size: Bytes = 0.0,
    reduction: Reduction = "none",
    via_host: YesNo = "auto",
    spread: YesNo = "auto",
    mode: Mode = "synchronous",
    bound: int = 0,
    backup: int = 0,
    overlap: bool = True,
    barrier: bool = True,
    window: int = 0,
    duplex: bool = True,
    accepts: int = 0,
    connections: int = 0,
    requests: int = 0,
    handle: Seconds = 0.0,
    handlers: int = 0,
    buffers: int = 0,
    copiers: int = 0,
    grouped: int = GROUPED,
    priority: bool = False,
    compression: str = "none",
    ratio: float = 0.01,
    dense_below: Bytes = 0.0,
    codec_on: Literal["gpu", "cpu"] = "gpu",
    free_codec: bool = False,
    beside_dense: bool = False,
    add: float = 3.0,
    apply: float = 3.0,
    take: float = 0.0,
    server_memory: BytesPerSecond = 0.0,
    message: Seconds = 0.0,
    rate: BytesPerSecond = 0.0,
    uneven: Ratio = UNEVEN,
    variation: Ratio = 0.0,
    jitter: float = 0.0,
    family: Family = "lognormal",
    stragglers: int = 0,
    slowdown: float = 1.0,
    slow_link: str = "",
    slow_share: Ratio = 0.0,
    slow_from: Seconds = 0.0,
    slow_until: Seconds = 0.0,
    disk: str = "",
    stored: Bytes = 0.0,
) -> Program:
    """Train with parameter servers, and see where the time goes (sections 12.7.1, 12.7.3 and 12.7.4).

    Parameters
    ----------
    steps : int
        mini-batches for each worker
    total : int
        mini-batches of the whole run, if more: those that are not simulated take the mean of the others but the first
    opening : bool
        before the first step every key is made known to its server, one slice after the other, as by BytePS
    workers : int
        GPUs that train, 0 for all
    servers : int
        parameter servers
    where : str
        on the CPUs or GPUs of the workers' machines, or on the CPUs of dedicated machines, the last ones
    nodes : list of str
        the servers' nodes, instead of servers and where
    batch : int
        samples of a step on each GPU
    model : str
        a model of the zoo; without one, the layers below are trained
    precision : str
        of the model
    alone : float
        samples a second of one GPU by itself, its whole step, as measured; scales the kernels
    layers : int
        layers of a model in round numbers
    forward : float
        time of its forward pass for the batch
    backward : float
        time of its backward pass for the batch
    weights : float
        all weights together; so large are the gradients
    sizes : list of float
        of the layers' weights in proportion, first layer first
    sample : float
        bytes of one sample on its way to the device
    update : float
        time of the optimizer on the workers; above 0 the servers only add up
    update_on_workers : bool
        the workers run the model's optimizer, and the servers only add up (update_on_kvstore=False in MXNet)
    placement : str
        keys to servers: in turn, by size, or every key cut into one part a server
    slice_size : float
        keys above this are cut; 0 for none
    reduction : str
        where a machine adds up first: nowhere, on one GPU, on its CPU, on all its GPUs in turn, or part by part
        on all GPUs around NCCL's ring, or around one below each PCIe switch
    via_host : str
        whether gradients go to the machine's CPU before the network; auto: if it adds up first
    spread : str
        whether weights go to one GPU and from there to the others; auto: unless the CPU adds up
    mode : str
        how the workers are kept together
    bound : int
        bounded staleness: steps that a worker may be ahead of the slowest
    backup : int
        backup workers: gradients of a step that nobody waits for
    overlap : bool
        gradients travel as they become ready; without it, after the backward pass
    barrier : bool
        a step begins when all weights are there; without it, a layer waits for its own only
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
    handle : float
        time of the one thread that posts a worker's slices, for posting one and again for its answer
    handlers : int
        workers whose threads take that long, the first ones; 0 for all
    buffers : int
        slices that a server takes in at one time, each until all workers' gradients are added up, 0 for all
    copiers : int
        threads that copy for each GPU, the last key first and what leaves for the CPU last; 0 for copy engines
    grouped : int
        slices of one call of the collectives inside a machine, where it adds up around rings
    priority : bool
        of those that wait, the first layer's go first
    compression : str
        none, top-k, random-k, 8-bit or 1-bit
    ratio : float
        share of the elements that top-k and random-k send
    dense_below : float
        keys and slices below this go as they are
    codec_on : str
        where workers encode and decode: on the GPU, or on the CPU, to which gradients go dense then
    free_codec : bool
        encoding and decoding take no time
    beside_dense : bool
        the same without compression is played beside it, and the whole run is given relative to it
    add : float
        memory traffic of adding a gradient up, for each of its bytes
    apply : float
        memory traffic of updating the weights, for each of their bytes
    take : float
        memory traffic on a worker's CPU of taking an answer from the network, for each of its bytes
    server_memory : float
        bandwidth of the memory for what servers do, and for taking answers; 0 takes the part's
    message : float
        time of a message beside the wire: software at both ends
    rate : float
        rate that one transfer cannot exceed; 0 for no limit
    uneven : float
        spread of the shares that connections get of a port, where workers do not wait for each other; with 0 equal
        workers push together and pull together for ever
    variation : float
        standard deviation of the time that equal GPUs take for the same work; synchronous workers wait for the slowest
    jitter : float
        standard deviation of a step's computing time over its mean (weibull and exponential have their own)
    family : str
        its distribution
    stragglers : int
        workers that are always slow
    slowdown : float
        by how much
    slow_link : str
        a link of the machine that is slow for a time, or down
    slow_share : float
        what is left of its capacity
    slow_from : float
        when it becomes slow
    slow_until : float
        when it is as before; 0 for never
    disk : str
        disk of each machine that holds the data; none reads nothing
    stored : float
        bytes of one sample on that disk
    """
    given = locals()
    problems = [
        Problem(message, key=key, value=f"{value:g}")
        for key, value, wrong, message in (
            ("batch", batch, batch < 1, "one sample a GPU or more is expected"),
            ("jitter", jitter, jitter < 0, "0 or more is expected"),
            ("bound", bound, bound and mode != "bounded", f"0 is expected: mode is {mode!r}, a bound is of 'bounded'"),
        )
        if wrong
    ]
    problems += unused("parameter-server", given)
    if problems:
        raise InputError(problems)
    count = len(nodes) if nodes else servers
    gpus = worker_gpus(m.machine, workers, servers=count, where="cpu" if nodes else where)
    places = tuple(nodes) or server_nodes(m.machine, gpus, servers=servers, where=where)
    if len(set(places)) < len(places):
        m.notes.append(f"{len(places)} servers live on {len(set(places))} nodes and share their ports")
    traced = Traced(load(model), precision) if model else None
    step = even_step(
        layers,
        forward=forward,
        backward=backward,
        update=update,
        nbytes=weights,
        samples=batch,
        nbytes_input=sample * batch,
        sizes=sizes,
        launch=0.0,
    )
    if traced:
        step = traced.step(m, m.simulation.device(gpus[0]), batch)
    feeding = Feeding(disk=disk, stored=stored, workers=1, prefetch=1) if disk and stored else Feeding()
    single = partial(time_alone, m, node=gpus[0], feeding=feeding)
    if alone:
        speed = fit_speed(step, alone, single)
        m.notes.append(f"kernels at {speed:.3f} times the catalogue's speed, so that one device does {alone:g}/s")
        step = faster(step, speed)
    own = single(step)
    if mode in ("synchronous", "backup"):
        step = faster(step, slowest(len(gpus), variation, spared=backup))
    chosen = codec(compression, ratio=ratio, smallest=dense_below)
    yes = {"yes": True, "no": False, "auto": None}
    options = StoreOptions(
        rule=Consistency(mode, bound if mode == "bounded" else math.inf, backup),
        placement=placement,
        slice_size=slice_size or math.inf,
        reduction=reduction,
        via_host=yes[via_host],
        spread=yes[spread],
        codec=chosen.free() if free_codec else chosen,
        codec_on=codec_on,
        work=ServerWork(add, 0.0 if update or update_on_workers else apply),
        server_bandwidth=server_memory,
        take=take,
        window=window,
        duplex=duplex,
        accepts=accepts,
        connections=connections,
        requests=requests,
        handle=handle,
        handlers=handlers,
        buffers=buffers,
        copiers=copiers,
        grouped=grouped,
        priority=priority,
        message=message,
        rate=rate or math.inf,
        uneven=uneven,
    )
    source = distribution(family, cv=jitter) if jitter else Constant()
    plan: dict[str, Any] = {
        "gpus": gpus,
        "servers": places,
        "steps": steps,
        "loop": Loop(overlap, barrier, updates=update > 0 or update_on_workers),
        "pace": Pace(source, stragglers, slowdown),
        "disk": disk,
        "nbytes_stored": stored * batch,
        "opening": opening,
        "total": total,
        "changes": slowed(slow_link, slow_share, slow_from, slow_until),
        "need": (lambda samples: math.fsum(traced.memory(samples).values())) if traced else None,
    }
    outcome = yield parameter_server(m, step, options=options, **plan)
    report(m, outcome, step, alone=own)
    m.work(f"samples of {model or 'layers'}", outcome.samples_per_second * outcome.time)
    if beside_dense:
        dense = _dense(m, step, options, plan)
        m.metric("time relative to dense", (outcome.long_run or outcome.time) / (dense.long_run or dense.time))
        m.metric("dense: time per step", dense.step_time, "s")


def _dense(m: Session, step: TrainingStep, options: StoreOptions, plan: dict[str, Any]) -> ServerRun:
    """The run without compression, in a session of its own."""
    beside, found = m.another(), []

    def train() -> Program:
        found.append((yield parameter_server(beside, step, options=replace(options, codec=codec("none")), **plan)))

    beside.play(train())
    return cast(ServerRun, found[0])
