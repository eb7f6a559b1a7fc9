"""The scenario that simulates a layout, and the job that it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simperf.layout.layout_file import layout_table
from simperf.scenario import Scenario, make_scenario
from simperf.study.layouts.axes import LayoutChoice
from simperf.study.layouts.request import STACK, LayoutRequest, TrainingMachine
from simperf.training.job import Job
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.replica import Dimensions
from simperf.training.strategies import GRADIENT_BUCKET, ModelParallel

__all__ = ["JobMaker", "layout_scenario"]

#: options of weights that are gathered layer by layer
_OF_GATHERED = ("reshard_weights", "prefetch_weights", "reduce_gradients", "kept_precision", "flat_weights")


def layout_scenario(request: LayoutRequest, machine: TrainingMachine, choice: LayoutChoice) -> dict[str, Any]:
    """The tables of the scenario that simulates a layout.

    Options of ``[program]`` that have no effect with a layout are left out of its scenario: those of messages and of a
    pipeline where there is one stage, of context parallelism where ranks have whole sequences, of sharding where there
    is another.
    """
    given, layout = dict(request.base.get("program", {})), choice.layout
    shared = layout.dp * layout.cp > 1
    idle = {
        **dict.fromkeys(("overlap_messages", "synchronous_messages", "scatter_messages"), layout.pp > 1),
        "pipeline_runs": layout.pp > 1,
        "context_exchange": layout.cp > 1,
        "sequence_parallel": layout.tp > 1,
        "gradient_bucket": shared and layout.sharding != "zero-3",
        "overlap_weights": shared and layout.sharding in ("zero-1", "zero-2"),
        **dict.fromkeys(_OF_GATHERED, layout.sharding == "zero-3"),
    }
    program: dict[str, Any] = {"use": "train", "strategy": "model-parallel", "stack": STACK, "steps": 1}
    program |= {"sequence_parallel": True} if layout.tp > 1 else {}
    program |= {key: value for key, value in given.items() if idle.get(key, True)}
    if layout.sharding == "zero-2":  # a rank keeps its part of gradients, which come a bucket at a time
        program.setdefault("gradient_bucket", GRADIENT_BUCKET)
    program |= {"batch": request.batch, **choice.options()}
    data = {key: table for key, table in request.base.items() if key != "program"}
    data |= {
        "scenario": {"title": f"{request.name} on {machine.gpus} GPUs of {machine.name}: {choice.name}"},
        "machine": dict(machine.table),
        "layout": layout_table(layout),
        "program": program,
    }
    return data | ({"run": {"force": True}} if request.force else {})


class JobMaker:
    """Jobs of layouts on one machine, each as its scenario has it, without reading a scenario for each.

    Parameters
    ----------
    request : LayoutRequest
    machine : TrainingMachine
    """

    def __init__(self, request: LayoutRequest, machine: TrainingMachine) -> None:
        self.request, self.machine = request, machine
        self._jobs: dict[tuple[Any, ...], Job] = {}
        self._strategies: dict[tuple[Any, ...], ModelParallel] = {}

    def scenario(self, choice: LayoutChoice) -> Scenario:
        """The scenario of a layout; raises `InputError` for what it does not take."""
        data = layout_scenario(self.request, self.machine, choice)
        return make_scenario(data, folder=self.request.folder)

    def job(self, choice: LayoutChoice) -> Job:
        """A job that differs from that of a layout in numbers alone: of ranks, samples, parts and their layers."""
        layout = choice.layout
        one = tuple(getattr(layout, key) > 1 for key in ("tp", "cp", "ep", "pp", "dp"))
        key = (*one, layout.sharding, choice.schedule, choice.chunks > 1, choice.recompute, choice.precision)
        if key not in self._jobs:
            scenario = self.scenario(choice)
            assert scenario.program.options is not None
            self._jobs[key] = scenario.program.options.made(scenario.parameters)
        return self._jobs[key]

    def divided(self, choice: LayoutChoice, architecture: str) -> Divided:
        """The divided model of a layout, as far as memory depends on it."""
        job = self.job(choice)
        assert isinstance(job.model, Dimensions)
        key = id(job), choice.microbatch, choice.chunks, choice.stage_layers
        if key not in self._strategies:
            assert isinstance(job.strategy, ModelParallel)
            sizes = {"microbatch": choice.microbatch, "chunks": choice.chunks, "stage_layers": choice.stage_layers}
            self._strategies[key] = replace(job.strategy, **sizes)  # type: ignore[arg-type]
        given = job.model, choice.layout, self._strategies[key], job.batch
        return Divided(*given, architecture, job.devices.offload, job.stack.allocator)
