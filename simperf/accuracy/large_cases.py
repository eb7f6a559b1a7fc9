"""Published cases of large models: what each trains, where and how, or why that cannot be expressed.

A folder has files of families, ``{"family", "description", "cases": [...]}``; a case has `hardware`, `model`,
`parallelism`, `measured` and where known `_measured_memory` and `peer_prediction`. Models and GPUs are read by their
dimensions and names, not by their family. What a source does not print is assumed, and reported with the case.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from simperf.accuracy.large_features import model_with_features
from simperf.accuracy.large_hardware import LargeMachine, large_machine
from simperf.accuracy.large_layouts import LargeLayout, large_layout
from simperf.accuracy.large_shapes import large_model
from simperf.accuracy.large_stacks import assumed_release
from simperf.accuracy.large_unprinted import completed
from simperf.errors import InputError
from simperf.json_file import read_json
from simperf.workload.mixed import training_precision
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.flops import step_flops

__all__ = ["LargeCase", "LeftOut", "MeasuredMemory", "read_large_cases"]

#: metrics that give the time of an iteration
_TIMES = ("iteration_time", "tokens_per_s_per_gpu")
#: how FLOP of a printed utilisation are counted, where its source says so
_COUNTED = "attention in full"


#: of PyTorch's allocator: allocated or reserved at most; of nvidia-smi, with caches and contexts; activations of the
#: first stage alone
MemoryCounter = Literal["allocated", "reserved", "device", "activations"]

#: metric of a case -> what was read
_COUNTERS: Mapping[str, MemoryCounter] = {
    "peak_allocated_max_over_ranks": "allocated",
    "peak_memory_max_over_gpus": "reserved",
    "gpu_memory": "device",
    "max_memory": "device",
    "peak_memory": "allocated",
    "activation_memory_first_stage": "activations",
}
_UNITS = {"GiB": 2.0**30, "GB": 1e9, "MiB": 2.0**20, "MB": 1e6}


class LeftOut(NamedTuple):
    """A case that is not predicted.

    Parameters
    ----------
    family, name : str
    reasons : tuple of str
        All that stands against it.
    """

    family: str
    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LargeCase:
    """A training job of a source, with what was measured.

    Parameters
    ----------
    family, name : str
        File, and id in it.
    model : Transformer
    machine : LargeMachine
    layout : LargeLayout
    time : float, optional
        Of an iteration [s]; None if it was not measured.
    memory : MeasuredMemory, optional
        Of a GPU.
    peer_time, peer_memory : float, optional
        What another simulator predicts [s], [B].
    assumed : tuple of str
        What the source does not print.
    percentiles : mapping
        Times of single steps by percentile [s]; empty if they are not printed.
    digest : str
        Checksum of the case as its file has it.
    feature : str
        What it has beside the case before it, where its source adds one after the other; empty elsewhere.
    """

    family: str
    name: str
    model: Transformer
    machine: LargeMachine
    layout: LargeLayout
    time: float | None
    memory: MeasuredMemory | None
    peer_time: float | None
    peer_memory: float | None
    assumed: tuple[str, ...]
    percentiles: Mapping[int, float] = field(default_factory=dict)
    digest: str = ""
    feature: str = ""

    @property
    def gpus(self) -> int:
        """GPUs of the job."""
        return self.layout.layout.ranks


def read_large_cases(
    folder: str | os.PathLike[str], families: tuple[str, ...] = ()
) -> tuple[list[LargeCase], list[LeftOut]]:
    """Read all training cases of a folder, or of some of its files.

    Parameters
    ----------
    folder : path
    families : tuple of str
        Names of files without ``.json``; all if empty.

    Returns
    -------
    (list of LargeCase, list of LeftOut)
        What can be expressed, and what cannot, with reasons.

    Raises
    ------
    InputError
        A file cannot be read, or is no table of cases.
    """
    found: list[LargeCase] = []
    left: list[LeftOut] = []
    for path in sorted(Path(folder).glob("*.json")):
        if families and path.stem not in families:
            continue
        for case in _cases_of(path):
            made = _case(path.stem, case)
            if isinstance(made, LeftOut):
                left.append(made)
            else:
                found.append(made)
    return found, left


def _cases_of(path: Path) -> Iterator[Mapping[str, Any]]:
    file = read_json(path, expected="a table of cases", finite=False)
    cases = file.data.get("cases") if isinstance(file.data, dict) else None
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise InputError(file.problem(("cases",), "a list of cases is expected"))
    yield from cases


def _case(family: str, case: Mapping[str, Any]) -> LargeCase | LeftOut:
    name, kind = str(case.get("id", "")), case.get("kind")
    if not isinstance(case.get("measured", {}), dict):
        return LeftOut(family, name, ("measured is no table",))
    if kind not in ("training", "memory"):
        return LeftOut(family, name, (f"a case of {kind}, not of training",))
    reasons: list[str] = []
    assumed: list[str] = []
    digest = hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:8]
    case = completed(family, case, assumed)
    tables = [case[key] if isinstance(case.get(key), dict) else {} for key in ("hardware", "model", "parallelism")]
    hardware, shape, how = tables
    model = _attempt(reasons, large_model, shape, assumed)
    machine = _attempt(reasons, large_machine, hardware, assumed)
    how = {**how, "software": case.get("software") or _source(case), "family": family}
    layout = _attempt(reasons, large_layout, how, hardware, shape, assumed)
    if case.get("inconsistent") is True:
        reasons.append("the source contradicts itself")
    if how.get("config_suspect"):
        reasons.append("the configuration contradicts the batch")
    model = model and _attempt(reasons, model_with_features, model, how, assumed)
    time, memory = _time(case, layout, model, machine), _measured_memory(case)
    metric = case.get("measured", {}).get("metric", "nothing")
    if time is None and memory is None and metric not in _TIMES:
        reasons.append(f"{metric} is no time and no memory of a GPU")
    elif time is None and memory is None and not reasons:
        reasons.append(f"{metric} has no value above 0")
    if reasons or model is None or machine is None or layout is None:
        return LeftOut(family, name, tuple(dict.fromkeys(reasons)))
    if release := assumed_release(family, name, layout):
        assumed.append(release)
    peer = case.get("peer_prediction") or {}
    peer_gib = peer.get("peak_alloc_gib")
    return LargeCase(
        family,
        name,
        model,
        machine,
        layout,
        time,
        memory,
        _number(peer.get("iteration_time_s")),
        None if peer_gib is None else float(peer_gib) * 2**30,
        tuple(dict.fromkeys(assumed)),
        _percentiles(case.get("measured", {})),
        digest,
        str(how.get("cumulative_feature") or ""),
    )


def _source(case: Mapping[str, Any]) -> str:
    """Where a case is published, with the release: it stands for the software of those that print none."""
    source = case.get("source")
    return f"{source.get('repo', '')} {source.get('tag', '')}".strip() if isinstance(source, dict) else ""


def _attempt(reasons: list[str], made: Any, *given: Any) -> Any:
    """The case that a reader gives, or None with its reasons."""
    try:
        return made(*given)
    except InputError as error:
        reasons += [f"{one.key}: {one.message}" if one.key else one.message for one in error.problems]
    except KeyError as error:
        reasons.append(f"{error.args[0]} is not printed")
    except (ValueError, TypeError, AttributeError) as error:
        reasons.append(str(error))
    return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _percentiles(measured: Mapping[str, Any]) -> dict[int, float]:
    """Times of single steps by percentile [s]: ``step_p50`` and the like."""
    found = {int(key[6:]): _number(value) for key, value in measured.items() if re.fullmatch(r"step_p\d\d?", key)}
    return {percent: value for percent, value in found.items() if value is not None}


def _time(
    case: Mapping[str, Any], layout: LargeLayout | None, model: Transformer | None, machine: LargeMachine | None
) -> float | None:
    """Time of an iteration [s], from tokens a second or from a utilisation of known FLOP if it is not printed."""
    measured = case.get("measured", {})
    value = _number(measured.get("value"))
    if value is None:
        return None
    if measured.get("metric") == "iteration_time":
        return value
    if (derived := _number(measured.get("iteration_time_s_derived"))) is not None:  # by the source's own FLOPs
        return derived
    if measured.get("metric") == "tokens_per_s_per_gpu" and layout is not None and model is not None:
        return layout.batch * model.sequence / (value * layout.layout.ranks)
    if measured.get("metric") == "mfu" and measured.get("flops") == _COUNTED and layout and model and machine:
        peak = machine.gpu.peak[training_precision(f"{layout.precision}-master").matrix]
        return step_flops(model) * layout.batch / (layout.layout.ranks * peak * value / 100)
    return None


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """Most memory of a GPU during a run.

    Parameters
    ----------
    counter : str
        What was read.
    nbytes : float
        Most over all GPUs [B].
    by_rank : mapping of int to float
        The same of each rank, where it is printed [B].
    fits : bool, optional
        Whether the job fitted; None where nobody asked. Of one that did not, `nbytes` is not known.
    """

    counter: MemoryCounter
    nbytes: float
    by_rank: Mapping[int, float]
    fits: bool | None = None


def _measured_memory(case: Mapping[str, Any]) -> MeasuredMemory | None:
    """The memory that a case has, beside a time or instead of one; None if there is none.

    torchtitan's figure is that of its metrics, which read PyTorch's reserved memory (pytorch/torchtitan,
    components/metrics.py).
    """
    for table in (case.get("measured_memory"), case.get("measured")):
        if not isinstance(table, Mapping) or table.get("metric") not in _COUNTERS:
            continue
        value, unit = table.get("value"), table.get("unit")
        fits = not table["oom"] if isinstance(table.get("oom"), bool) else None
        if fits is False:
            return MeasuredMemory(_COUNTERS[table["metric"]], math.nan, {}, fits)
        if not isinstance(value, int | float) or unit not in _UNITS:
            continue
        each = table.get("per_rank_max_allocated_mb") or {}  # in units of 2**20, as Megatron-LM prints it
        return MeasuredMemory(
            _COUNTERS[table["metric"]],
            float(value) * _UNITS[unit],
            {int(rank): float(size) * _UNITS["MiB"] for rank, size in each.items()},
            fits,
        )
    return None
