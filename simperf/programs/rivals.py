"""Servers or a ring: the same model on the same machines, its gradients added up in two ways.

"Dive into Deep Learning", section 12.7; Y. Jiang et al., "A unified architecture for accelerating
distributed DNN training in heterogeneous GPU/CPU clusters" (BytePS), OSDI 2020.
"""

from __future__ import annotations

from dataclasses import replace

from simperf.errors import ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.registry import program
from simperf.training.data.buckets import BUCKET
from simperf.training.driver import train
from simperf.training.job import Devices, Disturbances, Job
from simperf.training.replica import Traced
from simperf.training.servers.local_rings import GROUPED
from simperf.training.servers.multi_machine import Reduction
from simperf.training.stack import Serving, Stack, Transport
from simperf.training.strategies import DDP, Servers, ServerUpdate
from simperf.units import Bytes, PerSecond, Ratio
from simperf.workload.zoo import load

__all__ = ["servers_or_ring"]


@program("servers-or-ring")
def servers_or_ring(
    m: Session,
    *,
    servers: int = 1,
    model: str = "resnet50",
    precision: str = "fp32",
    batch: int = 32,
    alone: PerSecond = 0.0,
    bucket: Bytes = BUCKET,
    algorithm: str = "nccl",
    slice_size: Bytes = 4.096e6,
    reduction: Reduction = "ring",
    grouped: int = GROUPED,
    connections: int = 1,
    variation: Ratio = 0.0,
    steps: int = 2,
) -> Program:
    """Hold parameter servers on machines of their own against an all-reduce without them (section 12.7).

    The last machines are the servers; the GPUs of the others train with a collective, and in a run of their own with
    servers, as BytePS does: keys are cut into slices, each machine adds a slice up first, servers only add up, the
    workers update, and every connection between a machine and a server carries one slice after the other.

    Parameters
    ----------
    servers : int
        machines that only serve
    model : str
        a model of the zoo
    precision : str
        of the model
    batch : int
        samples of a step on each GPU
    alone : float
        samples a second of one GPU by itself, its whole step, as measured
    bucket : float
        size at which a bucket of gradients is closed
    algorithm : str
        of the all-reduce
    slice_size : float
        keys above this are cut for the servers
    reduction : str
        where a machine adds up first
    grouped : int
        slices of one call of the collectives inside a machine
    connections : int
        slices between a machine and one server under way at one time each way, 0 for all
    variation : float
        standard deviation of the time that equal GPUs take for the same work
    steps : int
        steps of the optimizer
    """
    machines = [slot.name for slot in m.machine.servers]
    if not 0 < servers < len(machines):
        raise ProgramError(f"servers is {servers}, but of {len(machines)} machines at least one serves and one trains")
    gpus = tuple(gpu for gpu in m.machine.gpus if gpu.partition("/")[0] in machines[:-servers])
    with_servers = Job(
        Traced(load(model), precision),
        Servers(servers, "dedicated", reduction=reduction, update=ServerUpdate(on_workers=True)),
        stack=Stack(
            transport=Transport(connections=connections), serving=Serving(slice_size=slice_size, grouped=grouped)
        ),
        disturbances=Disturbances(variation=variation),
        batch_per_gpu=batch,
        steps=steps,
        alone=alone,
    )
    ring = replace(
        with_servers,
        strategy=DDP(algorithm, bucket=bucket, first_bucket=bucket, bucket_view=False),
        devices=Devices(nodes=gpus, exact="no"),
        stack=Stack(),
    )
    beside = m.another()
    beside.play(train(beside, with_servers))
    yield train(m, ring)
    m.notes += [f"with servers: {note}" for note in beside.notes]
    ways = {"servers": beside.metrics, "ring": m.metrics}
    rates = {way: batch * len(gpus) / found["time per step"][0] for way, found in ways.items()}
    lost = m.metrics["scaling efficiency"][0] if len(gpus) > 1 else 1.0
    own = rates["ring"] / len(gpus) / lost  # of one GPU without the others
    for way, rate in rates.items():
        m.metric(f"{way}: samples per second", rate, "1/s")
        m.metric(f"{way}: scaling efficiency", rate / (own * len(gpus)))
    m.metric("speed-up of servers", rates["servers"] / rates["ring"] - 1)
