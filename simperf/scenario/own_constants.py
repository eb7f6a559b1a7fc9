"""Constants of a scenario's own, of which the errors of published figures say nothing.

Figures were predicted with the constants of the catalogue and of the shipped stacks. What a data sheet has of a part
(peaks, bandwidths, capacities) a prediction may be given: so were those of published figures. What must be measured
(efficiencies, times of launches, paces in steps) is known to be off by as much as the catalogue's is, and nothing is
known of another value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simperf.analysis.left_out import read_errors
from simperf.analysis.questions import KERNELS
from simperf.files import read_toml
from simperf.hardware import Catalog, GpuPart, Machine

if TYPE_CHECKING:
    from simperf.execution import FrontendPart
    from simperf.scenario.settings import Scenario

__all__ = ["estimated_architecture", "own_constants", "own_gpu_constants"]

#: constants of a GPU that no data sheet has
_MEASURED = ("efficiency", "attention", "experts", "product", "kernel_floor", "exchange", "die_pace")
#: times, rates and shares of servers' processes and messages, as stacks and scenarios name them
_OF_SERVERS = ("message", "uneven", "handle", "take", "server_memory")


def own_constants(scenario: Scenario) -> str:
    """Constants that stand for those of the catalogue and of shipped stacks, in words; empty if there are none.

    Parameters
    ----------
    scenario : Scenario

    Examples
    --------
    >>> from simperf.scenario import make_scenario
    >>> program = {"use": "train", "model": "resnet50", "batch_per_gpu": 32}
    >>> tables = {"machine": {"use": "dgx-1v"}, "frontend": {"use": "pytorch", "launch": "3 us"}, "program": program}
    >>> own_constants(make_scenario(tables))
    'launch of a frontend of its own'
    """
    if scenario.profiles:
        return "a profile's constants, which --samples draws"
    if scenario.cost.sharp:
        return "the roofline of textbooks"
    if scenario.cost.efficiency or scenario.cost.kernels:
        return "efficiencies that the scenario states"
    found = _of_frontend(scenario.frontend, scenario.data.get("frontend"))
    found = found or _of_stack(scenario.parameters.get("stack")) or _of_job(scenario.data)
    return found or (own_gpu_constants(scenario.machine) if scenario.machine is not None else "")


def own_gpu_constants(machine: Machine) -> str:
    """Constants of a machine's GPUs that no data sheet has and that are not the catalogue's; empty if there are none.

    Parameters
    ----------
    machine : Machine
    """
    for part in _gpus(machine):
        names = _constants_of(part)
        if names:
            return f"{' and '.join(names)} of {part.name}"
    return ""


def estimated_architecture(machine: Machine) -> str:
    """The first architecture of a machine's GPUs of which no kernel was measured; empty if there is none.

    Efficiencies of such an architecture are estimates, and published steps are not of its GPUs: they say nothing of
    how far these efficiencies are off.

    Parameters
    ----------
    machine : Machine

    Examples
    --------
    >>> machines = (Catalog.load().machine(name) for name in ("p2-xlarge", "dgx-h100"))
    >>> [estimated_architecture(one) for one in machines]
    ['kepler', '']
    """
    return next((one.architecture for one in _gpus(machine) if one.architecture not in _measured()), "")


@lru_cache(maxsize=1)
def _measured() -> frozenset[str]:
    """Architectures of the GPUs whose published kernels are compared with predictions."""
    return frozenset(_catalog().gpu(one.gpu).architecture for one in read_errors(KERNELS))


@lru_cache(maxsize=1)
def _catalog() -> Catalog:
    return Catalog.load()


def _gpus(machine: Machine) -> list[GpuPart]:
    """Each GPU part of a machine once."""
    blueprints = dict.fromkeys(slot.blueprint for slot in machine.servers)
    nodes = [node for one in blueprints for node in one.nodes.values()] if blueprints else list(machine.nodes.values())
    return list({node.part.name: node.part for node in nodes if isinstance(node.part, GpuPart)}.values())


def _constants_of(part: GpuPart) -> list[str]:
    """Names of a GPU's constants that are neither its own in the catalogue nor those of its architecture there."""
    catalog = _catalog()
    if part.name in catalog.names("gpu"):
        known = catalog.gpu(part.name)
        return [name for name in _MEASURED if getattr(part, name) != getattr(known, name)]
    if part.architecture not in catalog.names("architecture"):
        return [f"an architecture of its own, {part.architecture}, with the constants"]
    shared = catalog.part("architecture", part.architecture)
    return [name for name in _MEASURED if getattr(part, name) != getattr(shared, name, 1.0)]


def _of_frontend(frontend: FrontendPart, table: object) -> str:
    """Times of a frontend that the scenario gives, or a frontend of another file than the catalogue's."""
    given = [key for key in table if key != "use"] if isinstance(table, Mapping) else []
    if given:
        return f"{' and '.join(given)} of a frontend of its own"
    if frontend.name != "free" and frontend.name not in _catalog().names("frontend"):
        return f"a frontend of its own, {frontend.name}"
    return ""


def _of_stack(stack: object) -> str:
    """What a stack's file gives that must be measured, and the files of its bases, where they are not shipped."""
    name = str(stack or "")
    while name.endswith(".toml"):
        data = read_toml(name).data
        if data.get("pace"):
            return f"paces of kernels of the stack {Path(name).stem}"
        given = [key for table in ("transport", "serving") for key in _OF_SERVERS if key in data.get(table, {})]
        if given:
            return f"{' and '.join(given)} of the stack {Path(name).stem}"
        base = str(data.get("base", ""))
        name = str(Path(name).parent / base) if base.endswith(".toml") else ""
    return ""


def _of_job(data: Mapping[str, Any]) -> str:
    """Times and rates of servers and their messages that the scenario gives instead of its stack."""
    tables = [data.get(name) for name in ("program", "transport", "serving")]
    given = [key for key in _OF_SERVERS if any(isinstance(one, Mapping) and key in one for one in tables)]
    return f"{' and '.join(given)} of its own" if given else ""
