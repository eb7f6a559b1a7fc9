"""The network that a server's NICs are for, as a cluster's ``[fabric]`` table."""

from __future__ import annotations

import math
from typing import Any

from simperf.errors import InputError, Problem
from simperf.hardware.devices import LinkPart, NicPart
from simperf.hardware.part_catalog import PartCatalog

__all__ = ["fabric_of"]

#: how the names of links of Ethernet end that carry 9000 B a frame, as data centres configure them
_JUMBO = "-jumbo"
#: by how much a link may be slower than a card and still carry all of it, as line rates are rounded [1]
_ROUNDED = 1e-3


def fabric_of(catalog: PartCatalog, server: str) -> dict[str, Any]:
    """The ``[fabric]`` table of a network between like servers: rails where a server has several NICs, else a star.

    Its link is the slowest of the cards' technology that is no slower than a card; of Ethernet, one with jumbo frames.
    A card that is faster than all of them has several.

    Parameters
    ----------
    catalog : PartCatalog
    server : str
        Of the catalogue.

    Raises
    ------
    InputError
        The server has no NIC.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> fabric_of(Catalog.load(), "p5-48xlarge")
    {'type': 'rail', 'link': 'efa-100g', 'switch': 'ethernet-switch', 'count': 4}
    """
    from simperf.hardware.build import server_blueprint

    plan = server_blueprint(server, catalog)
    cards = [part for name in plan.ids("nic") if isinstance(part := plan.nodes[name].part, NicPart)]
    if not cards:
        expected = "a server with one NIC or more, or a cluster of your own"
        raise InputError(Problem("the server has no NIC, so no network joins several", value=server, expected=expected))
    card = cards[0]
    link = _link(catalog, card)
    kind = "rail" if len(cards) > 1 else "star"
    own = f"{link.name}-switch"
    switch = own if own in catalog.names("switch") else "ethernet-switch"
    count = math.ceil(card.bandwidth * (1 - _ROUNDED) / link.raw)
    return {"type": kind, "link": link.name, "switch": switch} | ({"count": count} if count > 1 else {})


def _link(catalog: PartCatalog, card: NicPart) -> LinkPart:
    """The slowest link of a card's technology that is no slower than the card, else the fastest one."""
    links = [catalog.link(name) for name in catalog.names("link") if name.startswith(f"{card.technology}-")]
    if card.technology == "ethernet":
        links = [link for link in links if link.name.endswith(_JUMBO)]
    rising = sorted(links, key=lambda link: (link.raw, link.name))
    return next((link for link in rising if link.raw >= card.bandwidth * (1 - _ROUNDED)), rising[-1])
