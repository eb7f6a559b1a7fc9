"""Protocol variants of NCCL as data: what a send costs, and what is left of the wire."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from simperf.collectives.placement import Transport
from simperf.errors import InputError, UnknownNameError
from simperf.files import read_toml
from simperf.units import parse

__all__ = ["PROTOCOLS", "family", "protocol_transport"]

#: lowest latency first
PROTOCOLS = ("LL", "LL128", "Simple")

_FILE = Path(__file__).with_name("data") / "nccl.toml"
_MEDIA = ("nvlink", "pcie", "network")


def family(algorithm: str) -> str:
    """The row of the table of latencies that an algorithm is read from."""
    if algorithm == "in-network":
        return "in-network"
    return "tree" if "tree" in algorithm else "ring"


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], Transport]:
    toml = read_toml(_FILE)
    table, problems = {}, []
    for name, variants in toml.data.items():
        if not isinstance(variants, dict):
            continue
        for protocol, values in variants.items():
            try:
                media = {medium: parse(values[medium], "s") for medium in _MEDIA}
                start, efficiency = parse(values["start"], "s"), float(values["efficiency"])
                table[name, protocol] = Transport(start=start, media=media, efficiency=efficiency)
            except (KeyError, ValueError) as error:
                problems.append(toml.problem((name, protocol), str(error)))
    if problems:
        raise InputError(problems)
    return table


def protocol_transport(algorithm: str, protocol: str) -> Transport:
    """Transport by which NCCL would carry the sends of an algorithm under a protocol.

    Parameters
    ----------
    algorithm : str
        The algorithm; trees have a row of their own.
    protocol : str
        One of `PROTOCOLS`.

    Raises
    ------
    UnknownNameError
        No such protocol, or none for this algorithm.

    Examples
    --------
    >>> protocol_transport("ring", "LL").media["nvlink"]
    6e-07
    """
    table = _table()
    if (family(algorithm), protocol) not in table:
        known = [variant for name, variant in table if name == family(algorithm)]
        raise UnknownNameError("protocol", protocol, known)
    return table[family(algorithm), protocol]
