"""The one number that may be fitted: how fast one device trains by itself.

A published table of scaling begins with one device. Its figure sets a factor by which all
kernels are faster or slower than the catalogue has them; everything that a second device
adds then comes out of the model alone.
"""

from __future__ import annotations

from collections.abc import Callable

from simperf.errors import InputError, Problem
from simperf.training.replica import faster
from simperf.training.step import ReplicaStep

__all__ = ["fit_speed"]

#: how near the rate must come, and after how many runs of one device
CLOSE = 1e-9
TRIES = 20


def fit_speed(step: ReplicaStep, rate: float, run: Callable[[ReplicaStep], float]) -> float:
    """Speed of the kernels with which one device reaches a measured rate.

    What the step takes beside its kernels (the frontend, the copy of the batch) is left as it is.

    Parameters
    ----------
    step : ReplicaStep
        Of one device.
    rate : float
        Samples a second that were measured [1/s].
    run : callable
        Simulated time of one device for such a step [s].

    Raises
    ------
    InputError
        What is beside the kernels takes longer than the whole measured step, or the kernels take no time.
    """
    if not step.compute_time:
        message = "a measured speed scales the kernels, and these take no time: give forward and backward"
        raise InputError(Problem(message, key="alone", value=f"{rate:g}", expected="a lower rate"))
    wanted, speed = step.samples / rate, 1.0
    seen: list[tuple[float, float]] = []  # slowness of the kernels [1], time of the step [s]
    for _ in range(TRIES):
        now = faster(step, speed)
        time = run(now)
        if abs(time - wanted) <= CLOSE * wanted:
            return speed
        seen.append((1.0 / speed, time))
        kernels = now.compute_time + wanted - time
        if kernels <= 0:
            break
        speed *= now.compute_time / kernels
    # an update that many micro-batches share makes a step that is nearly linear in the slowness, with another slope
    for _ in range(TRIES if len(seen) > 1 else 0):
        (before, sooner), (slowness, time) = seen[-2:]
        if time == sooner:
            break
        slowness += (wanted - time) * (slowness - before) / (time - sooner)
        if slowness <= 0:
            break
        seen.append((slowness, run(faster(step, 1.0 / slowness))))
        if abs(seen[-1][1] - wanted) <= CLOSE * wanted:
            return 1.0 / slowness
    message = f"no speed of the device gives {rate:g} samples a second: the rest of the step alone takes too long"
    raise InputError(Problem(message, key="alone", value=f"{rate:g}", expected="a lower rate"))
