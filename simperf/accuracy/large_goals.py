"""Mean errors of families of large models, for goals of accuracy: of stored rows that no constant was fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import fmean
from typing import NamedTuple

from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.large_grades import GAIN
from simperf.accuracy.large_table import StoredGrade, stored_grades

__all__ = ["GROUPS", "FamilyGroup", "family_errors"]


class FamilyGroup(NamedTuple):
    """Rows of a family.

    Parameters
    ----------
    family, quantity : str
        As of `StoredGrade`.
    cases : tuple of str
        Shell patterns of their cases; all if there are none.
    but : tuple of str
        Patterns of cases that are not among them.
    worst : bool
        Whether its figure is the largest error, not the mean.
    """

    family: str
    quantity: str = "time"
    cases: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    worst: bool = False

    def has(self, row: StoredGrade) -> bool:
        """Whether a row is of the group."""
        if (row.family, row.quantity) != (self.family, self.quantity):
            return False
        named = not self.cases or any(fnmatchcase(row.case, one) for one in self.cases)
        return named and not any(fnmatchcase(row.case, one) for one in self.but)


_BLACKWELL = ("*b200*", "*gb200*", "*tyche*", "*carina*", "*gb300*", "*b300*")
#: what goals call a group -> its rows
GROUPS: Mapping[str, FamilyGroup] = {
    "SimuMax: time": FamilyGroup("simumax_b200"),
    "SimuMax: memory": FamilyGroup("simumax_b200", "memory"),
    "vTrain: several servers": FamilyGroup("vtrain_a100", cases=("vtrain-m-*",)),
    "vTrain: one server": FamilyGroup("vtrain_a100", cases=("vtrain-s-*",)),
    "Selene: time": FamilyGroup("megatron_selene"),
    "dgxc: time": FamilyGroup("dgxc_weak_scaling"),
    "MLPerf: pre-training, Hopper": FamilyGroup("mlperf_training", but=("*lora*", *_BLACKWELL)),
    "MLPerf: pre-training, Blackwell": FamilyGroup("mlperf_training", cases=_BLACKWELL, but=("*lora*",)),
    "torchtitan: time": FamilyGroup("torchtitan"),
    "torchtitan: memory": FamilyGroup("torchtitan", "memory"),
    "llm-foundry: time": FamilyGroup("llm_foundry_mpt"),
    "InternEvo: time": FamilyGroup("internevo"),
    "Megatron-Bridge: dense": FamilyGroup("megatron_bridge", cases=("*llama*",)),
    "Megatron-Bridge: experts": FamilyGroup("megatron_bridge", but=("*llama*",)),
    "NeMo: time": FamilyGroup("nemo_h100_longseq"),
    "bigscience: time": FamilyGroup("bigscience_bloom"),
    "reported: time": FamilyGroup("reported_frontier"),
    "MegaScale: gain of a feature": FamilyGroup("reported_frontier", GAIN, worst=True),
    "litgpt: wrong verdicts": FamilyGroup("litgpt_memory", "fits"),
}


def family_errors(stored: Sequence[StoredGrade] | None = None) -> dict[str, float]:
    """Mean or largest absolute error of each group [1]; NaN without a prediction.

    Rows that a constant was fitted to are left out.

    Parameters
    ----------
    stored : sequence of StoredGrade, optional
        In place of the table of the package.
    """
    rows = stored_grades() if stored is None else stored
    found = dict[str, float]()
    for name, group in GROUPS.items():
        errors = [
            abs(row.error)
            for row in rows
            if group.has(row) and not math.isnan(row.error) and not constants_behind(row.case, quantity=row.quantity)
        ]
        found[name] = (max if group.worst else fmean)(errors) if errors else math.nan
    return found
