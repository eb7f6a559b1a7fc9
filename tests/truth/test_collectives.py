"""NCCL tables measured by others against what the catalogue and the tuner's constants say; nothing is fitted."""

from statistics import median

import pytest

from simperf.study import nccl_truth
from simperf.study.nccl_cases import KINDS

#: many ranks: these take some seconds each, and the page about accuracy has them
LARGE = ("nccl-a100-polaris-540n-env5", "nccl-gh200-alps-256n", "nccl-gh200-alps-128n")


@pytest.fixture(scope="module")
def ends(cases):
    """Both ends of every series, by case."""
    found = {}
    for name in nccl_truth.cases_known():
        if name not in LARGE:
            points = list(nccl_truth.points(cases[name], most=7))
            for series in dict.fromkeys(point.series for point in points):
                found[name, series] = nccl_truth.ends([point for point in points if point.series == series])
    return found


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
def test_bandwidth_end(ends):
    errors = [abs(large) for large, _ in ends.values() if large is not None]
    assert len(errors) > 80
    assert median(errors) < 0.11


@pytest.mark.truth
def test_latency_end(ends):
    factors = [max(small, 1 / small) for _, small in ends.values() if small is not None]
    assert len(factors) > 50
    assert median(factors) < 1.25


@pytest.mark.truth
@pytest.mark.parametrize(
    ("case", "limit"),
    [
        ("nccl-a100x8-allreduce-superbench", 0.10),
        ("nccl-v100sxm3x12-allreduce-dgx2", 0.10),
        ("nccl-h100x8-snellius-2node-allreduce", 0.10),
        ("nccl-h100-xx-10node-g1-allreduce", 0.05),
        ("nccl-h100-xx-10node-g4-allreduce", 0.10),
        ("nccl-h100x16-p5-2node-adt", 0.15),
        ("nccl-4090x8-nop2p", 0.10),
        ("nccl-2080tix2-pcie-allreduce", 0.10),
        ("nccl-a100x8-broadcast-superbench", 0.10),
    ],
)
def test_boxes_and_rails_at_large_sizes(ends, case, limit):
    assert abs(ends[case, ""][0]) < limit


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
