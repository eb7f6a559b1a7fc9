"""Points of a boxed cluster as scenarios, machine and program, and what `simperf.run` predicts of them.

Hosts are CPUs behind a switch. Every end of a link is shaped by a token bucket, all hosts share the cores of the one
machine that they live in, and the network stack is that of the catalogue with the constants that were fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from simperf.calibrate.cluster.experiments import MODEL
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.hardware.netstack import NetworkStackPart
from simperf.results import Result
from simperf.run import run
from simperf.scenario import make_scenario

__all__ = [
    "PAYLOAD",
    "PEAK",
    "STACK",
    "Compute",
    "Prediction",
    "compute_of",
    "machine",
    "predict",
    "predictable",
    "scenario",
    "shape_of",
]

#: the catalogue's network stack that constants are fitted for
STACK = "linux-gloo"
#: payload a byte on the wire: 1448 of 1514 bytes of a packet with Ethernet's, IP's and TCP's headers, time stamps too
PAYLOAD = 1448 / 1514
#: rate of a link while there are tokens [B/s]: a virtual one has none of its own, and copies as fast as a core
PEAK = 1.25e9
#: cores of the machine that all hosts live in, where a recording does not say
_CORES = 2.0
#: series that can be predicted; a closing ``/`` means a family
_SERIES = ("send", "round-trip", "send-train", "all-reduce/", "ddp", "server/")
_SLOW = "rate_of_"


@dataclass(frozen=True, slots=True)
class Compute:
    """A training step of one process alone, on a network of equal linear layers.

    Parameters
    ----------
    forward, backward, update : float
        Of the whole network [s].
    layers : int
    width : int
        Inputs and outputs of a layer.
    """

    forward: float
    backward: float
    update: float
    layers: int
    width: int

    @property
    def nbytes(self) -> float:
        """All gradients [B]."""
        return 4.0 * self.width * self.width * self.layers

    @classmethod
    def of(cls, model: Mapping[str, int], forward: float, backward: float, update: float) -> Compute:
        """A model of `simperf.calibrate.cluster.experiments` with its measured times."""
        return cls(forward, backward, update, int(model["layers"]), int(model["width"]))


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
    """Whether there is a scenario of a point, given these training steps."""
    known = any(point.series == one or (one.endswith("/") and point.series.startswith(one)) for one in _SERIES)
    return known and ("model" not in point.at or point.at["model"] in compute)


def machine(hosts: int, shape: Shape, stack: Mapping[str, float], *, cores: float = _CORES) -> dict[str, Any]:
    """The machine's table: so many hosts behind a switch.

    Parameters
    ----------
    hosts : int
    shape : Shape
        Of the links.
    stack : mapping of str to float
        Constants of the network stack that stand for the catalogue's.
    cores : float
        That all hosts share.
    """
    return {
        "node": [{"id": f"h{host}", "kind": "cpu", "server": f"h{host}"} for host in range(hosts)]
        + [{"id": "switch", "kind": "switch"}],
        "link": [
            {
                "a": f"h{host}",
                "b": "switch",
                "bandwidth": _text(shape.of(host), "B/s"),
                "burst": _text(shape.burst, "B"),
                "peak": _text(max(PEAK, shape.of(host)), "B/s"),
            }
            for host in range(hosts)
        ],
        "network_stack": {"use": STACK, "efficiency": PAYLOAD, **_texts(stack)},
        "shared_cores": cores,
    }


def _text(value: float, unit: str) -> str:
    """A quantity as a scenario's file has it."""
    return f"{float(value)!r} {unit}"


def _texts(stack: Mapping[str, float]) -> dict[str, Any]:
    """Constants of a network stack as a machine's table has them."""
    units = NetworkStackPart.UNITS
    return {key: _text(value, units[key]) if key in units else float(value) for key, value in stack.items()}


