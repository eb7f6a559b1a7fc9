"""Machines of imported jobs: one server, or as many on a network as the GPUs need."""

from __future__ import annotations

from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.frameworks.draft import JobDraft
from simperf.hardware import Catalog
from simperf.hardware.server_fabric import fabric_of

__all__ = ["ASSUMED", "cluster_table", "draft_machine", "server_gpus"]

#: server of a job that does not say what it runs on
ASSUMED = "dgx-h100"


def server_gpus(name: str) -> int:
    """GPUs of a server of the catalogue; 0 where the name is of none."""
    catalog = Catalog.load()
    return len(catalog.machine(name).gpus) if name in catalog.names("server") else 0


def draft_machine(draft: JobDraft, gpus: int, on: str) -> None:
    """Draft ``[machine]`` for a number of GPUs; without a name that of `ASSUMED`, with a comment."""
    table = draft.tables["machine"] = _machine_table(on or ASSUMED, gpus)
    if not on:
        key = "use" if "use" in table else "server"
        draft.comments["machine", key] = "assumed, as the job names no hardware; --on NAME says it"


def _machine_table(name: str, gpus: int) -> dict[str, Any]:
    """The ``[machine]`` table for a number of GPUs.

    Parameters
    ----------
    name : str
        A server or a cluster of the catalogue.
    gpus : int
        Of the job.

    Raises
    ------
    InputError
        Neither, a cluster with fewer GPUs, or servers without a network among them.
    """
    catalog = Catalog.load()
    try:
        machine = catalog.machine(name)
    except UnknownNameError as error:
        expected = "a server or a cluster of `simperf catalog list`"
        raise InputError(Problem(str(error), file="--on", expected=expected)) from None
    inside = len(machine.gpus)
    if machine.fabric is not None:
        if gpus > inside:
            message = f"the cluster has {inside} GPUs, the job takes {gpus}"
            raise InputError(Problem(message, file="--on", value=name, expected="a server, or a larger cluster"))
        return {"use": name}
    if gpus <= inside:
        return {"use": name}
    if gpus % inside:
        message = f"{gpus} GPUs are no multiple of the server's {inside}"
        raise InputError(Problem(message, file="--on", value=name, expected=f"a multiple of {inside} GPUs"))
    return cluster_table(name, gpus // inside)


def cluster_table(server: str, count: int) -> dict[str, Any]:
    """The ``[machine]`` table of servers on the network that their NICs are for.

    Parameters
    ----------
    server : str
        Of the catalogue.
    count : int
        Number of servers.

    Raises
    ------
    InputError
        A server without a NIC.
    """
    fabric = fabric_of(Catalog.load(), server)
    return {"kind": "cluster", "server": server, "count": count, "fabric": fabric}
