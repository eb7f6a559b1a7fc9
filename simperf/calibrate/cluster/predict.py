"""What the simulator says of a measured point of a boxed cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.experiments import MODEL
from simperf.calibrate.cluster.machine import BoxedMachine
from simperf.calibrate.cluster.play import finish, gloo_ring, play_plan, round_trip, send, train
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.cluster.strategies import Compute, ddp_steps, serve, worker
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.collectives import make_plan
from simperf.errors import InputError, Problem

__all__ = ["SERIES", "Prediction", "compute_of", "predict", "predictable", "shape_of"]

#: series that can be predicted; a closing ``/`` means a family
SERIES = ("send", "round-trip", "send-train", "all-reduce/", "ddp", "server/")
_SLOW = "rate_of_"
#: how unequal connections' shares of a server's port are, and over how many runs that is averaged; not fitted. With
#: equal shares all workers would push at the same time and pull at the same time for ever, and never overlap.
UNEVEN, RUNS = 0.3, 5


def shape_of(at: Mapping[str, Value]) -> Shape:
    """The shape of the links in the conditions of a point."""
    slow = {int(key[len(_SLOW) :]): float(value) for key, value in at.items() if key.startswith(_SLOW)}
    return Shape(float(at["rate"]), slow, float(at["burst"]), float(at["queue"]))


def compute_of(data: Dataset) -> dict[str, Compute]:
    """Training steps of one process alone, by model, as they were measured."""
    found = {}
    for name, model in MODEL.items():
        parts = [data.select(f"step/{part}", model=name, ranks=1) for part in ("forward", "backward", "update")]
        if all(parts):
            forward, backward, update = (part[0].median for part in parts)
            found[name] = Compute.of(model, forward, backward, update)
    return found


def predictable(point: Measurement, compute: Mapping[str, Compute]) -> bool:
    """Whether there is a simulation of a point, given these training steps."""
    known = any(point.series == one or (one.endswith("/") and point.series.startswith(one)) for one in SERIES)
    return known and ("model" not in point.at or point.at["model"] in compute)


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the simulator says of a point.

    Parameters
    ----------
    value : float
        In the unit of the point.
    load : float
        Share of the cores' time that was asked for, 0 to 1.
    """

    value: float
    load: float


def predict(point: Measurement, constants: Constants, compute: Mapping[str, Compute] | None = None) -> Prediction:
    """Simulate a point.

    Parameters
    ----------
    point : Measurement
        Its conditions are read, not its readings.
    constants : Constants
    compute : mapping of str to Compute
        For training, see `compute_of`.

    Returns
    -------
    Prediction

    Raises
    ------
    InputError
        Nothing is known of the series.
    """
    ranks, shape = int(point.at.get("ranks", 2)), shape_of(point.at)
    if point.series.startswith("server/"):
        return _server(point, constants, compute or {}, ranks)
    machine = BoxedMachine(ranks + 1, shape, constants)
    value = _simulate(machine, point, ranks, compute or {})
    return Prediction(value, machine.load)


def _simulate(machine: BoxedMachine, point: Measurement, ranks: int, compute: Mapping[str, Compute]) -> float:
    at, series = point.at, point.series
    if series == "ddp":
        times = ddp_steps(machine, ranks, compute[str(at["model"])], point.number("bucket"))
        return sum(times) / len(times)
    nbytes = point.number("nbytes")
    if series == "send":
        return finish(machine, [send(machine, rank, nbytes) for rank in range(2)])
    if series == "round-trip":
        return finish(machine, [round_trip(machine, rank, nbytes) for rank in range(2)])
    if series == "send-train":
        messages = int(point.number("messages"))
        return finish(machine, [train(machine, rank, nbytes, messages) for rank in range(2)])
    if series == "all-reduce/gloo":
        return finish(machine, [gloo_ring(machine, rank, ranks, nbytes) for rank in range(ranks)], nbytes)
    if series.startswith("all-reduce/"):
        plan = make_plan("all-reduce", series.split("/", 1)[1], nranks=ranks)
        threads = [play_plan(machine, plan, rank, nbytes) for rank in range(plan.nparticipants)]
        return finish(machine, threads, nbytes)
    raise InputError(Problem("no simulation of this series", key="series", value=series, expected=", ".join(SERIES)))


def _server(point: Measurement, constants: Constants, compute: Mapping[str, Compute], ranks: int) -> Prediction:
    """Updates a second, the mean of several runs: who gets more of the server's link than others is chance."""
    model, steps = compute[str(point.at["model"])], int(point.number("steps"))
    rates, loads = [], []
    for seed in range(RUNS):
        machine = BoxedMachine(ranks + 1, shape_of(point.at), constants, uneven=UNEVEN, seed=seed)
        threads = serve(machine, ranks, model, steps, synchronous=point.series == "server/synchronous")
        threads += [worker(machine, rank, ranks, model, steps) for rank in range(ranks)]
        rates.append(ranks * steps / finish(machine, threads))
        loads.append(machine.load)
    return Prediction(sum(rates) / RUNS, sum(loads) / RUNS)
