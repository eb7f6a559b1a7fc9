"""Baselines of scaling and of collectives: what a planner gets from data sheets without a simulation.

Beside collectives stands a ring by the data sheets of its links (`RingLinks.collective_time`). Beside scaling stand two
closed forms wherever they are defined. *Linear*: n GPUs do n times the work of one.
*Ring*: the step of one GPU, and behind it one all-reduce of all gradients around a ring,

    2 (n - 1) latency + 2 (n - 1) / n * bytes / bandwidth,

the usual alpha-beta form (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in
MPICH", IJHPCA 19(1), 2005) without overlap. Bandwidth is that of the ring's slowest link, as the catalogue has it after
protocol overheads; rings that the machine's links allow beside each other add up. Nothing of a prediction but its sizes
(GPUs, samples and bytes of a step) is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from simperf.hardware import Machine
from simperf.hardware.rings import find_rings
from simperf.results import Result
from simperf.scenario import Scenario

__all__ = ["RingLinks", "ScalingBaselines", "gradient_bytes", "ring_links", "scaling_baselines"]

#: programs whose GPUs share nothing but the gradients of equal replicas
_REPLICATED = ("train", "parameter-server", "servers-or-ring")


@dataclass(frozen=True, slots=True)
class RingLinks:
    """Latency [s] and bandwidth [B/s] from GPU to GPU of a ring, in one direction."""

    latency: float
    bandwidth: float

    def collective_time(self, collective: str, workers: int, nbytes: float) -> float:
        """Time of a ring's collective of so many bytes, as nccl-tests counts them [s].

        An all-reduce takes 2 (n - 1) steps with a part of the bytes each, a gather, a reduce-scatter or an exchange of
        all with all n - 1; a broadcast or a reduction takes the bytes once, behind the latency of n - 1 hops.

        Examples
        --------
        >>> links = RingLinks(0.0, 1e9)
        >>> [links.collective_time(name, 4, 1e9) for name in ("all-reduce", "all-gather", "broadcast")]
        [1.5, 0.75, 1.0]
        """
        if collective in ("broadcast", "reduce"):
            return (workers - 1) * self.latency + nbytes / self.bandwidth
        steps = (2 if collective == "all-reduce" else 1) * (workers - 1)
        return steps * (self.latency + nbytes / workers / self.bandwidth)


@dataclass(frozen=True, slots=True)
class ScalingBaselines:
    """Both baselines of a scenario that was given the speed of one GPU.

    Parameters
    ----------
    workers : int
        GPUs that share the work.
    alone : float
        Samples a second of one GPU [1/s].
    samples : float
        Of one step on all GPUs [1].
    nbytes : float
        Gradients of one GPU [B]; NaN if they are not all that travels.
    links : RingLinks, optional
        Of a ring through the GPUs; None if there is no such ring.
    dataset : float
        Samples of an epoch, 0 if none was asked for [1].
    """

    workers: int
    alone: float
    samples: float
    nbytes: float = math.nan
    links: RingLinks | None = None
    dataset: float = 0.0

    def linear(self, quantity: str) -> float:
        """A quantity by linear scaling, in its SI unit; NaN if it is none of scaling.

        Examples
        --------
        >>> ScalingBaselines(4, 100.0, 200.0).linear("metrics.samples per second")
        400.0
        """
        return self._of(quantity, self.samples / (self.workers * self.alone))

    def ring(self, quantity: str) -> float:
        """A quantity with a ring's all-reduce behind each step, in its SI unit; NaN where that is not defined.

        Examples
        --------
        >>> ScalingBaselines(4, 100.0, 200.0, 1e9, RingLinks(0.0, 3e9)).ring("metrics.time per step")
        1.0
        """
        if self.workers == 1:
            return self.linear(quantity)
        if self.links is None or math.isnan(self.nbytes):
            return math.nan
        added = self.links.collective_time("all-reduce", self.workers, self.nbytes)
        return self._of(quantity, self.samples / (self.workers * self.alone) + added)

    def _of(self, quantity: str, step: float) -> float:
        """The quantity of steps that take `step` [s]."""
        name = quantity.removeprefix("metrics.")
        if name == "time per step":
            return step
        if name == "samples per second":
            return self.samples / step
        if name == "time per epoch" and self.dataset:
            return self.dataset / self.samples * step
        if name.endswith("scaling efficiency"):
            return self.samples / step / (self.workers * self.alone)
        return math.nan


def scaling_baselines(scenario: Scenario, result: Result) -> ScalingBaselines | None:
    """The baselines of a scenario: by the speed of one GPU that it was given, and the sizes of the steps simulated.

    Parameters
    ----------
    scenario : Scenario
        One variant.
    result : Result
        Of the same variant; only its sizes are read.

    Returns
    -------
    ScalingBaselines or None
        None where no speed was given.
    """
    given, metrics = scenario.parameters, result.metrics
    alone = given.get("alone")
    if not (isinstance(alone, float) and alone > 0 and {"samples per second", "time per step"} <= metrics.keys()):
        return None
    rate = metrics["samples per second"].value
    if "GPUs" in metrics:
        workers = round(metrics["GPUs"].value)
    elif "scaling efficiency" in metrics:  # what it is of is the rate of linear scaling
        workers = round(rate / metrics["scaling efficiency"].value / alone)
    else:
        return None
    nbytes = gradient_bytes(scenario, result) if scenario.program.name in _REPLICATED else math.nan
    machine = scenario.machine
    links = ring_links(machine, machine.gpus[:workers]) if machine is not None and workers > 1 else None
    samples = rate * metrics["time per step"].value
    return ScalingBaselines(workers, alone, samples, nbytes, links, float(given.get("dataset") or 0))


def gradient_bytes(scenario: Scenario, result: Result) -> float:
    """Gradients that one GPU of equal replicas exchanges in a step [B].

    Parameters
    ----------
    scenario : Scenario
        One variant of a program whose GPUs are replicas.
    result : Result
        Of the same variant; only its sizes are read.
    """
    sent = result.metrics.get("payload per step") or result.metrics.get("memory: weights")
    return sent.value if sent is not None else float(scenario.parameters["weights"])


def ring_links(machine: Machine, gpus: tuple[str, ...]) -> RingLinks | None:
    """Latency and bandwidth of the rings through GPUs of a machine; None if there are fewer than two.

    Parameters
    ----------
    machine : Machine
    gpus : tuple of str
        Ids of their nodes.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> machine = Catalog.load().machine("dgx-1v")
    >>> ring_links(machine, machine.gpus).bandwidth / 1e9
    120.0
    """
    if len(gpus) < 2:
        return None
    rings = find_rings(machine, gpus)
    latency, bandwidth = 0.0, 0.0
    for ring in rings:
        pairs = (*pairwise(ring.order), (ring.order[-1], ring.order[0]))
        routes = [machine.route(a, b) for a, b in pairs]
        latency = max(latency, *(route.latency for route in routes))
        # where GPUs are joined by links of their own the same ring runs the other way round as well
        both = len(gpus) > 2 and all(len(route.edges) == 1 for route in routes)
        bandwidth += ring.bandwidth * (2 if both else 1)
    return RingLinks(latency, bandwidth)