def scenario(
    point: Measurement,
    stack: Mapping[str, float],
    compute: Mapping[str, Compute],
    *,
    cores: float = _CORES,
    profile: str = "",
) -> dict[str, Any]:
    """The tables of the scenario of a point, as `simperf.scenario.make_scenario` reads them.

    Parameters
    ----------
    point : Measurement
        Its conditions are read, not its readings.
    stack : mapping of str to float
        Constants of the network stack that stand for the catalogue's.
    compute : mapping of str to Compute
        For training, see `compute_of`.
    cores : float
        That all hosts share.
    profile : str
        Profile whose constants stand for the catalogue's; none if left out.
    """
    ranks, shape = int(point.at.get("ranks", 2)), shape_of(point.at)
    made: dict[str, Any] = {"program": _program(point, ranks, compute)}
    made["machine"] = machine(ranks + 1, shape, stack, cores=cores)
    if profile:
        made["calibration"] = {"use": profile}
    return made


def _program(point: Measurement, ranks: int, compute: Mapping[str, Compute]) -> dict[str, Any]:
    at, series = point.at, point.series
    if series in ("ddp", "server/asynchronous", "server/synchronous"):
        return _training(point, ranks, compute[str(at["model"])])
    nbytes = _text(point.number("nbytes"), "B")
    if series == "send":
        return {"use": "sends", "source": "h0", "target": "h1", "nbytes": nbytes}
    if series == "round-trip":
        return {"use": "round-trips", "near": "h0", "far": "h1", "nbytes": nbytes, "reply": nbytes}
    if series == "send-train":
        count = int(point.number("messages"))
        return {"use": "sends", "source": "h0", "target": "h1", "nbytes": nbytes, "n": count, "in_flight": count}
    algorithm = series.split("/", 1)[1]
    made: dict[str, Any] = {"use": "all-reduce", "algorithm": algorithm, "nbytes": nbytes, "gpus": ranks}
    return {**made, "servers": [f"h{ranks}"]} if algorithm == "central" else made


def _training(point: Measurement, ranks: int, step: Compute) -> dict[str, Any]:
    made: dict[str, Any] = {
        "forward": _text(step.forward, "s"),
        "backward": _text(step.backward, "s"),
        "weights": _text(step.nbytes, "B"),
    }
    if point.series == "ddp":
        bucket = _text(point.number("bucket"), "B")
        return {
            "use": "train",
            **made,
            "gpus": ranks,
            "batch_per_gpu": 1,
            "update": _text(step.update, "s"),
            "layers": step.layers,
            "bucket": bucket,
            "first_bucket": bucket,
            "algorithm": "gloo",
        }
    return {
        "use": "parameter-server",
        **made,
        "workers": ranks,
        "nodes": [f"h{ranks}"],
        "batch": 1,
        "layers": 1,
        "overlap": False,
        "steps": int(point.number("steps")),
        "mode": point.series.split("/", 1)[1],
    }


#: runs of a scenario that chance has a part in
DRAWS = 9


@dataclass(frozen=True, slots=True)
class Prediction:
    """Prediction of a point by the simulator.

    Parameters
    ----------
    value : float
        In the unit of the point.
    load : float
        Share of the cores' time that was asked for, 0 to 1.
    """

    value: float
    load: float


def predict(
    point: Measurement,
    stack: Mapping[str, float],
    compute: Mapping[str, Compute] | None = None,
    *,
    cores: float = _CORES,
) -> Prediction:
    """Simulate the scenario of a point.

    Parameters
    ----------
    point : Measurement
        Its conditions are read, not its readings.
    stack : mapping of str to float
        Constants of the network stack that stand for the catalogue's.
    compute : mapping of str to Compute
        For training, see `simperf.calibrate.cluster.scenarios.compute_of`.
    cores : float
        That all hosts share.
    """
    tables = scenario(point, stack, compute or {}, cores=cores)
    # workers that do not wait for each other differ from repeat to repeat, and a point is the median of its repeats
    seeds = range(DRAWS if point.series == "server/asynchronous" else 1)
    results = [run(make_scenario({**tables, "run": {"seed": seed}}), record=False) for seed in seeds]
    values = [_value(point, result) for result in results]
    return Prediction(median(values), median(result.floors["host"] / result.time for result in results))


def _value(point: Measurement, result: Result) -> float:
    """In the unit of the point: a time [s], or updates a second."""
    if point.series == "ddp":
        return result.metrics["time per step"].value
    if point.series.startswith("server/"):
        return float(point.at["ranks"]) * float(point.at["steps"]) / result.time
    return result.time
