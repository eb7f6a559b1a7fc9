"""What hangs together in the flow network, and when the first of it ends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from simperf.engine.flow import Bundle, Link

if TYPE_CHECKING:
    from simperf.engine.crowd import Crowd
    from simperf.engine.funnel import Funnel

__all__ = ["connected", "first_end"]


def connected(seed: Bundle, mark: int) -> tuple[list[Bundle], list[Link], list[Crowd | Funnel]]:
    """Return what hangs together with `seed`: bundles, their links, and crowds as wholes.

    Parameters
    ----------
    seed : Bundle
        In no crowd.
    mark : int
        Is left on all that is found; nothing in reach bears it yet.
    """
    seed.mark = mark
    bundles = [seed]
    links: list[Link] = []
    crowds: list[Crowd | Funnel] = []
    for bundle in bundles:
        if bundle.share is not None:
            bundle.share.live = False
        for link in bundle.links:
            if link.crowd is not None:
                if link.crowd not in crowds:
                    crowds.append(link.crowd)
            elif link.mark != mark:
                link.mark = mark
                link.index = len(links)
                links.append(link)
                for other in link.members:
                    if other.mark != mark:
                        other.mark = mark
                        bundles.append(other)
    return bundles, links, crowds


def first_end(bundles: Iterable[Bundle]) -> float:
    """Return the time until the first flow of `bundles` ends [s], if nothing changes."""
    first = math.inf
    for bundle in bundles:
        if bundle.rate > 0.0:
            left = (bundle.flows[0][0] - bundle.served) / bundle.rate
            if left < first:
                first = left
    return first if first > 0.0 else 0.0
