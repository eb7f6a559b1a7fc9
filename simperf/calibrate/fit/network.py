"""Links that are shaped by token buckets, hosts whose cores are few, and receivers that many send to at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, FitConstant, Model

__all__ = ["host_model", "incast_model", "shaped_model"]


def _shaped(values: Mapping[str, float], columns: Columns) -> Array:
    """The slower of the hosts' work on the bytes and the link, whose bucket lets a burst through at once."""
    nbytes = columns["nbytes"]
    link = np.maximum(nbytes / values["efficiency"] - values["burst"], 0.0) / columns["rate"]
    return np.asarray(values["latency"] + np.hypot(values["byte"] * nbytes, link))


def shaped_model(name: str = "network") -> Model:
    """A message over a link that a token bucket shapes.

    ``t = latency + max(byte n, (n / efficiency - burst) / rate)``, with a rounded corner. `efficiency` is payload
    over what goes on the wire with the headers of Ethernet, IP and TCP; `byte` is the hosts' time a byte; `burst`
    passes at once.
    """
    constants = (
        FitConstant("latency", 5e-5, high=1.0),
        FitConstant("efficiency", 0.95, low=0.5, high=1.0, unit="1"),
        FitConstant("burst", 3e4, high=1e8, unit="B"),
        FitConstant("byte", 1e-9, high=1e-6, unit="s/B"),
    )
    return Model(name, "messages over a shaped link", constants, _shaped, columns=("nbytes", "rate"))


def _host(values: Mapping[str, float], columns: Columns) -> Array:
    """Work of all processes over the cores that they share, if there are fewer cores than processes."""
    work = values["call"] + values["byte"] * columns["nbytes"]
    return np.asarray(work * np.maximum(1.0, columns["processes"] / values["cores"]))


def host_model(name: str = "host") -> Model:
    """CPU time a message and a byte, and the cores that processes share: n processes take n / cores times as long."""
    constants = (
        FitConstant("call", 2e-5, high=1.0),
        FitConstant("byte", 1e-9, high=1e-5, unit="s/B"),
        FitConstant("cores", 2.0, low=0.5, high=1024.0, unit="1"),
    )
    return Model(name, "host time of messages", constants, _host, columns=("nbytes", "processes"))


def _incast(values: Mapping[str, float], columns: Columns) -> Array:
    """Senders share the receiver's link; each further sender loses some of it to retransmission."""
    more = columns["senders"] - 1.0
    lost = 1.0 + values["loss"] * more / (1.0 + more / values["most"])
    return np.asarray(values["latency"] + columns["senders"] * columns["nbytes"] / columns["rate"] * lost)


def incast_model(name: str = "incast") -> Model:
    """Many to one: the receiver's link carries all, and loses `loss` of it with each further sender, up to `most`.

    Buffers of the switch that overflow cost retransmissions (A. Phanishayee et al., "Measurement and Analysis of TCP
    Throughput Collapse", FAST 2008); the loss levels off because a sender's window has a least size.
    """
    constants = (
        FitConstant("latency", 5e-5, high=1.0),
        FitConstant("loss", 0.02, high=5.0, unit="1"),
        FitConstant("most", 5.0, low=0.5, high=100.0, unit="1"),
    )
    return Model(name, "incast", constants, _incast, columns=("nbytes", "senders", "rate"))
