"""On which machine `simperf collective` runs, and on which of its nodes the ranks sit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf.collectives import Wired
    from simperf.hardware import Machine

__all__ = ["find_machine", "refuse_unread", "seat"]

#: ranks of a wiring, and servers of a cluster, beyond which nobody waits for the answer
MOST_RANKS = 1 << 20
MOST_NODES = 1 << 14


def find_machine(name: str, folders: Sequence[Path]) -> Machine:
    """The server or cluster of that name, or that a file describes, with the parts beside it.

    Raises
    ------
    SimperfError
        There is none, or it cannot exist.
    """
    from simperf.errors import InputError, Problem
    from simperf.files import read_toml
    from simperf.hardware import Catalog, build_machine

    if not name.endswith(".toml"):
        return Catalog.load(folders).machine(name)
    toml = read_toml(name)
    kind = toml.data.get("kind")
    if kind not in ("server", "cluster"):
        found = "" if kind is None else str(kind)
        raise InputError(Problem("no machine", file=name, key="kind", value=found, expected="server or cluster"))
    catalog = Catalog.load(folders) if folders else Catalog.beside(name)
    return build_machine(toml.data, catalog, toml, name=Path(name).stem, at=())


def seat(place: Mapping[str, Any], *, ranks: int | None, nodes: int, servers: int = 0) -> tuple[Wired, tuple[str, ...]]:
    """The machine that the options `place` ask for, and the nodes of its ranks.

    Parameters
    ----------
    place : mapping
        Options of the machine; ``bandwidth`` [B/s] and ``latency`` [s] are those of a wiring. ``profile`` is one whose
        constants its parts take, and ``changed`` is told which.
    ranks : int, optional
        How many take part; all if left out.
    nodes : int
        Servers, if the machine is made of servers.
    servers : int
        Dedicated servers of a wiring.

    Raises
    ------
    InputError
        No machine is named, or two are, or it has not so many GPUs.
    """
    from simperf.collectives import Wiring
    from simperf.errors import InputError, Problem
    from simperf.hardware import Catalog, build_cluster

    too_many = [
        Problem("more than the command lays out", key=key, value=str(count), expected=f"at most {most:,}")
        for key, count, most in (("--ranks", ranks or 0, MOST_RANKS), ("--nodes", nodes, MOST_NODES))
        if count > most
    ]
    if too_many:
        raise InputError(too_many)
    given = [key for key in ("wiring", "server", "cluster") if place[key]]
    if len(given) != 1:
        message = "name one machine" if not given else f"--{given[0]} and --{given[1]} name two machines"
        expected = "--server NAME [--nodes N], --cluster NAME, or --wiring KIND --ranks N"
        raise InputError(Problem(message, expected=expected))
    machine: Wired
    if place["wiring"]:
        if ranks is None:
            raise InputError(Problem("a wiring needs the number of its ranks", key="--ranks", expected="--ranks 8"))
        machine = Wiring(
            place["wiring"],
            ranks,
            bandwidth=place["bandwidth"],
            latency=place["latency"],
            nservers=0 if place["wiring"] == "ring" else max(1, servers),
        )
        return machine, machine.gpus
    if nodes < 1:
        raise InputError(Problem("there must be at least one server", key="--nodes", value=str(nodes)))
    catalog = Catalog.load(place["folders"])
    if place.get("profile") is not None:
        from simperf.study.collective import calibrated

        catalog = calibrated(catalog, place["profile"], place["changed"])
    if place["cluster"]:
        machine = catalog.machine(place["cluster"])
    elif nodes == 1:
        machine = catalog.machine(place["server"])
    else:
        extra = {"servers_per_leaf": place["servers_per_leaf"], "oversubscription": place["oversubscription"]}
        machine = build_cluster(
            place["server"],
            nodes,
            catalog=catalog,
            fabric=place["fabric"],
            link=place["link"] or _cable(catalog, place["server"]),
            **(extra if place["fabric"] == "fat-tree" else {}),
        )
    gpus = machine.gpus
    count = len(gpus) if ranks is None else ranks
    if not 1 <= count <= len(gpus):
        message = f"the machine has {len(gpus)} GPUs"
        raise InputError(Problem(message, key="--ranks", value=str(count), expected=f"1 to {len(gpus)}"))
    return machine, gpus[:count]


def refuse_unread(place: Mapping[str, Any], given: Collection[str]) -> None:
    """Refuse options of a machine that nothing would read: what was typed is never left out in silence."""
    from simperf.errors import InputError, Problem

    network = ("fabric", "link", "oversubscription", "servers_per_leaf")
    if place["wiring"]:
        unread = dict.fromkeys(("nodes", "folder", *network), "it belongs to --server; a wiring has none")
    else:
        unread = dict.fromkeys(("bandwidth", "latency"), "it belongs to --wiring; a machine has its own")
        if place["cluster"]:
            unread |= dict.fromkeys(("nodes", *network), "it belongs to --server; a cluster has its own")
        elif place["nodes"] == 1:
            unread |= dict.fromkeys(network, "one server has no network: give --nodes")
        elif place["fabric"] != "fat-tree":
            unread |= dict.fromkeys(network[2:], "it belongs to --fabric fat-tree")
    wrong = [Problem(why, key=f"--{key.replace('_', '-')}") for key, why in unread.items() if key in given]
    if wrong:
        raise InputError(wrong)


def _cable(catalog: Any, server: str) -> str:
    """The cable that is called as the server's NIC is."""
    from simperf.errors import InputError, Problem

    machine = catalog.machine(server)
    nics = [machine.nodes[node].part for node in machine.ids("nic")]
    name = nics[0].name if nics and nics[0] is not None else ""
    if name in catalog.names("link"):
        return str(name)
    stem = str(name).replace("ena-", "ethernet-")
    if stem in catalog.names("link"):
        return stem
    cables = ", ".join(one for one in catalog.names("link") if one.startswith(("ethernet", "infiniband", "efa")))
    raise InputError(
        Problem(f"the cable between the servers is not known from {server}", key="--link", expected=cables)
    )
