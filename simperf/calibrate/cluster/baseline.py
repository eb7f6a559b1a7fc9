"""Baseline model of a boxed cluster: two constants, a time a message and a rate, and nothing else.

It is what is left without bursts, cores, acknowledgements and waiting: the time of the smallest one-way send and the
rate of the largest (R. Hockney, "The communication challenge for MPP", Parallel Computing 20(3), 1994), and the
textbook's count of steps of each collective (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
communication operations in MPICH", 2005). Predictions stand beside it, so that it can be seen what the simulation adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from simperf.calibrate.cluster.scenarios import Compute, shape_of
from simperf.calibrate.cluster.shape import Shape
from simperf.calibrate.dataset import Measurement
from simperf.collectives import make_plan
from simperf.training.data.buckets import assign_buckets
from simperf.training.step import Gradient

__all__ = ["TwoConstants"]


@dataclass(frozen=True, slots=True)
class TwoConstants:
    """The two constants.

    Parameters
    ----------
    latency : float
        Of a message, whatever its size [s].
    share : float
        Payload bytes a byte that a link is shaped to [1].
    """

    latency: float
    share: float

    @classmethod
    def of(cls, points: Iterable[Measurement]) -> TwoConstants | None:
        """Take both from one-way sends, the smallest and the largest of them; None if these do not tell them.

        A line through all of them would be held up by the small ones, which pass in the burst, at 2.5 times the rate.
        """
        sends = sorted((one for one in points if one.series == "send"), key=lambda one: one.number("nbytes"))
        if not sends or sends[-1].median <= sends[0].median:
            return None
        small, large = sends[0], sends[-1]
        wire = (large.number("nbytes") - small.number("nbytes")) / large.number("rate")
        return cls(small.median, wire / (large.median - small.median))

    def predict(self, point: Measurement, compute: Mapping[str, Compute]) -> float | None:
        """Prediction of a point, in the point's unit; None if it says nothing of its series.

        Parameters
        ----------
        point : Measurement
            Its conditions are read, not its readings.
        compute : mapping of str to Compute
            Training steps of one process alone.
        """
        shape, ranks = shape_of(point.at), int(point.at.get("ranks", 2))
        if point.series.startswith("all-reduce/"):
            return self._rounds(point.series.split("/", 1)[1], shape, ranks, point.number("nbytes"))
        if point.series in ("ddp", "server/asynchronous", "server/synchronous"):
            model = compute[str(point.at["model"])]
            return self._ddp(point, shape, ranks, model) if point.series == "ddp" else self._server(point, ranks, model)
        messages = {"send": 1.0, "round-trip": 2.0, "send-train": float(point.at.get("messages", 1))}.get(point.series)
        return None if messages is None else messages * self._message(point.number("nbytes"), shape.rate)

    def _message(self, nbytes: float, rate: float) -> float:
        return self.latency + nbytes / (self.share * rate)

    def _rounds(self, algorithm: str, shape: Shape, ranks: int, nbytes: float) -> float:
        """Each round takes a message's time and that of the link end with most to carry; gloo's own is a ring."""
        plan = make_plan("all-reduce", "ring" if algorithm == "gloo" else algorithm, nranks=ranks)
        rates = np.array([shape.of(host) for host in range(plan.nparticipants)])
        total = 0.0
        for channel in plan.channels:
            chunk = channel.share * nbytes / channel.nchunks
            for phase in channel.phases:
                for one in phase:
                    spans = np.broadcast_to(np.asarray(one.span, dtype=float), len(one)) * chunk
                    ends = [np.bincount(host, spans, minlength=len(rates)) / rates for host in (one.src, one.dst)]
                    total += self.latency + float(np.max(ends)) / self.share
        return total

    def _ddp(self, point: Measurement, shape: Shape, ranks: int, model: Compute) -> float:
        """All buckets' rings beside the backward pass."""
        each, cap = model.nbytes / model.layers, point.number("bucket")
        gradients = [Gradient(f"w{index}", each, index) for index in range(model.layers)]
        buckets = assign_buckets(gradients, cap, first=cap)
        talk = sum(self._rounds("ring", shape, ranks, bucket.nbytes) for bucket in buckets)
        return model.forward + max(model.backward, talk) + model.update

    def _server(self, point: Measurement, ranks: int, model: Compute) -> float:
        """Updates a second: workers that wait for nobody until the server's link is full, or all in step."""
        work, rate = model.forward + model.backward, point.number("rate")
        if point.series == "server/synchronous":
            return ranks / (work + 2.0 * self._message(ranks * model.nbytes, rate))
        once = self._message(model.nbytes, rate)
        return min(ranks / (work + 2.0 * once), 1.0 / once)
