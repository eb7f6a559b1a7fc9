"""Experiments on a boxed cluster: points, each with the order that the hosts get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Value
from simperf.errors import UnknownNameError

__all__ = ["ALGORITHMS", "FAMILIES", "MODEL", "Point", "check_families", "in_order", "points"]

KIB, MIB = 1024, 1 << 20
#: all-reduces by hand, as the plans of `simperf.collectives` have them; the last needs a host more than ranks
ALGORITHMS = ("ring", "binomial-tree", "sharded", "central")
#: what `--only` knows
FAMILIES = ("send", "all-reduce", "crossing", "slow-host", "step", "ddp", "server")
#: networks of equal linear layers that are trained
MODEL: Mapping[str, Mapping[str, int]] = {
    "mlp-8x512": {"layers": 8, "width": 512, "batch": 1024},
    "mlp-8x256": {"layers": 8, "width": 256, "batch": 1024},
}
#: rate below which training takes too long to be measured [B/s]
SLOWEST = 1e7
#: steps of each worker in a repeat with a server
STEPS = 4
#: a burst that a whole message passes in, so that nothing but the cores holds it back [B]
FLOOD = 1024.0 * MIB
#: longest estimate of one repeat [s], and what all repeats of a point may take [s]
LONGEST, BUDGET = 2.5, 1.2
#: in how many goes the repeats of a point are taken, each in another third of the session: a machine is not as fast in
#: one minute as in the next, and one go says what it was in its own
PASSES = 3
#: longest estimate of one repeat of a send that is taken more often [s]: the constants of links stay
LONG = 0.1
#: how often a session comes back to the sends that constants are fitted to: what they tell of is spread over all of it
GOES = 12
#: what a repeat of a small message takes besides the message: hosts meet, and wait a little [s]
_MEETING = 0.01
#: families that are repeated differently: least, most, and what all repeats may take [s]. Steps alone are what all
#: times of training are predicted from
_REPEATS: Mapping[str, tuple[int, int, float]] = {"server": (4, 15, BUDGET), "step": (12, 40, 2.5 * BUDGET)}


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement to be made.

    Parameters
    ----------
    family, series : str
    job : str
        Function of `simperf.calibrate.cluster.jobs`.
    shape : Shape
        Of the links.
    hosts : int
        Hosts that take part.
    at : mapping
        Conditions that the data set keeps, besides those of the shape.
    details : mapping
        What the order says, besides the conditions.
    estimate : float
        Of one repeat [s].
    goes : int
        How often a session takes it: up to `PASSES` share its repeats, more of them have all repeats each.
    """

    family: str
    series: str
    job: str
    shape: Shape
    hosts: int
    at: Mapping[str, Value] = field(default_factory=dict)
    details: Mapping[str, Value] = field(default_factory=dict)
    estimate: float = 0.0
    goes: int = 1

    @property
    def conditions(self) -> dict[str, Value]:
        """All conditions, those of the shape among them."""
        found: dict[str, Value] = {**self.at, "rate": self.shape.rate}
        for host, rate in sorted(self.shape.rate_of.items()):
            found[f"rate_of_{host}"] = rate
        return {**found, "burst": self.shape.burst, "queue": self.shape.queue, "threads": 1}

    @property
    def repeats(self) -> int:
        """Number of times that it is done in each go."""
        every = _repeats(self.family, self.estimate)
        return every if self.goes > PASSES else -(-every // self.goes)

    @property
    def duration(self) -> float:
        """Estimate of a go, in which it is done once more to warm up [s]."""
        return (self.repeats + 1) * (self.estimate + _MEETING)


def _repeats(family: str, estimate: float) -> int:
    least, most, budget = _REPEATS.get(family, (4, 15, BUDGET))
    return max(least, min(most, round(budget / max(estimate, 1e-3))))


def _goes(point: Point) -> int:
    """In how many goes it is taken; what is mostly waiting for links is no other a few minutes later."""
    least = 2 if point.family in ("ddp", "server") else 3
    return max(1, min(PASSES, _repeats(point.family, point.estimate) // least))


def _all_reduce(family: str, algorithm: str, shape: Shape, ranks: int, nbytes: int) -> Point:
    wire = nbytes / min(shape.rate, *shape.rate_of.values()) if shape.rate_of else nbytes / shape.rate
    share = 2 * (ranks - 1) / ranks
    passes = {"central": 2.0 * ranks, "binomial-tree": 2.0 * (ranks - 1).bit_length()}.get(algorithm, share)
    at: dict[str, Value] = {"ranks": ranks, "nbytes": nbytes}
    if algorithm == "gloo":
        return Point(family, "all-reduce/gloo", "all_reduce", shape, ranks, at, {}, passes * wire)
    hosts = ranks + (algorithm == "central")
    details: dict[str, Value] = {"algorithm": algorithm, "workers": ranks}
    return Point(family, f"all-reduce/{algorithm}", "plan", shape, hosts, at, details, passes * wire)


def _counts(most: int, *, quick: bool) -> list[int]:
    return sorted({2, most}) if quick else sorted({n for n in (2, 3, 4, 6, 8) if n < most} | {most})


def check_families(names: Iterable[str]) -> tuple[str, ...]:
    """The names, if each is one of `FAMILIES`.

    Raises
    ------
    UnknownNameError
        One is none.
    """
    found = tuple(names)
    for name in found:
        if name not in FAMILIES:
            raise UnknownNameError("family", name, FAMILIES)
    return found


def points(
    hosts: int, shape: Shape, *, rates: tuple[float, ...] = (), only: tuple[str, ...] = (), quick: bool = False
) -> Iterator[Point]:
    """Everything that is measured, in order.

    Parameters
    ----------
    hosts : int
        Most ranks; a server has a host of its own beside them.
    shape : Shape
        Of the links; constants are fitted at its rate.
    rates : tuple of float
        Further rates [B/s].
    only : tuple of str
        Some of `FAMILIES`; all if empty.
    quick : bool
        A small selection.
    """
    for point in _every(hosts, shape, rates, quick=quick):
        if (not only or point.family in only) and point.estimate <= LONGEST:
            yield point if quick or point.goes > 1 else replace(point, goes=_goes(point))


def in_order(wanted: Iterable[Point]) -> Iterator[tuple[Point, int]]:
    """Points in the order in which a session takes them, each with how often it was taken before.

    A machine is not the same a quarter of an hour later. So a session passes over its points several times, and comes
    back to the sends that constants are fitted to at even intervals, the last time at its end: they are to hold for all
    that is measured.

    Parameters
    ----------
    wanted : iterable of Point
    """
    every = list(wanted)
    often = [point for point in every if point.goes > PASSES]
    goes = max((point.goes for point in often), default=1)
    passes = [(point, 0) for point in every]
    for turn in range(1, PASSES):
        passes += [(point, turn) for point in every if turn < point.goes <= PASSES]
    whole = sum(point.duration for point, _ in passes)
    last = max((number for number, point in enumerate(every) if point.goes > PASSES), default=0)
    passed, go = 0.0, 1
    for number, (point, turn) in enumerate(passes):
        yield point, turn
        passed += point.duration
        while number >= last and go < goes and passed >= whole * go / (goes - 1) - _MEETING:
            yield from ((one, go) for one in often if one.goes > go)
            go += 1


def _every(hosts: int, shape: Shape, rates: tuple[float, ...], *, quick: bool) -> Iterator[Point]:
    even = replace(shape, rate_of={})
    goes = 1 if quick else GOES
    shapes = [even, *(replace(even, rate=rate) for rate in rates)]
    sizes = [256 * KIB, MIB] if quick else [256 * KIB, MIB, 4 * MIB, 16 * MIB]
    for size in [4, KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, *sizes]:
        for series, job, factor in (("send", "send", 1.0), ("round-trip", "round_trip", 2.0)):
            for one in shapes if not quick and size >= MIB else shapes[:1]:
                estimate = factor * size / one.rate
                often = goes if one == even and estimate <= LONG else 1
                yield Point("send", series, job, one, 2, {"nbytes": size}, {}, estimate, often)
    open_ = replace(even, burst=FLOOD)
    for size in (MIB, 4 * MIB, 16 * MIB):
        yield Point("send", "send-flood", "send", open_, 2, {"nbytes": size}, goes=goes)
    for count in (2, 4, 8, 16, 32, 64):
        yield Point("send", "send-train", "train", even, 2, {"nbytes": 1024, "messages": count}, goes=goes)
    for size in (64 * KIB, MIB, 4 * MIB):
        yield Point("send", "add", "add", even, 2, {"nbytes": size, "ranks": 2}, goes=goes)
    yield from _all_reduces(hosts, shape, shapes, sizes, quick=quick)
    yield from _training(hosts, shapes, quick=quick)


def _all_reduces(hosts: int, shape: Shape, shapes: list[Shape], sizes: list[int], *, quick: bool) -> Iterator[Point]:
    """Between equal hosts at each rate, of small payloads where algorithms cross over, and with one slow host."""
    even = shapes[0]
    for one in shapes:
        for ranks in _counts(hosts, quick=quick):
            for size in sizes:
                for algorithm in ("gloo", *ALGORITHMS):
                    yield _all_reduce("all-reduce", algorithm, one, ranks, size)
    for ranks in () if quick else sorted({min(4, hosts), hosts}):
        for size in (4, KIB, 4 * KIB, 16 * KIB, 64 * KIB):
            for algorithm in ("ring", "central"):
                yield _all_reduce("crossing", algorithm, even, ranks, size)
    for slow in [shape] if shape.rate_of else [] if quick else [replace(even, rate_of={1: even.rate / 4})]:
        for ranks in sorted({min(4, hosts), hosts}):
            for size in sizes[:3]:
                for algorithm in ("gloo", *ALGORITHMS):
                    yield _all_reduce("slow-host", algorithm, slow, ranks, size)


def _steps(hosts: int, shape: Shape, name: str) -> Iterator[Point]:
    for ranks in (1, 2, 4):
        if ranks <= hosts:
            at: dict[str, Value] = {"model": name, "ranks": ranks}
            estimate = 0.17 * (MODEL[name]["width"] / 512) ** 2 * max(1.0, ranks / 2)
            yield Point("step", "step", "step", shape, ranks, at, MODEL[name], estimate)


def _training(hosts: int, shapes: list[Shape], *, quick: bool) -> Iterator[Point]:
    """Each model's steps alone right before what they are to predict: a machine is not the same minutes later."""
    yield from _steps(hosts, shapes[0], "mlp-8x512")
    fast = [one for one in shapes if one.rate >= SLOWEST] or shapes[:1]
    for one in fast:
        for ranks in [2] if quick else [2, 4]:
            for bucket in (MIB, 4 * MIB) if quick else (MIB // 4, MIB, 2 * MIB, 4 * MIB, 16 * MIB):
                at: dict[str, Value] = {"model": "mlp-8x512", "ranks": ranks, "bucket": bucket}
                if ranks <= hosts:
                    details = MODEL["mlp-8x512"]
                    yield Point("ddp", "ddp", "ddp", one, ranks, at, details, 8.4e6 / one.rate / 2 + 0.1)
    yield from _steps(hosts, shapes[0], "mlp-8x256")
    for one in fast:
        for workers in [2] if quick else [1, 2, 3, 4, 6]:
            for series in ("server/asynchronous", "server/synchronous"):
                at = {"model": "mlp-8x256", "ranks": workers, "steps": STEPS}
                details = {**MODEL["mlp-8x256"], "synchronous": series.endswith("/synchronous")}
                if workers <= hosts:
                    estimate = STEPS * (2.1e6 * max(2, workers) / one.rate + 0.05)
                    yield Point("server", series, "asynchronous", one, workers + 1, at, details, min(estimate, LONGEST))
