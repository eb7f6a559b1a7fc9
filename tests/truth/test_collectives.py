"""NCCL tables measured by others against what the catalogue and the tuner's constants say; nothing is fitted.

The present errors of all rows are the ratchet's (tests/truth/ratchet.py).
"""

from statistics import median

import pytest

from simperf.study import nccl_truth
from simperf.study.nccl_cases import KINDS


@pytest.mark.truth
def test_every_measured_collective_is_set_up_or_left_out_with_a_reason(cases):
    told = {**nccl_truth.cases_known(), **nccl_truth.cases_left_out()}
    asked = {
        name
        for name, case in cases.items()
        if case["evidence"] == "measured" and (case["kind"] in KINDS or name.startswith("nccl"))
    }
    assert asked - set(told) == set()
    assert set(told) - set(cases) == set(), "set-ups of cases that are not there"


@pytest.mark.truth
def test_rails_add_up(cases):
    """One, four and eight cards a server of ten servers: busbw grows with them, as measured."""
    found = {}
    for each in (1, 4):
        points = list(nccl_truth.points(cases[f"nccl-h100-xx-10node-g{each}-allreduce"], most=3))
        found[each] = points[-1]
    ratio = {what: getattr(found[1], what) / getattr(found[4], what) for what in ("measured", "predicted")}
    assert ratio["predicted"] == pytest.approx(ratio["measured"], rel=0.15)


@pytest.mark.truth
def test_a_ring_with_two_fitted_constants(truth):
    """One latency and one bandwidth do for sizes over three decades, but not to a few percent everywhere."""
    found = {title: nccl_truth.fit(n, rows) for title, n, rows in nccl_truth.tables(truth)}
    a100 = [fit for title, fit in found.items() if title.startswith("A100")]
    assert len(a100) == 5
    assert all(median(map(abs, fit.errors)) < 0.10 for fit in a100)
    assert all(100e9 < fit.bandwidth < 300e9 for fit in a100)
