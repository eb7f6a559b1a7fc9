"""Bounds on the events of a divided job: one from its numbers alone, before anything is made, and one of its processes.

Every pass of a stage is launched, waits for a message and sends one, and every layer is gone through once a pass,
whatever is simulated at once. Where layers are not closed, each of their items is launched, begins and ends.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import ceil, floor

from simperf.errors import InputError, Problem
from simperf.layout import Layout
from simperf.schedules.registry import microbatch_multiple
from simperf.training.pipelined.closed import never_closed
from simperf.training.pipelined.stage import StageProcess
from simperf.training.strategies import ModelParallel
from simperf.workload.op import Op
from simperf.workload.transformers.passes import Sync

__all__ = ["least_events", "refuse_numbers", "refuse_processes", "refused_events"]

#: events of a pass of a stage (counted by test_excess), and of a pass over a layer, at least
PASS, LAYER = 6.0, 2.0
#: events of a kernel that is launched by itself, and of a collective, which is awaited too
KERNEL, COLLECTIVE = 0.9, 10.0
#: how a refusal begins, with the events of the job
_REFUSED = "about {:.3g} events would be simulated"
_READ = re.compile(re.escape(_REFUSED).replace(r"\{:\.3g\}", r"(\S+)"))
#: how the error of a run begins that was ended at its limit of events (`simperf.engine.simulation`)
_ENDED = re.compile(r"([\d,]+) events are simulated, ")
#: events of a piece of the states that the host's memory holds: two copies and an update
PIECE = 6.0


def least_events(layout: Layout, strategy: ModelParallel, batch: int, layers: int) -> float:
    """Events of a step, at least.

    Parameters
    ----------
    layout : Layout
    strategy : ModelParallel
    batch : int
        Samples of a step on all ranks together.
    layers : int
        Of the model.

    Examples
    --------
    >>> least_events(Layout(pp=2, dp=2), ModelParallel(microbatch=1), 8, 12)
    288.0
    """
    microbatches = batch / (layout.dp * strategy.microbatch)
    return 2 * microbatches * (PASS * layout.pp * strategy.chunks + LAYER * layers)


def refuse_numbers(
    layout: Layout, strategy: ModelParallel, batch: int, layers: int, *, steps: int, most: float | None
) -> None:
    """Refuse a job whose numbers alone tell that it would simulate too many events.

    Parameters
    ----------
    layout, strategy, batch, layers
        As of `least_events`.
    steps : int
    most : float or None
        Events that a run may simulate; None for any number.

    Raises
    ------
    InputError
        The number of events, what makes it so large, and what would do.
    """
    each = least_events(layout, strategy, batch, layers)
    if most is None or each * steps <= most:
        return
    one = least_events(layout, strategy, layout.dp * strategy.microbatch, layers)  # of one micro-batch
    fewest = microbatch_multiple(strategy.schedule, layout.pp)
    if one * fewest <= most:
        raise _excess(each * steps, most, layout, strategy, batch, steps)
    if LAYER * layers >= PASS * layout.pp * strategy.chunks:
        less = floor((most / 2 / fewest - PASS * layout.pp * strategy.chunks) / LAYER)
        raise _refusal(each * steps, most, "model.layers", f"{layers:,}", f"at most {max(1, less):,}")
    less = floor((most / 2 / fewest - LAYER * layers) / PASS / layout.pp)
    raise _refusal(each * steps, most, "chunks", f"{strategy.chunks:,}", f"at most {max(1, less):,}")


def refuse_processes(
    processes: Sequence[StageProcess],
    layout: Layout,
    strategy: ModelParallel,
    batch: int,
    *,
    most: float | None,
    parts: int = 1,
) -> None:
    """Refuse a job whose processes would simulate too many events.

    Parameters
    ----------
    processes : sequence of StageProcess
        Whose layers are closed, or not.
    layout, strategy, batch
        As of `least_events`.
    most : float or None
        Events that a run may simulate; None for any number.
    parts : int
        Of a matrix product, each of which is launched.

    Raises
    ------
    InputError
        As of `refuse_numbers`.
    """
    if most is None:
        return
    steps = processes[0].steps
    updated = sum(map(_weights_away, processes))
    piece = processes[0].work.offload.piece
    if (pieces := updated / piece) * PIECE * steps > most:
        expected = f"at least {ceil(updated * PIECE * steps / most):,}"
        raise _refusal(pieces * PIECE * steps, most, "offload_piece", f"{piece:,}", expected)
    events = steps * sum(map(_of_process, processes))
    if events > most >= events / parts:
        raise _refusal(events, most, "product_parts", f"{parts:,}", f"fewer than {ceil(parts * most / events):,}")
    if events > most:
        raise _excess(events, most, layout, strategy, batch, steps)


def _weights_away(one: StageProcess) -> float:
    """Weights that a process updates in pieces, as the host's memory holds their states."""
    if one.work.offload.states == "gpu":
        return 0.0
    return max((op.elements for op in one.work.ends[one.stage].update if isinstance(op, Op)), default=0.0)


def _of_process(one: StageProcess) -> float:
    """Events of a process in a step, at least."""
    total, work = 0.0, one.work
    for (kind, chunk), count in Counter((each.kind, each.chunk) for each in work.plan.stages[one.stage]).items():
        items = 0.0
        if one.close is never_closed:
            for layer in work.layers(one.stage, chunk):
                split = {"F": layer.forward, "B": layer.input_gradients, "W": layer.weight_gradients}
                launched = split[kind] if kind == "F" or work.plan.split else layer.backward
                joined = sum(isinstance(item, Sync) and item.dimension in one.inside for item in launched)
                items += COLLECTIVE * joined + KERNEL * sum(isinstance(item, Op) for item in launched)
        total += count * (PASS + items)
    return total


def _excess(events: float, most: float, layout: Layout, strategy: ModelParallel, batch: int, steps: int) -> InputError:
    """Too many micro-batches, or steps: whichever there is more of."""
    together = layout.dp * strategy.microbatch * microbatch_multiple(strategy.schedule, layout.pp)
    fewer = floor(batch * most / events / together) * together
    if steps > batch / together or (fewer < together and steps > 1):
        return _refusal(events, most, "steps", f"{steps:,}", f"at most {max(1, floor(steps * most / events)):,}")
    expected = f"at most {fewer}" if fewer else "a smaller layout, model or batch"
    if fewer and layout.dp * strategy.microbatch < batch:
        expected += ", or a larger microbatch"
    return _refusal(events, most, "batch", f"{batch}", expected)


def _refusal(events: float, most: float, key: str, value: str, expected: str) -> InputError:
    message = f"{_REFUSED.format(events)}, more than {most:.3g}"
    told = f"{expected}; or --force (run.force = true), which simulates them all"
    return InputError(Problem(message, key=key, value=value, expected=told))


def refused_events(error: str) -> float | None:
    """Events that a job would simulate, as the error of its refusal says it; None of any other error.

    Of a run that was ended at its limit they are those of the limit, which are too few.

    Examples
    --------
    >>> refused_events("batch: about 5.58e+06 events would be simulated, more than 3e+06 (read: 2048)")
    5580000.0
    >>> refused_events("3,000,000 events are simulated, the clock is at 34.97 s and the end has not come: ...")
    3000000.0
    """
    found = _READ.search(error) or _ENDED.match(error)
    return float(found[1].replace(",", "")) if found else None
