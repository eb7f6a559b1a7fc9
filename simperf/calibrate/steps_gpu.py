"""Whole training steps and programs of a GPU, played by the simulator with a profile's constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Measurement
from simperf.calibrate.played import measured_session
from simperf.calibrate.programs import PROGRAMS, play
from simperf.cost import Device
from simperf.engine.kernel import Kernel
from simperf.errors import SimperfError
from simperf.execution import Program, launch, synchronize
from simperf.execution.session import Session
from simperf.hardware import ProfilePart
from simperf.training.replica import training_step

__all__ = ["DRAWS", "play_step", "player"]

#: joint draws that each program is played with, for its interval
DRAWS = 16
_PARTS = ("forward", "backward", "update")


def play_step(m: Session, name: str, batch: int, *, precision: str, optimizer: str, part: str) -> float:
    """Time of a training step of a model of the zoo, or of a part of it, from an idle device to an idle device [s].

    Parameters
    ----------
    m : Session
    name : str
        Of the model.
    batch : int
    precision, optimizer : str
        As in `simperf.workload.model.TracedModel.at`.
    part : str
        ``"step"``, ``"forward"``, ``"backward"`` or ``"update"``.
    """
    from simperf.workload.zoo import load

    step = training_step(m, load(name), m.gpu(), batch=batch, precision=precision, optimizer=optimizer)
    kernels: list[Kernel] = []
    for each in _PARTS if part == "step" else (part,):
        kernels += getattr(step, each)

    def program() -> Program:
        for kernel in kernels:
            yield launch(kernel, m.gpu())
        yield synchronize(m.gpu())

    return m.play(program())


def player(
    profile: ProfilePart, *, part: Device | None, scatter: float, between: float
) -> Callable[[Measurement], tuple[float, float, float] | None]:
    """A function that predicts points of ``step/MODEL`` and ``program/NAME`` of a GPU: best, low and high [s].

    Parameters
    ----------
    profile : ProfilePart
    part : Device, optional
        The GPU of the catalogue.
    scatter, between : float
        What the interval has besides the spread of the draws: deviation of the logarithm of a reading, and of what a
        session shares, if there are no draws [1].
    """
    draws = min(profile.draws, DRAWS)
    known: dict[tuple[object, ...], list[Mapping[str, float]]] = {}

    def times(point: Measurement) -> list[float]:
        at = {key: value for key, value in point.at.items() if key != "part"}
        name, asked = point.series.partition("/")[2], str(point.at.get("part", "step"))
        whole = point.series.startswith("program/")
        key = (point.series, "" if whole else asked, *sorted(at.items()))
        if key not in known:
            sessions = (measured_session(profile, part=part, draw=draw) for draw in range(draws + 1))
            if whole:
                known[key] = [play(m, name, at) for m in sessions]
            else:
                words = {word: str(at.get(word, usual)) for word, usual in (("precision", "fp32"), ("optimizer", ""))}
                batch = int(point.number("batch"))
                known[key] = [{asked: play_step(m, name, batch, part=asked, **words)} for m in sessions]
        return [found[asked] for found in known[key]]

    def predict(point: Measurement) -> tuple[float, float, float] | None:
        head, _, name = point.series.partition("/")
        if "frontend.launch" not in profile.model or (head == "program" and name not in PROGRAMS):
            return None
        try:
            best, *others = times(point)
        except (SimperfError, KeyError):  # another version's program, or a model that is not in the zoo
            return None
        spread = float(np.log(np.array(others)).std()) if draws > 1 else between
        width = NORMAL * float(np.hypot(spread, scatter))
        return best, best * float(np.exp(-width)), best * float(np.exp(width))

    return predict
