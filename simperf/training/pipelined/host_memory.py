"""Memory of hosts that ranks of a divided model use: activations of some blocks, and states of the optimizer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from simperf.errors import DeviceMemoryError, Problem
from simperf.hardware import Machine
from simperf.layout import Layout
from simperf.memory import LayerMemory, TensorKind
from simperf.training.offload import Offload
from simperf.training.pipelined.work import StepWork
from simperf.units import format_quantity
from simperf.workload.op import Op

__all__ = ["held_on_host", "hosts_of", "offloaded_layers", "refuse_full_hosts", "without_states"]

#: pieces of states that are on a GPU at a time: one is updated or goes back, the next one comes
_PIECES = 2


def offloaded_layers(layers: Sequence[LayerMemory], away: Sequence[int]) -> list[LayerMemory]:
    """Layers of a chunk, some of which keep their activations on the host.

    While a layer runs there are its own and those of the one before it, which go or come.

    Parameters
    ----------
    layers : sequence of LayerMemory
    away : sequence of int
        Indices of those.
    """
    found = []
    for index, one in enumerate(layers):
        moving = sum(layers[other].kept for other in (index - 1, index) if other in away)
        beside: tuple[tuple[TensorKind, float], ...] = (("activations", moving),) if moving else ()
        kept = 0.0 if index in away else one.kept
        forward, backward = (*one.forward_beside, *beside), (*one.backward_beside, *beside)
        found.append(one._replace(kept=kept, forward_beside=forward, backward_beside=backward))
    return found


def without_states(resident: Mapping[TensorKind, float], weights: float, offload: Offload) -> dict[TensorKind, float]:
    """Memory that stays on a GPU of what it would hold for the whole step, by kind [B].

    Parameters
    ----------
    resident : mapping of str to float
    weights : float
        That the rank updates.
    offload : Offload
    """
    found = dict(resident)
    if offload.states == "gpu":
        return found
    states = found.pop("master", 0.0) + found.pop("optimizer", 0.0)
    if offload.states == "streamed" and weights:
        found["optimizer"] = min(1.0, _PIECES * offload.piece / weights) * states
    return found


def held_on_host(work: StepWork, stage: int) -> float:
    """Bytes that a rank of a stage holds in its host's memory [B].

    Activations are those of as many micro-batches as the stage has in flight at most, of its chunk that sends most;
    for an update on the host its gradients are there, too.
    """
    layers = {chunk: work.layers(stage, chunk) for chunk in work.chunks(stage)}
    kept = max((sum(own[index].activations for index in work.offloaded(stage, chunk)) for chunk, own in layers.items()))
    end, found = work.ends[stage], work.plan.in_flight[stage] * kept
    if work.offload.states != "gpu":
        weights = max((one.elements for one in end.update if isinstance(one, Op)), default=0.0)
        found += weights * (end.state + (end.gradient if work.offload.states == "host" else 0.0))
    return float(found)


def hosts_of(machine: Machine, nodes: Sequence[str]) -> tuple[str, ...]:
    """CPU next to each rank's GPU."""
    return tuple(machine.nearest(node, "cpu") for node in nodes)


def refuse_full_hosts(machine: Machine, nodes: Sequence[str], layout: Layout, work: StepWork) -> dict[str, float]:
    """Memory of each host that ranks use [B].

    Raises
    ------
    DeviceMemoryError
        One has less.
    """
    each = [held_on_host(work, stage) for stage in range(work.stages)]
    found: dict[str, float] = defaultdict(float)
    for stage, host in zip(layout.mesh.places("pp"), hosts_of(machine, nodes), strict=True):
        found[host] += each[stage]
    for host, nbytes in found.items():
        capacity = getattr(machine.nodes[host].part, "memory_capacity", float("inf"))
        if nbytes > capacity:
            ranks = hosts_of(machine, nodes).count(host)
            message = (
                f"{host} has {format_quantity(capacity, 'B')} of memory, and its {ranks} ranks would hold "
                f"{format_quantity(nbytes, 'B')} there"
            )
            expected = 'fewer layers, states = "gpu", or states that more ranks share (zero-1)'
            raise DeviceMemoryError([Problem(message, key="offload", value=str(work.offload), expected=expected)])
    return dict(found)
