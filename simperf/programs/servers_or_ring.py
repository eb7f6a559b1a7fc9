"""Servers or a ring: the same model on the same machines, its gradients added up in two ways.

"Dive into Deep Learning", section 12.7; Y. Jiang et al., "A unified architecture for accelerating
distributed DNN training in heterogeneous GPU/CPU clusters" (BytePS), OSDI 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from simperf.errors import InputError, Problem, ProgramError
from simperf.execution import Program
from simperf.execution.session import Session
from simperf.programs.fields import keys
from simperf.programs.registry import program
from simperf.training.driver import train
from simperf.training.job import Devices, Disturbances, Job
from simperf.training.replica import Traced
from simperf.training.stack import ServerTransport, Serving, Stack
from simperf.training.strategies import DDP, Servers, ServerUpdate
from simperf.units import PerSecond
from simperf.workload.zoo import load

__all__ = ["ServersOrRing", "servers_or_ring"]


@dataclass(frozen=True, slots=True)
class ServersOrRing:
    """The same training with parameter servers on machines of their own, and with an all-reduce without them.

    Parameters
    ----------
    servers : Servers
        the machines that only serve, the last ones, and where the others add up first
    model : str
        a model of the zoo
    precision : str
        of the model
    batch : int
        samples of a step on each GPU
    alone : float
        samples a second of one GPU by itself, its whole step, as measured
    ring : DDP
        the all-reduce
    serving : Serving
        slices of the keys, and calls of the collectives inside a machine
    transport : ServerTransport
        slices between a machine and one server
    disturbances : Disturbances
        what makes equal GPUs unequal
    steps : int
        steps of the optimizer
    """

    servers: Servers = field(
        default=Servers(where="dedicated", reduction="ring", update=ServerUpdate(on_workers=True)),
        metadata=keys("servers", "reduction"),
    )
    model: str = "resnet50"
    precision: str = "fp32"
    batch: int = 32
    alone: PerSecond = 0.0
    ring: DDP = field(default=DDP("nccl", bucket_view=False), metadata=keys("bucket", "algorithm"))
    serving: Serving = field(default=Serving(slice_size=4.096e6), metadata=keys("slice_size", "grouped"))
    transport: ServerTransport = field(default=ServerTransport(connections=1), metadata=keys("connections"))
    disturbances: Disturbances = field(default=Disturbances(), metadata=keys("variation"))
    steps: int = 2

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError(Problem("a sample or more a GPU is expected", key="batch", value=str(self.batch)))

    def with_servers(self) -> Job:
        """The training with servers, on all machines."""
        return Job(
            Traced(load(self.model), self.precision),
            self.servers,
            stack=Stack(transport=self.transport, serving=self.serving),
            disturbances=self.disturbances,
            batch_per_gpu=self.batch,
            steps=self.steps,
            devices=Devices(alone=self.alone),
        )

    def with_ring(self, gpus: tuple[str, ...]) -> Job:
        """The training with an all-reduce, on the GPUs of the machines that do not serve."""
        return replace(
            self.with_servers(),
            strategy=replace(self.ring, first_bucket=self.ring.bucket),
            devices=Devices(nodes=gpus, exact="no", alone=self.alone),
            stack=Stack(),
        )


@program("servers-or-ring", events=lambda given: 32.0 * given["steps"])
def servers_or_ring(m: Session, options: ServersOrRing) -> Program:
    """Hold parameter servers on machines of their own against an all-reduce without them (section 12.7).

    The last machines are the servers; the GPUs of the others train with a collective, and in a run of their own with
    servers, as BytePS does: keys are cut into slices, each machine adds a slice up first, servers only add up, the
    workers update, and every connection between a machine and a server carries one slice after the other.
    """
    servers = options.servers.servers
    machines = [slot.name for slot in m.machine.servers]
    if not 0 < servers < len(machines):
        raise ProgramError(f"servers is {servers}, but of {len(machines)} machines at least one serves and one trains")
    gpus = tuple(gpu for gpu in m.machine.gpus if gpu.partition("/")[0] in machines[:-servers])
    with_servers, ring = options.with_servers(), options.with_ring(gpus)
    beside = m.another()
    beside.play(train(beside, with_servers))
    yield train(m, ring)
    m.notes += [f"with servers: {note}" for note in beside.notes]
    ways = {"servers": beside.metrics, "ring": m.metrics}
    rates = {way: options.batch * len(gpus) / found["time per step"][0] for way, found in ways.items()}
    lost = m.metrics["scaling efficiency"][0] if len(gpus) > 1 else 1.0
    own = rates["ring"] / len(gpus) / lost  # of one GPU without the others
    for way, rate in rates.items():
        m.metric(f"{way}: samples per second", rate, "1/s")
        m.metric(f"{way}: scaling efficiency", rate / (own * len(gpus)))
    m.metric("speed-up of servers", rates["servers"] / rates["ring"] - 1)
