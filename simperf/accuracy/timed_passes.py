"""Published passes of models on one GPU beside what data sheets say: forward alone, or forward and backward.

A table has rows run, end to end, forward, backward [ms]; a run is named model-(inf or train)-sequence-batch. Each pass
was timed from an idle device, and is simulated so: program ``training-step``, of one part. What a row needs to be
simulated is data (``data/timed_models.toml``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simperf.accuracy.cases import source_of
from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.kernel_tables import GPUS, positive
from simperf.accuracy.questions import ONE_GPU
from simperf.accuracy.validation import ValidationRow
from simperf.files import read_toml
from simperf.run import run
from simperf.scenario import Scenario, make_scenario

__all__ = ["PASSES_TITLE", "TimedRun", "pass_scenario", "passes_left_out", "passes_table", "timed_runs"]

_DATA = Path(__file__).parent / "data" / "timed_models.toml"
#: how titles of such rows begin
PASSES_TITLE = "Passes on one GPU: "
_COLUMNS = ["run", "e2e_ms", "forward_ms", "backward_ms"]
#: passes of a run of inference, and of training
_PARTS = {"inf": ("forward",), "train": ("forward", "backward")}


class TimedRun(NamedTuple):
    """One row of a table.

    Parameters
    ----------
    gpu : str
        As the case has it.
    name, model : str
        Of the row; the model's part of it.
    parts : tuple of str
        Passes that the time is of.
    sequence, batch : int
        Tokens, and sequences.
    measured : float
        [s]
    """

    gpu: str
    name: str
    model: str
    parts: tuple[str, ...]
    sequence: int
    batch: int
    measured: float

    @property
    def why_not(self) -> str:
        """Reason why it cannot be simulated; empty if it can."""
        model = _models().get(self.model)
        if self.gpu not in GPUS:
            return f"the catalogue has no {self.gpu}"
        return f"{self.model} is not known" if model is None else str(model.get("left_out", ""))


def timed_runs(case: Mapping[str, Any]) -> Iterator[TimedRun]:
    """Rows of a case; none if it is no such table."""
    measured = case.get("measured", {})
    if list(measured.get("columns") or ()) != _COLUMNS:
        return
    for name, whole, *_ in measured["table"]:
        model, kind, sequence, batch = str(name).rsplit("-", 3)
        time = positive(whole, str(name)) * 1e-3
        gpu = str(case["hardware"]["gpu"])
        yield TimedRun(gpu, str(name), model, _PARTS[kind], int(sequence), int(batch), time)


def pass_scenario(one: TimedRun, part: str) -> Scenario:
    """The scenario of one pass of a run, from an idle device to an idle device, in fp32."""
    model = _models()[one.model]
    program = {"use": "training-step", "batch": one.batch, "precision": "fp32", "part": part}
    if "attention" in model:
        program["attention"] = model["attention"]
    return make_scenario(
        {
            "scenario": {"title": one.name, "answer": {"metric": "time"}},
            "machine": {
                "node": [{"id": "gpu0", "gpu": GPUS[one.gpu]}, {"id": "cpu0", "cpu": "xeon-8168"}],
                "link": [{"a": "gpu0", "b": "cpu0", "part": "pcie3-x16"}],
            },
            "model": dict(model["dimensions"]) if "dimensions" in model else {"name": model["name"]},
            "frontend": {"use": "pytorch"},
            "program": program,
        }
    )


def passes_table(cases: Sequence[Mapping[str, Any]]) -> list[ValidationRow]:
    """Every row that can be simulated, of every such table."""
    return [
        ValidationRow(
            f"{PASSES_TITLE}{case['id']}",
            one.name,
            "time",
            "s",
            one.measured,
            one.measured,
            sum(run(pass_scenario(one, part), record=False).time for part in one.parts),
            case=str(case["id"]),
            source=source_of(case),
            fitted="nothing of a step; efficiencies of kernels by architecture",
            kind="fitted" if constants_behind(str(case["id"])) else "predicted",
            rests_on=", ".join(constants_behind(str(case["id"]), choice=True)),
            question=ONE_GPU,
        )
        for case in cases
        for one in timed_runs(case)
        if not one.why_not
    ]


def passes_left_out(cases: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Number of rows that are not simulated, by the reason."""
    return Counter(one.why_not for case in cases for one in timed_runs(case) if one.why_not)


@cache
def _models() -> Mapping[str, Mapping[str, Any]]:
    return {name: one for name, one in read_toml(_DATA).data.items() if name != "format"}
