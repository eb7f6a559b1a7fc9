"""A claim: links that a collapsed collective takes to be without other traffic."""

from __future__ import annotations

from collections.abc import Callable

from simperf.engine.flow import FlowRoute

__all__ = ["Claim"]


class Claim:
    """Links that somebody takes to be without traffic, from `FlowNetwork.claim` on.

    Parameters
    ----------
    names : callable
        Gives the resources, when they are asked for: there may be no other traffic.
    told : callable
        Called when a flow or another claim comes to one of these links, before it does.
    forget : callable
        Called with the claim when it ends.

    Attributes
    ----------
    touched : bool
        Whether there was traffic on them when they were claimed, or another claim.
    """

    def __init__(
        self, names: Callable[[], frozenset[str]], told: Callable[[], None], forget: Callable[[Claim], None]
    ) -> None:
        self.names, self.told, self._forget = names, told, forget
        self.touched = False
        self._known: dict[FlowRoute, bool] = {}

    def meets(self, other: Claim) -> bool:
        """Whether two claims have a link in common."""
        return not self.names().isdisjoint(other.names())

    def covers(self, route: FlowRoute) -> bool:
        """Whether a route draws on a claimed link."""
        found = self._known.get(route)
        if found is None:
            names = self.names()
            found = any(not names.isdisjoint(link.names) for link in dict.fromkeys(route.links))
            self._known[route] = found
        return found

    def release(self) -> None:
        """End the claim; a second call does nothing."""
        self._forget(self)
