"""The nearest that fits, where none of the layouts that were asked for does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from simperf.errors import InputError
from simperf.study.layouts.request import LayoutRequest, TrainingMachine, make_layouts
from simperf.study.layouts.weighing import WeighedMachine, weigh
from simperf.training.pipelined.fitting_changes import changes_that_fit
from simperf.units import format_quantity

__all__ = ["SIMULATED", "nothing_fits", "reasons_of"]

#: layouts of least memory of which changes are tried, and how many times as many GPUs are
_TRIED, _MORE = 8, (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
#: reasons that a message has
_REASONS = 3
#: what is right where no layout can be simulated
SIMULATED = "another stack, machine, or values of the axes"
#: keys of ``[layouts]`` that are kept where others are tried, and axes that take least memory
_KEPT = ("model", "sequence", "folder", "precision")
_LEAST = {"microbatch": 1, "schedule": "1f1b", "recompute": ["none", "full"]}


def reasons_of(all_reasons: Iterable[str]) -> str:
    """Different reasons in a line, the first few of them."""
    different = list(dict.fromkeys(all_reasons))
    more = len(different) - _REASONS
    return "; ".join(different[:_REASONS]) + (f"; and {more} more reasons" if more > 0 else "")


def nothing_fits(request: LayoutRequest, machines: Sequence[WeighedMachine]) -> InputError:
    """The error that says by how much memory is short, and what fits.

    First come changes of the layouts with least memory on as many GPUs, each tried; then the fewest GPUs on
    which one of the layouts that were asked for fits.

    Parameters
    ----------
    request : LayoutRequest
    machines : sequence of WeighedMachine
    """
    if most := max((one.most_samples for one in machines), default=0):
        message = "each layout that fits in memory has so many micro-batches that a run of it is refused"
        expected = f"at most {most}, or larger micro-batches; or --force (plan.force = true), which simulates them all"
        return InputError(
            request.toml.problem(("layouts", "batch"), message, value=str(request.batch), expected=expected)
        )
    full = [(one.full[0], one) for one in machines if one.full]
    if not full:
        reasons = reasons_of(why for one in machines for why in one.refusals)
        return InputError(
            request.toml.problem(("layouts",), f"no layout can be simulated: {reasons}", expected=SIMULATED)
        )
    least, machine = min(full, key=lambda each: each[0].memory / each[1].capacity)
    count = sum(len(one.full) for one in machines)
    have, need = format_quantity(machine.capacity, "B"), format_quantity(least.memory, "B")
    where = f"{machine.machine.gpus} GPUs of {machine.machine.name}"
    message = (
        f"memory: none of {count:,} layouts fits on {where}; {least.choice.name} needs least, {need} of {have} "
        "beside the driver's context"
    )
    expected = _changed(machine) or _on_more(request, machine.machine)
    return InputError(request.toml.problem(("layouts",), message, expected=expected or "a smaller model, or more GPUs"))


def _changed(machine: WeighedMachine) -> str:
    """A change of one of the layouts with which it fits on as many GPUs; empty if there is none."""
    for one in machine.full[:_TRIED]:
        found = changes_that_fit(machine.divided(one.choice), machine.capacity)
        if found:
            first = found[0]
            return f"{one.choice.name} with {first.text}, which needs {format_quantity(first.peak, 'B')}"
    return ""


def _on_more(request: LayoutRequest, machine: TrainingMachine) -> str:
    """The fewest GPUs on which a layout of least memory fits; empty if there are none.

    The batch that was asked for comes first, then one sample for each GPU at least. Beside the axes that were given,
    any layout is tried with micro-batches of one sample and a plain pipeline.
    """
    given = request.toml.data["layouts"]
    least = {key: value for key, value in given.items() if key in _KEPT} | _LEAST
    tried = [given, least] if set(given) - {*_KEPT, "on", "gpus", "batch"} else [least]
    sizes = [machine.gpus * factor for factor in _MORE]
    for gpus in reversed(sizes):  # where nothing fits on the most that can be asked for, fewer are not tried
        found = _least_on(request, machine, least, gpus, max(request.batch, gpus))
        if found == "":
            return ""
        if found:
            break
    for grown in (False, True):
        for gpus in sizes:
            batch = max(request.batch, gpus) if grown else request.batch
            if grown and batch == request.batch:
                continue  # tried before
            for axes in tried:
                if found := _least_on(request, machine, axes, gpus, batch):
                    return found
    return ""


def _least_on(
    request: LayoutRequest, machine: TrainingMachine, axes: Mapping[str, Any], gpus: int, batch: int
) -> str | None:
    """The layout of least bound that fits on so many GPUs: empty where none does, None where none can be asked for."""
    server = machine.table.get("server", machine.table.get("use"))
    table = {**axes, "on": server, "gpus": gpus, "batch": batch}
    try:
        asked = replace(make_layouts({**request.toml.data, "layouts": table}), toml=request.toml)
        found = weigh(asked, asked.machines[0]).fitting
    except InputError:
        return None
    if not found:
        return ""
    more = "" if batch == request.batch else f" with a batch of {batch}"
    return f"{gpus} GPUs of {server}{more}: {found[0].choice.name}, {format_quantity(found[0].memory, 'B')}"
