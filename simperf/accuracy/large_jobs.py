"""Published cases of large models as scenarios, which `simperf.run` simulates, and their memory."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from simperf.accuracy.large_cases import LargeCase
from simperf.accuracy.large_layouts import LargeLayout
from simperf.accuracy.large_stacks import context_of, profile_of, stack_of
from simperf.errors import InputError, Problem
from simperf.frameworks.machines import cluster_table
from simperf.layout.layout_file import layout_table
from simperf.memory import StageMemory, communicator_buffers
from simperf.run import run
from simperf.scenario import make_scenario
from simperf.training.job import Job
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.replica import Dimensions
from simperf.training.strategies import GRADIENT_BUCKET, ModelParallel
from simperf.workload.transformers.transformer_file import transformer_table

__all__ = ["FROZEN", "case_job", "case_tables", "case_time", "counted_memory"]

#: steps that are played; all but the first are told
_STEPS = 2
#: channels of a communicator of rings inside a server, two for each NVLink of a GPU: NVIDIA/nccl, src/graph/search.cc
_CHANNELS_A_LINK = 2
#: precision that weights are kept and gathered in -> of frozen ones beside adapters; no source prints it
FROZEN = {"fp8": "narrow"}


def case_tables(case: LargeCase, *, profiled: bool = True) -> dict[str, Any]:
    """Tables of the scenario of a case.

    Parameters
    ----------
    case : LargeCase
    profiled : bool
        Whether isolated kernels count that its source measured on its machine; else the catalogue alone.

    Raises
    ------
    InputError
        What cannot be simulated.
    """
    if case.machine.why_not:
        raise InputError(Problem(case.machine.why_not, key="machine"))
    profile = profile_of(case) if profiled else ""
    return _tables(case, {"machine": _machine(case), **({"calibration": {"use": profile}} if profile else {})})


def _tables(case: LargeCase, machine: dict[str, Any]) -> dict[str, Any]:
    how = case.layout
    program: dict[str, Any] = {
        "use": "train",
        "strategy": "model-parallel",
        "stack": stack_of(case),
        "precision": how.precision
        if how.precision == "fp32"
        else f"{how.precision}-{'pure' if how.pure else 'master'}",
        "batch": how.batch,
        "microbatch": how.microbatch,
        "schedule": how.schedule,
        "recompute": how.recompute,
        "steps": _STEPS,
    }
    if how.adapters:
        program |= {"lora_rank": how.adapters.rank, "lora_targets": list(how.adapters.targets)}
        base = FROZEN.get(how.gathered, how.adapters.base)
        program |= {"frozen_precision": base} if base != "as-products" else {}
    if how.chunks > 1:
        program["chunks"] = how.chunks
    if how.stage_layers:
        program["stage_layers"] = list(how.stage_layers)
    program |= _tensor_options(how)
    if how.layout.cp > 1:
        program["context_exchange"] = how.context_exchange
    if how.routing.capacity:
        program |= {"expert_capacity": how.routing.capacity, "pad_experts": how.routing.padded}
    if how.gradients:
        program["gradient_precision"] = how.gradients
    alone = max(how.layout.dp * how.layout.cp, how.layout.expert_dp) == 1 and how.schedule != "dualpipe"
    kept = how.layout.sharding == "zero-2"  # a rank keeps its part of gradients, which it can while they come alone
    if (how.overlap or kept) and how.layout.sharding != "zero-3" and not alone:
        program["gradient_bucket"] = GRADIENT_BUCKET
    if how.weights_overlap and how.layout.sharding in ("zero-1", "zero-2"):
        program["overlap_weights"] = True
    chosen = {
        "reshard_weights": how.reshard,
        "gathered_precision": "" if how.adapters else how.gathered,
        "product_precision": how.products,
        "activation_inputs": how.activation_inputs,
    }
    program |= {key: value for key, value in chosen.items() if value}
    if how.fused_loss:
        program["cross_entropy"] = "in-place" if "TE" in how.framework else "fused"
    if how.messages_overlap:
        program |= {"overlap_messages": True, "synchronous_messages": False}
    return {
        "scenario": {"title": case.name, "answer": {"metric": "time per step"}},
        **machine,
        "model": transformer_table(case.model),
        "layout": layout_table(how.layout),
        "program": program,
        "frontend": {"use": "pytorch"},
    }


def _tensor_options(how: LargeLayout) -> dict[str, Any]:
    """Options of tensor parallelism."""
    found: dict[str, Any] = {}
    if how.layout.tp == 1:
        found["sequence_parallel"] = False
    elif how.sequence_parallel is not None:
        found["sequence_parallel"] = how.sequence_parallel
    if how.tensor_overlap is False and how.layout.tp > 1:
        found["gradient_overlap"] = "alone"
    if how.product_ring:
        found |= {"product_parts": how.layout.tp, "parts_exchange": "ring"}
    elif how.product_parts:
        found["product_parts"] = how.product_parts
    return found


def _machine(case: LargeCase) -> dict[str, Any]:
    """The ``[machine]`` table: one server, or several on rails of the network that their adapters are of."""
    machine = case.machine
    return {"use": machine.server} if machine.servers == 1 else cluster_table(machine.server, machine.servers)


def case_time(case: LargeCase, *, profiled: bool = True, force: bool = False) -> float:
    """Time of an iteration as `simperf.run` simulates it [s]; of cases that differ in what was measured alone once.

    Parameters
    ----------
    case : LargeCase
    profiled : bool
        As for `case_tables`.
    force : bool
        Whether to simulate more events than a run may.

    Raises
    ------
    SimperfError
        What cannot be simulated.
    """
    tables = case_tables(case, profiled=profiled) | ({"run": {"force": True}} if force else {})
    return _time_of(json.dumps({**tables, "scenario": {"title": "a case", "answer": {"metric": "time per step"}}}))


@cache
def _time_of(tables: str) -> float:
    return float(run(make_scenario(json.loads(tables)), record=False).metrics["time per step"].value)


def _case_memory(case: LargeCase) -> tuple[StageMemory, ...]:
    """Memory of a rank of each stage.

    Raises
    ------
    InputError
        What cannot be divided.
    """
    job, model, strategy = case_job(case)
    assert job.layout is not None
    architecture, allocator = case.machine.gpu.architecture, job.stack.allocator
    return Divided(model, job.layout, strategy, job.batch, architecture, allocator=allocator).memory()


def case_job(case: LargeCase) -> tuple[Job, Dimensions, ModelParallel]:
    """Return the job of a case, its model and its strategy."""
    scenario = make_scenario(_tables(case, {}))
    assert scenario.program.options is not None
    job: Job = scenario.program.options.made(scenario.parameters)
    assert isinstance(job.strategy, ModelParallel)
    assert isinstance(job.model, Dimensions)
    return job, job.model, job.strategy


def counted_memory(case: LargeCase) -> list[float]:
    """Peak of each stage as the counter of the case has it [B].

    PyTorch's counters have what its allocator gives away; reserved memory is what its pools have taken, one for each
    stream, with what stays free between the tensors of the head and its loss; that of blocks is not modelled. The
    driver's total is that, which ends at what the GPU has, with contexts and communicators: one of tensor, of pipeline
    and of data parallelism.

    Raises
    ------
    InputError
        What cannot be divided.
    """
    stages = _case_memory(case)
    counter = case.memory.counter if case.memory is not None else "allocated"
    if counter == "activations":
        return [max(one.held.get("activations", 0.0) for one in stage.moments) for stage in stages]
    if counter == "reserved":
        return [stage.reserved for stage in stages]
    if counter == "device":
        dimensions = sum(size > 1 for size in (case.layout.layout.tp, case.layout.layout.pp, case.layout.layout.dp))
        beside = context_of(case) + dimensions * communicator_buffers(
            _CHANNELS_A_LINK * (case.machine.gpu.nvlinks or 1)
        )
        room = case.machine.gpu.memory_capacity - beside  # blocks that are free are given back where it runs out
        return [beside + max(stage.peak.total, min(stage.reserved, room)) for stage in stages]
    return [stage.peak.total for stage in stages]
