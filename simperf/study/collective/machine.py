"""The machine that a collective is timed on, and which of its GPUs take part."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.hardware import Catalog, Machine, ProfilePart, build_cluster, build_topology
from simperf.study.collective.timing import calibrated

__all__ = ["BuiltMachine", "MachineChoice"]

#: ranks of a topology, and servers of a cluster, beyond which nobody waits for the answer
MOST_RANKS = 1 << 20
MOST_NODES = 1 << 14

#: options of the network between servers
_NETWORK = ("fabric", "link", "oversubscription", "servers_per_leaf")


class BuiltMachine(NamedTuple):
    """A machine, the nodes of the ranks, and the parts that a profile changed, by its name."""

    machine: Machine
    ranks: tuple[str, ...]
    changed: dict[str, set[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChoice:
    """A server, a cluster or a regular topology; errors name the options of `simperf collective`.

    Parameters
    ----------
    server, cluster, topology : str
        One of them: a name of the catalogue, or a kind of topology.
    nodes : int
        Servers, of a machine that is made of them.
    fabric, link : str
        Network between servers, and its cable; that of the server's NIC if empty.
    oversubscription : float
        Of a fat tree: leaf ports down to capacity up [1].
    servers_per_leaf : int
        Of a fat tree.
    folders : tuple of Path
        With parts of one's own.
    ranks : int, optional
        How many take part; all if left out.
    bandwidth, latency : float
        Of each link of a topology [B/s], [s].
    dedicated : int
        Servers of a topology beside its ranks.
    profile : ProfilePart, optional
        Whose constants the parts take.
    """

    server: str = ""
    cluster: str = ""
    topology: str = ""
    nodes: int = 1
    fabric: str = "star"
    link: str = ""
    oversubscription: float = 1.0
    servers_per_leaf: int = 16
    folders: tuple[Path, ...] = ()
    ranks: int | None = None
    bandwidth: float = 50e9
    latency: float = 500e-9
    dedicated: int = 0
    profile: ProfilePart | None = field(default=None, compare=False)

    def build(self) -> BuiltMachine:
        """Build the machine and number its ranks.

        Raises
        ------
        InputError
            No machine is named, or two are, or it has not so many GPUs.
        """
        too_many = [
            Problem("more than the command lays out", key=key, value=str(count), expected=f"at most {most:,}")
            for key, count, most in (("--ranks", self.ranks or 0, MOST_RANKS), ("--nodes", self.nodes, MOST_NODES))
            if count > most
        ]
        if too_many:
            raise InputError(too_many)
        given = [key for key in ("topology", "server", "cluster") if getattr(self, key)]
        if len(given) != 1:
            message = "name one machine" if not given else f"--{given[0]} and --{given[1]} name two machines"
            expected = "--server NAME [--nodes N], --cluster NAME, or --topology KIND --ranks N"
            raise InputError(Problem(message, expected=expected))
        changed: dict[str, set[str]] = {}
        if self.topology:
            wired = self._wired()
            return BuiltMachine(wired, wired.gpus, changed)
        machine = self._machine(changed)
        gpus = machine.gpus
        count = len(gpus) if self.ranks is None else self.ranks
        if not 1 <= count <= len(gpus):
            message = f"the machine has {len(gpus)} GPUs"
            raise InputError(Problem(message, key="--ranks", value=str(count), expected=f"1 to {len(gpus)}"))
        return BuiltMachine(machine, gpus[:count], changed)

    def _wired(self) -> Machine:
        if self.ranks is None:
            raise InputError(Problem("a topology needs the number of its ranks", key="--ranks", expected="--ranks 8"))
        try:
            return build_topology(
                self.topology,  # type: ignore[arg-type]  # a kind that is unknown is refused there
                self.ranks,
                bandwidth=self.bandwidth,
                latency=self.latency,
                nservers=0 if self.topology == "ring" else max(1, self.dedicated),
            )
        except InputError as error:
            raise InputError([replace(one, key=f"--{one.key}") for one in error.problems]) from None

    def _machine(self, changed: dict[str, set[str]]) -> Machine:
        if self.nodes < 1:
            raise InputError(Problem("there must be at least one server", key="--nodes", value=str(self.nodes)))
        catalog = calibrated(Catalog.load(self.folders), self.profile, changed)
        if self.cluster:
            return catalog.machine(self.cluster)
        if self.nodes == 1:
            return catalog.machine(self.server)
        extra: dict[str, Any] = {"link": self.link or _cable(catalog, self.server)}
        if self.fabric == "fat-tree":
            extra |= {"servers_per_leaf": self.servers_per_leaf, "oversubscription": self.oversubscription}
        return build_cluster(self.server, self.nodes, catalog=catalog, fabric=self.fabric, **extra)

    def refuse_unread(self, given: Collection[str]) -> None:
        """Refuse options of a machine that nothing would read: what was typed is never left out in silence.

        Raises
        ------
        InputError
            With every one of `given` that belongs to another kind of machine.
        """
        if self.topology:
            unread = dict.fromkeys(("nodes", "folder", *_NETWORK), "it belongs to --server; a topology has none")
        else:
            unread = dict.fromkeys(("bandwidth", "latency"), "it belongs to --topology; a machine has its own")
            if self.cluster:
                unread |= dict.fromkeys(("nodes", *_NETWORK), "it belongs to --server; a cluster has its own")
            elif self.nodes == 1:
                unread |= dict.fromkeys(_NETWORK, "one server has no network: give --nodes")
            elif self.fabric != "fat-tree":
                unread |= dict.fromkeys(_NETWORK[2:], "it belongs to --fabric fat-tree")
        wrong = [Problem(why, key=f"--{key.replace('_', '-')}") for key, why in unread.items() if key in given]
        if wrong:
            raise InputError(wrong)


def _cable(catalog: Catalog, server: str) -> str:
    """The cable that is called as the server's NIC is."""
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
