"""Constants of a library and not of a GPU: found in the fitted halves of all GPUs that share it.

When a row is read again and what loading it element by element costs is the same wherever one program measured. Which
tiles products have is a matter of the kernels that a library brings for an architecture: where their names are known,
these tiles are taken, else those that all GPUs of the architecture hold up best. What a byte takes, and for how long
more power is granted, goes for all boards of too little power.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simperf.accuracy.fits.rows import best_fit
from simperf.accuracy.kernel_tables import MeasuredOp
from simperf.calibrate.fit import Data, Fit, Model, fit
from simperf.calibrate.fit.kernels import pooled_row_model, row_model, stream_model
from simperf.calibrate.fit.products import (
    CORNERS,
    CUTS,
    Cut,
    limited_model,
    pooled_limited_model,
    power_limited,
    product_models,
)
from simperf.cost.rows import AGAIN
from simperf.cost.tiles import library_tile
from simperf.hardware import GpuPart
from simperf.workload.op import Op

__all__ = ["Library", "OperationTable", "joined", "known_cut"]

#: difference of the strict criterion that says nothing (as in `simperf.calibrate.fit.solve.best_of`)
_EQUAL = 2.0

_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperationTable:
    """The measured times of one operation on one GPU, in the halves that are fitted and predicted.

    Parameters
    ----------
    case : mapping
    gpu : str
    part : GpuPart
    kind : str
        Of the operations; products together.
    group : sequence of MeasuredOp
    known, away : Data
        Points that are fitted, and that are predicted.
    fixed : float
        Time of a call that is known [s].
    """

    case: Mapping[str, Any]
    gpu: str
    part: GpuPart
    kind: str
    group: Sequence[MeasuredOp]
    known: Data
    away: Data
    fixed: float

    @property
    def source(self) -> str:
        """Repository that the case comes from."""
        return str(self.case["source"].get("repo", ""))

    @property
    def op(self) -> Op:
        """One of the operations, for kind and precision."""
        return self.group[0][1]

    @property
    def limited(self) -> bool:
        """Whether these are products on a board of too little power."""
        return self.kind == "product" and power_limited(self.part, self.op.dtype)

    def models(self) -> list[Model]:
        """Models that may be fitted: few constants, and the same with what the shapes may show."""
        if self.kind == "product":
            return product_models(self.kind, self.kind, self.part, dtype=self.op.dtype, overhead=self.fixed)
        largest = float(self.known.columns["nbytes"].max())
        found = [stream_model(self.kind, self.kind), stream_model(self.kind, self.kind, cache=largest / 4)]
        if self.kind in AGAIN:
            found += [row_model(self.kind, self.kind, overhead=overhead) for overhead in (self.fixed, None)]
        return found


def joined(parts: Sequence[Data]) -> Data:
    """Points of several data, one after the other."""
    columns = {key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns}
    return Data(columns, np.concatenate([part.measured for part in parts]))


def known_cut(op: Op, part: GpuPart) -> Cut | None:
    """Tile that a library is known to have for `op`."""
    tile = library_tile(op, part)
    return None if tile is None else Cut(*tile, only=True)


class Library:
    """Constants that several GPUs share, from their fitted halves.

    Parameters
    ----------
    tasks : sequence of OperationTable
    """

    def __init__(self, tasks: Sequence[OperationTable]) -> None:
        self.cuts = {
            key: known_cut(members[0].op, members[0].part) or _cut(members)
            for key, members in _groups(tasks, _tiles).items()
        }
        self._shared: dict[_Key, Fit] = {}
        for key, members in _groups(tasks, _shares).items():
            if len(members) > 1:
                self._shared[key] = self._pooled(members)

    def _pooled(self, members: Sequence[OperationTable]) -> Fit:
        numbers = np.repeat(np.arange(len(members)), [len(one.known) for one in members])
        fixed = np.array([members[int(i)].fixed for i in numbers])
        data = joined([one.known for one in members])
        data = Data({**data.columns, "gpu": numbers.astype(float), "fixed": fixed}, data.measured)
        if not members[0].limited:
            kind = members[0].kind
            models = [pooled_row_model(kind, kind, gpus=len(members), late=late) for late in (False, True)]
            return best_fit(models, data)
        parts, cuts = [one.part for one in members], [self.cuts[_tiles(one)] for one in members]
        return best_fit(
            [pooled_limited_model("product", "products", parts, cuts=cuts, sharpness=each) for each in CORNERS],
            data,
            strict=True,
        )

    def fit(self, task: OperationTable) -> Fit:
        """Fit what is the GPU's own, with what it shares."""
        shared, cut = self._shared.get(_shares(task)), self.cuts.get(_tiles(task))
        if shared is None:
            models = task.models()
            if cut is not None:
                models = [model for model in models if Cut.of(model.fixed) == cut]
            return best_fit(models, task.known, strict=cut is not None)
        values = shared.values
        if cut is None:
            overhead = task.fixed + values.get("overhead", 0.0)
            model = row_model(task.kind, task.kind, overhead=overhead, kept=values["kept"], loose=values["loose"])
        else:
            model = limited_model(
                task.kind,
                task.kind,
                task.part,
                cut=cut,
                sharpness=shared.model.fixed["sharpness"],
                overhead=task.fixed,
                byte_energy=values["byte_energy"],
                lag=values["lag"],
            )
        return fit(model, task.known)


def _shares(task: OperationTable) -> _Key:
    """What tasks share constants: rows of one source and precision; products of one case on boards of little power."""
    if task.kind in AGAIN:
        return task.source, task.kind, task.op.dtype
    return (str(task.case["id"]), "limited", task.op.dtype) if task.limited else ()


def _tiles(task: OperationTable) -> _Key:
    """What tasks share tiles: products of one kind and precision on one architecture."""
    return (task.op.kind, task.op.dtype, task.part.architecture) if task.kind == "product" else ()


def _groups(tasks: Sequence[OperationTable], key: Any) -> dict[_Key, list[OperationTable]]:
    found: dict[_Key, list[OperationTable]] = {}
    for task in tasks:
        if key(task):
            found.setdefault(key(task), []).append(task)
    return found


def _cut(members: Sequence[OperationTable]) -> Cut:
    """Tiles that all members hold up best, each with the best form for them; of equals the first."""
    total = dict.fromkeys(CUTS, 0.0)
    for task in members:
        found = dict.fromkeys(CUTS, float("inf"))
        for model in task.models():
            if len(task.known) >= len(model.constants) + 2:
                cut, value = Cut.of(model.fixed), fit(model, task.known, draws=0).criterion(strict=True)
                found[cut] = min(found[cut], value)
        total = {cut: total[cut] + found[cut] for cut in CUTS}
    least = min(total.values()) + _EQUAL
    return next(cut for cut in CUTS if total[cut] <= least)
