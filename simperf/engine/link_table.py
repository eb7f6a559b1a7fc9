"""The links of a flow network by name, and classes of links that stand for each other.

A ring over a thousand GPUs draws on thousands of links, and on most of them in the same way. Links
with one capacity on which the same flows draw equally often are one constraint, whatever they are
called. So they are one `Link` with several names. As soon as a flow draws on one of them
alone, that one becomes a link of its own, with what it has moved and who draws on it: nothing is
approximated by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simperf.engine.flow import FlowRoute, Link
from simperf.errors import ProgramError, UnknownNameError

__all__ = ["UNLIMITED", "LinkClass", "LinkTable", "check_capacity"]

#: An infinite capacity [B/s], as a finite number.
UNLIMITED = 1e30


@dataclass(frozen=True, slots=True, eq=False)
class LinkClass:
    """Links of one capacity that are drawn on alike.

    Parameters
    ----------
    names : sequence of str
        The resources; the first one gives the class its name.
    counts : tuple of int
        How often each of several routes draws on every one of them.
    capacity : float
        Of every one of them [B/s].
    """

    names: Sequence[str]
    counts: tuple[int, ...]
    capacity: float


class LinkTable:
    """Links by name.

    Parameters
    ----------
    capacities : mapping of str to float
        Capacity of each resource [B/s]; read when a link is used for the first time.
    join : callable
        Called with a new link and an older one: whatever draws on the older one draws on the new one as well.

    Attributes
    ----------
    known_routes : dict
        Routes that `route` has made, by the names of their links.
    """

    def __init__(self, capacities: Mapping[str, float], join: Callable[[Link, Link], None]) -> None:
        self._capacities: list[Mapping[str, float]] = [capacities]
        self._join = join
        self._links: dict[str, Link] = {}
        self._classes: dict[Link, None] = {}  # links that stand for several
        self._own: dict[str, Link] = {}  # the class that a name is in
        self._unread: list[Link] = []  # classes whose names are not in `_own` yet
        self._made: dict[int, tuple[Sequence[str], Link]] = {}  # classes by the identity of the names that made them
        self.known_routes: dict[tuple[str, ...], FlowRoute] = {}
        self._spread: dict[Link, list[FlowRoute]] = {}  # routes that draw on a class
        if isinstance(capacities, dict):  # otherwise a large machine's, whose links come into being when they are used
            for name in capacities:
                self.link(name)

    def route(self, resources: Sequence[str]) -> FlowRoute:
        """The route over links, each a link of its own.

        Raises
        ------
        UnknownNameError
            There is no such resource.
        """
        key = tuple(resources)
        route = self.known_routes.get(key)
        if route is None:
            for name in key:
                if name not in self._links and not any(name in more for more in self._capacities):
                    raise UnknownNameError("resource", name, self._capacities[0])
            route = self.known_routes[key] = FlowRoute(tuple(self.link(name) for name in key))
        return route

    def routes(self, classes: Sequence[LinkClass]) -> list[FlowRoute]:
        """Routes over classes of links: number i draws ``counts[i]`` times on every link of a class."""
        several = len(classes[0].counts) if classes else 0
        links: list[list[Link]] = [[] for _ in range(several)]
        for one in classes:
            for link in self._fewest_links(one.names, one.capacity):
                for found, count in zip(links, one.counts, strict=True):
                    found.extend([link] * count)
        routes = [FlowRoute(tuple(found)) for found in links]
        for route in routes:
            for link in dict.fromkeys(route.links):
                if link in self._classes:
                    self._spread.setdefault(link, []).append(route)
        return routes

    def provide(self, capacities: Mapping[str, float]) -> None:
        """Know more resources from now on; a name that is known already keeps its capacity."""
        if not any(known is capacities for known in self._capacities):
            self._capacities.append(capacities)

    def capacity(self, name: str) -> float:
        """Capacity of a resource as it was given [B/s]."""
        for known in self._capacities:
            if name in known:
                return check_capacity(name, known[name])
        raise UnknownNameError("resource", name, self._capacities[0])

    def add(self, name: str, capacity: float) -> None:
        """Add a resource that is none of the machine's; once is enough."""
        if name not in self._links and not self._class_of(name):
            self._links[name] = Link(name, check_capacity(name, capacity))

    def link(self, name: str) -> Link:
        """The link of a name, for itself."""
        found = self._links.get(name)
        if found is not None:
            return found
        whole = self._class_of(name)
        if whole is not None:
            return self._split(whole, (name,))
        found = self._links[name] = Link(name, self.capacity(name))
        return found

    def get(self, name: str) -> Link | None:
        """The link that a name stands for, if any has been used."""
        return self._links.get(name) or self._class_of(name)

    def known(self) -> Iterator[tuple[str, Link]]:
        """All names, each with its link."""
        yield from self._links.items()
        for link in self._classes:
            for name in link.names:
                yield name, link

    # Classes ---------------------------------------------------------------------------

    def _class_of(self, name: str) -> Link | None:
        self._read()
        return self._own.get(name)

    def _read(self) -> None:
        """Note which class each name is in."""
        for link in self._unread:
            self._own.update(dict.fromkeys(link.names, link))
        self._unread.clear()

    def _fewest_links(self, names: Sequence[str], capacity: float) -> list[Link]:
        """Links that stand for names, as few as there can be."""
        _, made = self._made.get(id(names), (names, None))
        if made is not None and made in self._classes and len(made.names) == len(names):
            return [made]
        listed = dict.fromkeys(names)
        self._read()
        if self._own.keys().isdisjoint(listed) and self._links.keys().isdisjoint(listed):
            return [self._make(names, capacity, listed)]
        found: list[Link] = []
        new: list[str] = []
        inside: dict[Link, list[str]] = {}
        for name in names:
            link = self._links.get(name)
            if link is not None:
                found.append(link)
                continue
            whole = self._own.get(name)
            if whole is None:
                new.append(name)
            else:
                inside.setdefault(whole, []).append(name)
        if new:
            found.append(self._make(new, capacity, dict.fromkeys(new)))
        for whole, part in inside.items():
            found.append(whole if len(part) == len(whole.names) else self._split(whole, part))
        return found

    def _make(self, names: Sequence[str], capacity: float, listed: dict[str, None]) -> Link:
        """A new link for names, and for those of `listed` if they are several."""
        link = Link(names[0], check_capacity(names[0], capacity))
        if len(names) == 1:
            self._links[names[0]] = link
            return link
        link.names = listed
        self._classes[link] = None
        self._unread.append(link)
        self._made[id(names)] = names, link
        return link

    def _split(self, whole: Link, names: Sequence[str]) -> Link:
        """Take names out of a class; what draws on the class draws on both from now on."""
        left = whole.names
        link = Link(names[0], whole.capacity)
        link.ceiling, link.moved, link.busy, link.since = whole.ceiling, whole.moved, whole.busy, whole.since
        link.rate, link.peak = whole.rate, whole.peak
        for name in names:
            del left[name], self._own[name]
        link.names = dict.fromkeys(names)
        if len(names) > 1:
            self._classes[link] = None
            self._own.update(dict.fromkeys(names, link))
        else:
            self._links[names[0]] = link
        for route in self._spread.get(whole, ()):
            route.links += (link,) * route.links.count(whole)
            self._spread.setdefault(link, []).append(route)
        self._join(link, whole)
        if len(left) == 1:
            (last,) = left
            whole.name = last
            self._links[last] = whole
            del self._classes[whole], self._own[last]
            self._spread.pop(whole, None)
        elif not left:
            raise AssertionError("a class of links was left without a name")
        elif whole.name not in left:
            whole.name = next(iter(left))
        return link


def check_capacity(name: str, value: float) -> float:
    """A capacity [B/s] as a finite number.

    Raises
    ------
    ProgramError
        It is negative.
    """
    if not value >= 0.0:
        raise ProgramError(f"resource {name!r}: the capacity must be 0 or more: {value}")
    return min(float(value), UNLIMITED)
