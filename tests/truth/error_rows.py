"""Errors of published figures as files of `simperf.analysis.left_out`, from which intervals of predictions are made.

Each figure is predicted as the accuracy page predicts it, and a kernel as if nobody had measured its architecture. No
figure counts that a constant was read off. Files hold errors and what figures share, not the figures.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from simperf.accuracy.cases import read_cases, source_of
from simperf.accuracy.collectives import collective_errors
from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.kernel_figures import left_out_figures
from simperf.accuracy.kernel_tables import GPUS, added_time, by_operation, kernel_cases
from simperf.accuracy.large_cases import LargeCase, read_large_cases
from simperf.accuracy.large_jobs import case_job
from simperf.accuracy.large_table import stored_grades
from simperf.accuracy.leave_out.kernels import elsewhere, kernel_parts
from simperf.accuracy.leave_out.measured_steps import measured_steps
from simperf.accuracy.nccl_cases import cases_known, series_of
from simperf.accuracy.product_tables import product_tables
from simperf.accuracy.timed_passes import pass_scenario, timed_runs
from simperf.accuracy.validation import validation_rows
from simperf.analysis.left_out import COLUMNS, LeftOutError, difficulty_of, launch_difficulty
from simperf.analysis.questions import (
    COLLECTIVES,
    KERNEL_GROUPS,
    KERNELS,
    LARGE,
    ONE_GPU,
    ONE_GPU_GROUPS,
    PLANS,
    SCALING,
    STEP_METRICS,
    RunQuestion,
    asked_by,
    size_class,
)
from simperf.cost import Roofline
from simperf.hardware import Catalog, Machine
from simperf.results import Result
from simperf.run import Attempt, run, run_variants
from simperf.scenario import Scenario, load_scenario, shipped_scenarios
from simperf.scenario.load import change_scenario
from simperf.scenario.own_constants import estimated_architecture
from simperf.workload.mixed import training_precision
from simperf.workload.op import MATRIX_FAMILIES
from simperf.workload.transformers.flops import again_flops, tuning_flops

__all__ = ["ERRORS", "errors_text"]

Errors = Iterator[LeftOutError]
#: who published tables of products by shape, and rows of such a table that are taken, evenly
_TABLES, _ROWS = "ai-dynamo/aiconfigurator", 40


def scaling_errors(folder: str | os.PathLike[str]) -> Errors:
    """Errors of figures of several GPUs that were given the speed of one, those of nearly linear scaling too."""
    for name in _measured_scenarios():
        scenario = load_scenario(name)
        for attempt in run_variants(scenario, record=False):
            asked = _asked(attempt.scenario)
            if asked.question == SCALING:
                yield from _of_steps(scenario, attempt, asked)


def plan_errors(folder: str | os.PathLike[str]) -> Errors:
    """Errors of the same figures where models are known by their layers, without the speed of one GPU."""
    for name in _measured_scenarios():
        scenario = load_scenario(name)
        for variant in scenario.variants or (scenario,):
            given = variant.parameters
            if variant.program.name == "train" and given.get("model") and given.get("alone") and variant.measurements:
                told = {f"program.{key}": 0 for key in variant.data["program"] if key.startswith("alone")}
                bare = replace(change_scenario(variant, told), answer=None)
                asked = _asked(bare)
                if asked.question == PLANS:
                    result = run(bare, record=False, unused="tell")
                    yield from _of_steps(scenario, Attempt(variant.name, variant, result, None), asked)


def one_gpu_errors(folder: str | os.PathLike[str]) -> Errors:
    """Errors of training steps of one GPU, and of passes of a model."""
    steps, passes = ONE_GPU_GROUPS
    for step in measured_steps(quoted=True):
        scenario, machine = step.scenario, step.scenario.machine
        if constants_behind(scenario.case, scenario) or (machine is not None and estimated_architecture(machine)):
            continue  # runs like the latter have no interval
        values = _values(run(scenario, record=False))
        error = math.log(values["samples per second"] / step.measured)
        about = (steps, scenario.case, _publisher(scenario.source), step.part.name)
        yield LeftOutError(*about, difficulty_of(ONE_GPU, values), error)
    for case in read_cases(folder):
        for one in () if constants_behind(str(case["id"])) else timed_runs(case):
            if not one.why_not:
                time = sum(run(pass_scenario(one, part), record=False).time for part in one.parts)
                family = f"{case['id']} {one.model}"
                error = math.log(one.measured / time)
                yield LeftOutError(passes, family, _publisher(source_of(case)), GPUS[one.gpu], 0.0, error)


def collective_rows(folder: str | os.PathLike[str]) -> Errors:
    """Errors of NCCL's collectives, by size."""
    for case in read_cases(folder):
        if case["id"] not in cases_known() or constants_behind(case["id"]):
            continue
        machines = {(one.name, one.label): (tuner.machine, len(tuner.ranks)) for one, tuner in series_of(case)}
        for one in collective_errors(case):
            machine, ranks = machines[one.series, one.label]
            error = math.log(one.measured / one.predicted)
            about = (size_class(one.nbytes), case["id"], _publisher(source_of(case)), _gpu(machine))
            yield LeftOutError(*about, 0.0, error, gpus=ranks)


