"""Times of collectives that were measured on a machine, by size: what a profile holds of NCCL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MeasuredCollective", "MeasuredCollectives"]


@dataclass(frozen=True, slots=True)
class MeasuredCollective:
    """One collective among a number of GPUs.

    Parameters
    ----------
    collective : str
    ranks : int
    servers : int
        That the ranks were in; 0 if it is not known.
    sizes, times : tuple of float
        Payloads, rising [B], and the time of each [s].
    name : str
        Of the fitted model.
    gpu : str
        That was measured; empty if it is not known.
    launches : int
        GPUs that one process drove; 0 if it is not known.
    source : str
        File of the profile.

    Examples
    --------
    >>> one = MeasuredCollective("all-reduce", 8, 1, (1e3, 1e6), (1e-5, 4e-5))
    >>> round(one.time(1e3, lambda nbytes: 2e-5), 9), one.time(1e9, lambda nbytes: nbytes / 1e11)
    (1e-05, 0.04)
    """

    collective: str
    ranks: int
    servers: int
    sizes: tuple[float, ...]
    times: tuple[float, ...]
    name: str = ""
    gpu: str = ""
    launches: int = 0
    source: str = ""

    def time(self, nbytes: float, modelled: Callable[[float], float]) -> float:
        """Time of a payload, if nothing hinders the collective [s].

        Between two sizes that were measured it lies on a line over the logarithms of size and time. Below the first and
        above the last size it is as many times the modelled time as there.

        Parameters
        ----------
        nbytes : float
            Payload [B].
        modelled : callable
            From a payload [B] to the time without what was measured [s].
        """
        if self.sizes[0] <= nbytes <= self.sizes[-1]:
            return float(np.exp(np.interp(np.log(nbytes), np.log(self.sizes), np.log(self.times))))
        end = 0 if nbytes < self.sizes[0] else -1
        return modelled(nbytes) * self.times[end] / modelled(self.sizes[end])


@dataclass(frozen=True, slots=True)
class MeasuredCollectives:
    """Everything that profiles hold of collectives.

    Parameters
    ----------
    curves : tuple of MeasuredCollective
        Of two for the same collective, ranks and servers the later one counts.
    machine : object, optional
        The machine that stands for the one that was measured, where the run is on one that was made faster.
    """

    curves: tuple[MeasuredCollective, ...] = ()
    machine: Any = None

    def of(
        self, collective: str, ranks: int, servers: int, *, gpus: Collection[str] = (), seats: int = 0
    ) -> MeasuredCollective | None:
        """The curve of a collective among so many ranks in so many servers; None if it was not measured.

        A curve of unknown servers is one of a single server, unless no server has so many GPUs.

        Parameters
        ----------
        collective : str
        ranks, servers : int
        gpus : collection of str
            GPUs of the catalogue that the ranks are, which a curve that names its GPU must be of; any if empty.
        seats : int
            Most GPUs that a server of the machine has; 0 if one could have all.
        """
        usual = servers if 0 < seats < ranks else 1
        for one in reversed(self.curves):
            same = (one.collective, one.ranks, one.servers or usual) == (collective, ranks, servers)
            if same and (not one.gpu or all(gpu == one.gpu for gpu in gpus)):
                return one
        return None

    def among(self, collective: str, machine: Any, ranks: Sequence[str]) -> MeasuredCollective | None:
        """The curve of a collective among GPUs of a machine; None if it was not measured.

        Parameters
        ----------
        collective : str
        machine : Machine
        ranks : sequence of str
            Nodes.
        """
        if not self.curves:
            return None
        from simperf.layout.locality import server_count

        nodes = [machine.nodes[rank] for rank in ranks]
        servers = server_count(machine, ranks)
        gpus = {node.part.name for node in nodes if node.part is not None}
        seats = max(Counter(machine.nodes[name].server for name in machine.gpus).values(), default=0)
        return self.of(collective, len(ranks), servers, gpus=gpus, seats=seats)
