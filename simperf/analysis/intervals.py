"""90 % intervals of a run's numbers, where published figures give the errors of runs like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from simperf.analysis.questions import LARGE, RunQuestion, asked_by

__all__ = ["DRAWS", "FIGURES", "RunIntervals", "intervals_by", "intervals_of", "with_draws"]

#: what intervals are made of: published figures, and draws
FIGURES, DRAWS = "published figures", "draws"
Ends = tuple[float, float]


class RunIntervals(NamedTuple):
    """Intervals of a run's numbers.

    `ends` are by metric in its unit, `sources` say in words what the intervals are made of, and `why_not` why there are
    none, empty if there are.
    """

    ends: Mapping[str, Ends]
    sources: Mapping[str, str]
    why_not: str = ""


def intervals_of(
    program: str,
    parameters: Mapping[str, Any],
    numbers: Mapping[str, tuple[float, str]],
    *,
    gpus: int,
    case: str = "",
    changed: str = "",
    estimated: str = "",
) -> RunIntervals:
    """The intervals of a run, from figures of runs like it; a published case has no part in its own.

    No efficiency and no utilisation of the peak of its precision reaches above 1, nor do times and rates beyond.

    Parameters
    ----------
    program : str
    parameters : mapping
        Of the program, in SI units.
    numbers : mapping of str to (float, str)
        ``"time"`` and metrics, each with its SI unit.
    gpus : int
        GPUs of the machine.
    case : str
        The published case that the run is, if it is one.
    changed : str
        What stands for the catalogue's constants, in words; empty if nothing does.
    estimated : str
        An architecture of its GPUs of which no kernel was measured; empty if there is none.

    Examples
    --------
    >>> intervals_of("async-chain", {}, {"time": (1.0, "s")}, gpus=1).why_not
    'no figures are published of runs like those of async-chain'
    """
    asked = asked_by(program, parameters, gpus=gpus, changed=changed, estimated=estimated)
    difficulty = _difficulty(asked, parameters, numbers) if asked.question else 0.0
    bounded = parameters.get("product_precision", "as-weights") == "as-weights"  # told of the peak of 16 bits
    return intervals_by(asked, numbers, difficulty=difficulty, bounded=bounded, case=case)


def intervals_by(
    asked: RunQuestion,
    numbers: Mapping[str, tuple[float, str]],
    *,
    difficulty: float = 0.0,
    bounded: bool = True,
    case: str = "",
) -> RunIntervals:
    """The intervals of numbers that answer a question, from its published figures; none beyond the hardest of these.

    Parameters
    ----------
    asked : RunQuestion
    numbers : mapping of str to (float, str)
        Each with its SI unit.
    difficulty : float
        Of the prediction (`simperf.analysis.left_out`) [1].
    bounded : bool
        Whether efficiencies and utilisations are of what can be reached.
    case : str
        A published case that has no part in them.

    Examples
    --------
    >>> from simperf.analysis.questions import SCALING
    >>> low, high = intervals_by(RunQuestion(SCALING, metrics=("time",)), {"time": (1.0, "s")}).ends["time"]
    >>> low < 1.0 < high
    True
    """
    if not asked.question:
        return RunIntervals({}, {}, asked.why_not)
    from simperf.analysis.left_out import spread_of_errors

    found = spread_of_errors(asked.question, asked.group, without=case)
    if found is None:
        return RunIntervals({}, {}, "too few figures are published of runs like it")
    if why_not := found.beyond(difficulty, gpus=asked.gpus, question=asked.question):
        return RunIntervals({}, {}, why_not)
    told = [numbers[name] for name in asked.metrics if name in numbers]
    shares = [value for value, unit in told if unit == "1" and bounded]
    slow = found.factors(difficulty, used=max(shares, default=0.0))
    ends = {}
    for name in asked.metrics:
        if name in numbers:
            value, unit = numbers[name]
            ends[name] = (value * slow[0], value * slow[1]) if unit == "s" else (value / slow[1], value / slow[0])
    about = f"{asked.question[0].lower()}{asked.question[1:]}" + (f", {asked.group}" if asked.group else "")
    made_of = "constants, spread of runs and what the model misses"
    return RunIntervals(ends, {FIGURES: f"{found.origin} ({about}): {made_of}"})


def _difficulty(asked: RunQuestion, given: Mapping[str, Any], numbers: Mapping[str, tuple[float, str]]) -> float:
    from simperf.analysis.left_out import difficulty_of, launch_difficulty

    if asked.question != LARGE:
        return difficulty_of(asked.question, {name: value for name, (value, _) in numbers.items()})
    layout, model, step = given.get("layout"), given.get("model"), numbers.get("time per step", (0.0, ""))[0]
    layers = getattr(model, "layers", 0)
    if not (layout and layers and step > 0):
        return 0.0
    turns = float(given["batch"]) / (int(given.get("microbatch") or 1) * layout.dp) * layers / layout.pp
    return launch_difficulty(step / turns)


def with_draws(found: Mapping[str, Ends], drawn: Mapping[str, Ends]) -> dict[str, Ends]:
    """Intervals of samples, widened to those of published figures, which have in them what draws leave out.

    Examples
    --------
    >>> with_draws({"time": (0.9, 1.5)}, {"time": (0.8, 1.2), "rate": (3.0, 4.0)})
    {'time': (0.8, 1.5), 'rate': (3.0, 4.0)}
    """
    return {
        name: (min(ends[0], found[name][0]), max(ends[1], found[name][1])) if name in found else ends
        for name, ends in drawn.items()
    }