def kernel_errors(folder: str | os.PathLike[str]) -> Errors:
    """Errors of kernels, each as if nobody had measured a GPU of its architecture."""
    cases, catalog = read_cases(folder), Catalog.load()
    parts = kernel_parts(cases)
    for case, gpu, every in kernel_cases(cases):
        part = catalog.gpu(GPUS[gpu])
        roofline = Roofline(part, efficiency=elsewhere(parts, part))
        for rows in by_operation(every).values():
            added = added_time(case, rows[0][1])
            for _, op, time in rows:
                error = math.log(time / (roofline.cost(op).time + added))
                group = KERNEL_GROUPS[0 if op.family in MATRIX_FAMILIES else 1]
                family = f"{case['id']} {part.name}"
                yield LeftOutError(group, family, _publisher(source_of(case)), part.name, 0.0, error)
    if os.path.isfile(os.path.join(folder, "llm", "kernels", "index.json")):
        yield from _products(folder)


def _products(folder: str | os.PathLike[str]) -> Errors:
    """Errors of products by shape on GPUs that were left out: of each table as many as of a table of cases."""
    for one in left_out_figures(product_tables(folder)):
        errors = -np.log1p(one.error)
        for error in errors[:: max(1, len(errors) // _ROWS)]:
            yield LeftOutError(KERNEL_GROUPS[0], f"{one.title} {one.gpu}", _TABLES, one.gpu, 0.0, float(error))


def large_errors(folder: str | os.PathLike[str]) -> Errors:
    """Errors of iterations of large models, as they are stored (`simperf.accuracy.large_table`).

    Of configurations that a constant was read off, such as the pace of a stack's kernels, none counts.
    """
    cases = {(one.family, one.name, one.digest): one for one in read_large_cases(Path(folder) / "llm")[0]}
    for row in stored_grades():
        case = cases.get((row.family, row.case, row.digest))
        if case is None or row.quantity != "time" or math.isnan(row.error):
            continue
        if constants_behind(row.case, quantity=row.quantity):
            continue
        gpu, how = case.machine.gpu.name, case.layout
        turns = how.batch / (how.microbatch * how.layout.dp) * case.model.layers / how.layout.pp
        difficulty, used = launch_difficulty(row.predicted / turns), _utilisation(case, row.predicted)
        error = -math.log1p(row.error)
        yield LeftOutError("", f"{case.family} {gpu}", case.family, gpu, difficulty, error, gpus=case.gpus, used=used)


def _utilisation(case: LargeCase, time: float) -> float:
    """The larger of a step's model FLOP and hardware FLOP utilisation, [1]; 0 of unknown peaks and narrow products.

    Where products are of fewer bits than the peak of which a run tells them, they have no bound.

    Parameters
    ----------
    case : LargeCase
    time : float
        Of an iteration [s].
    """
    job, model, strategy = case_job(case)
    peak = float(case.machine.gpu.peak.get(training_precision(model.precision).matrix, 0.0))
    flops = tuning_flops(model.model, model.adapters, model.documents)
    again = again_flops(model.model, strategy.recompute, model.adapters, model.documents)
    return (
        (flops + again) * job.batch / case.gpus / time / peak
        if peak and model.kernels.products == "as-weights"
        else 0.0
    )


#: how each question's errors are made of a folder of measured data
ERRORS: Mapping[str, Callable[[str | os.PathLike[str]], Errors]] = {
    ONE_GPU: one_gpu_errors,
    SCALING: scaling_errors,
    PLANS: plan_errors,
    COLLECTIVES: collective_rows,
    KERNELS: kernel_errors,
    LARGE: large_errors,
}


def errors_text(errors: Iterable[LeftOutError]) -> str:
    """The file of a question's errors: comma-separated, with a header; errors to four digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in errors:
        numbers = (one.gpus, *(f"{value:.4f}" for value in (one.difficulty, one.used, one.error)))
        writer.writerow((one.group, one.family, one.source, one.gpu, *numbers))
    return text.getvalue()


def _measured_scenarios() -> Sequence[str]:
    return [name for name in shipped_scenarios() if name.startswith("measured/")]


def _asked(scenario: Scenario) -> RunQuestion:
    gpus = len(scenario.machine.gpus) if scenario.machine is not None else 0
    return asked_by(scenario.program.name, scenario.parameters, gpus=gpus)


def _of_steps(scenario: Scenario, attempt: Attempt, asked: RunQuestion) -> Errors:
    """Errors of an attempt's figures that are as far off as the time of its steps, with what bounds its interval."""
    result, machine = attempt.result, attempt.scenario.machine
    for row in validation_rows(scenario, [attempt]):
        name = row.quantity.removeprefix("metrics.")
        if result is None or machine is None or row.kind == "fitted" or name not in STEP_METRICS:
            continue
        missed = -math.log1p(row.error) if row.unit == "s" else math.log1p(row.error)
        values = _values(result)
        used = min(1.0, values.get("scaling efficiency", 0.0)) if "scaling efficiency" in asked.metrics else 0.0
        about = ("", row.case, _publisher(row.source), _gpu(machine))
        yield LeftOutError(*about, difficulty_of(SCALING, values), missed, gpus=asked.gpus, used=used)


def _values(result: Result) -> dict[str, float]:
    return {name: metric.value for name, metric in result.metrics.items()}


def _gpu(machine: Machine) -> str:
    """The GPU of a machine, by its name in the catalogue."""
    return str(machine.nodes[machine.gpus[0]].part.name) if machine.gpus else ""  # type: ignore[union-attr]


def _publisher(source: str) -> str:
    """Who published a figure: the repository or the page, without the file."""
    return re.split(r",| at |#", source)[0].strip()
