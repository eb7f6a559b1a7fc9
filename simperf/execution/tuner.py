"""NCCL's tuner of a session, with what its profiles measured of the collective."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.collectives.nccl import Tuner
from simperf.collectives.settings import NcclSettings
from simperf.collectives.tuners import tuner_of
from simperf.execution.session import Session

__all__ = ["session_tuner"]


def session_tuner(m: Session, ranks: Sequence[str], collective: str, settings: NcclSettings) -> Tuner:
    """The tuner for a collective of `ranks` in a session; the session notes which measured times it takes.

    Parameters
    ----------
    m : Session
    ranks : sequence of str
        Nodes, server by server.
    collective : str
    settings : NcclSettings
    """
    measured = m.cost.collectives.among(collective, m.machine, ranks)
    if measured is not None:
        m.used.add(measured.name)
    base = m.cost.collectives.machine
    return tuner_of(m.machine, ranks, collective, settings, speed=m.cost.protocols, measured=measured, base=base)
