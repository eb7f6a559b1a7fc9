"""Training on one GPU and on many.

"Dive into Deep Learning", sections 12.5 and 12.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import Unless, program
from simperf.programs.unused import deviates, slows, together, unused
from simperf.training.data.buckets import BUCKET, FIRST_BUCKET
from simperf.training.feeding import Feeding
from simperf.training.jitter import Family, distribution
from simperf.training.replica import Layers, Traced, Workload
from simperf.training.stragglers import slowed
from simperf.training.trainer import Training
from simperf.training.trainer import train as run_training
from simperf.units import Bytes, PerSecond, Ratio, Seconds

__all__ = ["train", "workload_of"]

Strategy = Literal["ddp", "data-parallel", "naive", "local-sgd"]


def _rules(given: Mapping[str, Any]) -> tuple[Unless, ...]:
    """What has an effect only together with something else."""
    layers = ("layers", "forward", "backward", "fixed", "update", "weights", "sizes", "sample", "output", "activations")
    return (
        Unless(not given["model"], (*layers, "states"), "a model of the zoo brings its own layers", "no model"),
        Unless(
            bool(given["model"]), ("precision", "optimizer"), "layers in round numbers have none", "a model of the zoo"
        ),
        Unless(not given["devices"], ("gpus",), "the devices are named", "no devices"),
        Unless(given["workers"] > 0, ("prefetch",), "nothing is decoded ahead without workers", "workers = 1 or more"),
        deviates(given),
        deviates(given, "decode_jitter", "decode_cv"),
        Unless(
            bool(given["decode"]),
            ("decode_jitter", "decode_cv"),
            "nothing is decoded",
            "decode = the time of a sample",
        ),
        slows(given),
    )


@program("train", rules=_rules)
def train(
    m: Session,
    *,
    strategy: Strategy = "ddp",
    gpus: int = 0,
    devices: list[str] = [],
    batch: int = 256,
    batch_per_gpu: int = 0,
    split: Literal["even", "proportional"] = "even",
    speeds: list[float] = [],
    steps: int = 3,
    model: str = "",
    precision: str = "fp32",
    optimizer: str = "",
    layers: int = 10,
    forward: Seconds = 0.2e-3,
    backward: Seconds = 0.4e-3,
    fixed: Seconds = 0.0,
    update: Seconds = 0.0,
    weights: Bytes = 100e6,
    sizes: list[float] = [],
    sample: Bytes = 0.0,
    output: Bytes = 0.0,
    activations: Bytes = 0.0,
    states: float = 1.0,
    algorithm: str = "",
    options: dict[str, Any] = {},
    bucket: Bytes = BUCKET,
    first_bucket: Bytes = FIRST_BUCKET,
    overlap: bool = True,
    slowdown: Ratio = 1.0,
    accumulate: int = 1,
    every: int = 1,
    broadcast: bool = False,
    bucket_view: bool = True,
    variation: Ratio = 0.0,
    loop: Seconds = 0.0,
    decode: Seconds = 0.0,
    workers: int = 0,
    prefetch: int = 2,
    decode_jitter: Family = "constant",
    decode_cv: Ratio = 0.1,
    disk: str = "",
    stored: Bytes = 0.0,
    watched: bool = False,
    jitter: Family = "constant",
    cv: Ratio = 0.1,
    slow_link: str = "",
    slow_share: Ratio = 0.0,
    slow_from: Seconds = 0.0,
    slow_until: Seconds = 0.0,
    alone: PerSecond = 0.0,
    counted: float = 1.0,
    dataset: int = 0,
    exact: Literal["auto", "yes", "no"] = "auto",
) -> Program:
    """Train by data parallelism, and see what scaling costs (sections 12.5 and 12.6).

    Parameters
    ----------
    strategy : str
        DistributedDataParallel, DataParallel, the chapter's by hand, or local SGD
    gpus : int
        GPUs that take part, 0 for all
    devices : list of str
        the nodes that take part, instead of a number of GPUs; a CPU may be among them
    batch : int
        samples of a step on all devices together (strong scaling)
    batch_per_gpu : int
        samples of a step on each device instead (weak scaling)
    split : str
        equal shares of the batch, or the shares with which all devices finish together
    speeds : list of float
        how many times as fast each device is, in order; those not named are as fast as they are
    steps : int
        steps of the optimizer
    model : str
        a model of the zoo; without one, the layers below are trained
    precision : str
        of the model
    optimizer : str
        of the model
    layers : int
        layers of a model in round numbers
    forward : float
        time of its forward pass for one sample
    backward : float
        time of its backward pass for one sample
    fixed : float
        time of each of the two passes beside that
    update : float
        time of its optimizer
    weights : float
        all weights together; so large are the gradients
    sizes : list of float
        of the layers' weights in proportion, first layer first
    sample : float
        bytes of one sample on its way to the device
    output : float
        bytes that the forward pass hands back for one sample
    activations : float
        bytes that a sample keeps for the backward pass
    states : float
        what the optimizer keeps, in sizes of the weights: 0 SGD, 1 momentum, 2 Adam
    algorithm : str
        of all-reduce; nccl chooses by size as NCCL would, nccl-ring among its rings, others are idealised; if none is
        named, nccl where all devices are GPUs that it runs on, else ring
    options : table
        options of the algorithm; of nccl: network, in_network, launches, version, protocol
    bucket : float
        size at which a bucket of gradients is closed
    first_bucket : float
        the same for the first bucket
    overlap : bool
        communication during computation; without it, buckets wait for the end of the backward pass
    slowdown : float
        how many times slower kernels are while a collective runs beside them
    accumulate : int
        micro-batches a step; gradients travel after the last (no_sync)
    every : int
        local SGD: steps from one averaging of the weights to the next
    broadcast : bool
        give the weights of rank 0 to all at the start
    bucket_view : bool
        gradients lie in their buckets from the start; without it they are copied there and back (PyTorch's default)
    variation : float
        standard deviation of the time that equal devices take for the same work; all wait for the slowest
    loop : float
        work of each process for a batch beside launching: the Python of the loop, a data loader without workers
    decode : float
        time of a core to decode one sample, by the data loader of each process
    workers : int
        processes of each data loader that decode ahead; 0: the process that trains decodes by itself
    prefetch : int
        mini-batches that each of them may have ready
    decode_jitter : str
        how the time to decode a mini-batch varies, each loader's by itself
    decode_cv : float
        standard deviation of that time over its mean
    disk : str
        storage node of each server that the loaders read; without one, samples lie in memory
    stored : float
        bytes of a sample on that disk
    watched : bool
        each process waits for its device after every step, as one that looks at the loss
    jitter : str
        how the time of each device's kernels varies from step to step, each device's by itself
    cv : float
        standard deviation of that time over its mean
    slow_link : str
        a link of the machine that is slow for a time, or down
    slow_share : float
        what is left of its capacity
    slow_from : float
        when it becomes slow
    slow_until : float
        when it is as before; 0 for never
    alone : float
        samples a second of one device by itself with its share, its whole step, as measured; scales the kernels
    counted : float
        what is counted of a sample, such as the tokens of a sentence: samples a second are in that, alone too
    dataset : int
        samples of an epoch, whose time is reported then
    exact : str
        simulate every rank, or never, or where ranks differ
    """
    given = locals()
    wrong = unused("train", given)
    nodes = _nodes(m, gpus, devices)
    workload = workload_of(
        model,
        precision=precision,
        optimizer=optimizer,
        layers=Layers(
            layers,
            forward,
            backward,
            weights,
            update=update,
            fixed=fixed,
            sizes=tuple(sizes),
            nbytes_input=sample,
            nbytes_output=output,
            activations=activations,
            states=states,
        ),
    )
    with together(wrong):
        run = Training(
            workload,
            nodes,
            strategy=strategy,
            batch=batch,
            batch_per_gpu=batch_per_gpu,
            split=split,
            speeds=tuple(speeds),
            steps=steps,
            algorithm=algorithm,
            options=options,
            bucket=bucket,
            first_bucket=first_bucket,
            overlap=overlap,
            slowdown=slowdown,
            accumulate=accumulate,
            every=every,
            broadcast=broadcast,
            bucket_view=bucket_view,
            variation=variation,
            loop=loop,
            feeding=Feeding(decode, workers, prefetch, distribution(decode_jitter, cv=decode_cv), disk, stored),
            watched=watched,
            jitter=distribution(jitter, cv=cv),
            changes=slowed(slow_link, slow_share, slow_from, slow_until),
            alone=alone,
            counted=counted,
            dataset=dataset,
            exact={"auto": None, "yes": True, "no": False}[exact],
        )
    yield run_training(m, run)


def _nodes(m: Session, gpus: int, devices: list[str]) -> tuple[str, ...]:
    """The nodes that take part."""
    there: tuple[str, ...] = m.machine.workers
    if devices:
        return tuple(devices)
    if not there:
        raise ProgramError("the machine has no GPU to train on; name the nodes that take part as devices")
    if gpus > len(there):
        raise InputError(Problem(f"the machine has {len(there)}", key="gpus", value=str(gpus)))
    return there[: gpus or None]


def workload_of(model: str, *, precision: str, optimizer: str, layers: Layers) -> Workload:
    """A model of the zoo, or layers in round numbers if none is named."""
    if not model:
        return layers
    from simperf.workload.zoo import load

    return Traced(load(model), precision, optimizer)
