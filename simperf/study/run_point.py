"""A run of one point of a study, in whatever process it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from simperf.errors import SimperfError
from simperf.run import run_within
from simperf.study.points import Row, base_scenario, failed_row, point_scenario, result_row, with_speeds
from simperf.study.uncertainty import predict

__all__ = ["run_task"]


def run_task(task: Mapping[str, Any]) -> Row:
    """Run one point; whatever goes wrong is in its row, and nothing is raised."""
    try:
        if task["samples"]:
            made = replace(base_scenario(task), answer=None)
            result = predict(
                made,
                samples=task["samples"],
                record=task["record"],
                change=lambda one: with_speeds(one, task),
                unused="tell",
            )
        else:
            # a point without the metric that is asked for still has its other numbers
            made = replace(point_scenario(task), answer=None)
            result = run_within(made, task.get("most"), record=task["record"])
        return result_row(task, result)
    except SimperfError as error:
        return failed_row(task, str(error))
    except Exception as error:
        return failed_row(task, f"{type(error).__name__}: {error}")
