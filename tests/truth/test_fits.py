"""Fits to published tables: the goals that are met, held; those that are missed stay in docs/accuracy.md."""

import math

import pytest

from simperf.calibrate.ledger_copies import copy_rows
from simperf.calibrate.ledger_kernels import kernel_rows
from simperf.calibrate.ledger_left_out import left_out_rows
from simperf.calibrate.ledger_nccl import case_table, nccl_rows, table_rows
from simperf.report.fits import fits_markdown, fits_text

pytest.importorskip("lmfit")
pytestmark = pytest.mark.truth


@pytest.fixture(scope="module")
def large(truth):
    return {row.name: row for row in table_rows(truth)}


def test_nvswitch_tables_of_two_to_four_ranks(large):
    """In-sample 1.3 % or less, with one set of constants for all three tables."""
    for n in (2, 3, 4):
        row = large[f"A100, {n} ranks"]
        assert row.inside <= 0.013
        assert row.inside < row.plain


def test_nvswitch_tables_of_five_and_six_ranks_are_predicted(large):
    """From two to four ranks: 2.5 % or less, where a ring of two constants is off by 9 % and more."""
    for n in (5, 6):
        row = large[f"A100, {n} ranks"]
        assert row.predicted == 1024
        assert row.outside <= 0.025
        assert row.plain > 0.08


def test_h100_from_two_mib_up(large):
    for n in (2, 4):
        assert large[f"DGX H100, {n} ranks, from 2 MiB"].inside <= 0.03


def test_below_two_mib_is_told(large):
    for n in (2, 4):
        assert "bimodal" in large[f"DGX H100, {n} ranks, below 2 MiB"].note


def held(rows):
    """Share of the points that were not fitted in their 90 % intervals, and the rows that hold less than 0.7 of theirs.

    What a GPU has in all tables together is not counted again.
    """
    away = [row for row in rows if row.predicted and not row.name.startswith("all of ")]
    share = sum(row.coverage * row.predicted for row in away) / sum(row.predicted for row in away)
    return share, {row.name for row in away if row.coverage < 0.7}


@pytest.fixture(scope="module")
def few(cases):
    return [cases[name] for name in sorted(cases) if name.startswith("nccl-v100") or name.startswith("nccl1")]


def test_cases_are_fitted_on_half_of_their_sizes(few):
    rows = list(nccl_rows(few))
    fitted = [row for row in rows if row.predicted]
    assert len(fitted) >= 8
    points = sum(row.predicted for row in fitted)
    assert sum(row.outside * row.predicted for row in fitted) / points < 0.15
    assert all(row.note for row in rows if not row.predicted)


def test_intervals_of_halves_of_collectives(cases):
    """Of all tables: 85 to 95 % of the readings, and one row of sixty-eight in which they hold fewer than 0.7."""
    share, few = held(nccl_rows(list(cases.values())))
    assert 0.85 <= share <= 0.95
    assert len(few) <= 2


def test_bus_bandwidth_becomes_time(cases):
    rows = case_table(cases["nccl-azure-nd-H100_v5"])[""]
    assert all(0 < time < 1 and size > 0 for size, time in rows)


def test_copies(cases):
    rows = {row.name: row for row in copy_rows(list(cases.values()))}
    assert rows["xfer-v100pcie-h2d-shmoo"].outside < 0.05
    assert rows["xfer-ib-loopback-200g"].outside < 0.05
    assert "a message every 0.3" in rows["xfer-ib-loopback-200g"].note
    assert math.isnan(rows["xfer-a100-pcie4"].outside)
    share, few = held(rows.values())
    assert 0.85 <= share <= 0.95
    assert not few


@pytest.fixture(scope="module")
def kernels(cases):
    rows = list(kernel_rows([case for name, case in cases.items() if name.startswith("roof-")]))
    return {row.name: row for row in rows}


GPUS = (
    "P100-PCIE",
    "V100-PCIe-32GB",
    "T4",
    "A100-PCIE-40GB",
    "A100-PCIE-80GB",
    "A100-SXM4-80GB",
    "L4",
    "H100-SXM5-80GB",
)
#: rows of half of the shapes that miss 10 %; docs/explanation/calibration.md says why
MISSED = {"roof-azure-a100_v4, A100-SXM4-80GB", "roof-bmm-fp32-6gpus, T4", "roof-bmm-fp32-6gpus, L4"}


@pytest.mark.parametrize("gpu", GPUS)
def test_half_of_the_shapes_of_a_gpu(kernels, gpu):
    """10 % or less, for every GPU."""
    row = kernels[f"all of {gpu}"]
    assert row.outside < 0.10
    assert row.outside < row.plain


def test_half_of_the_shapes_of_every_table(kernels):
    assert {name for name, row in kernels.items() if not row.outside < 0.10} <= MISSED


def test_batches_on_boards_that_keep_their_clock(kernels):
    """One tile a library, and waves of it: 5 % or less where the best of many tiles missed by 12 to 17 %."""
    for gpu in ("P100-PCIE", "A100-PCIE-40GB", "A100-PCIE-80GB", "H100-SXM5-80GB"):
        assert kernels[f"roof-bmm-fp32-6gpus, {gpu}"].outside < 0.055


def test_rows_that_are_read_again(kernels):
    """Softmax and normalisation on four GPUs, with the constants of one library."""
    rows = [row for name, row in kernels.items() if name.startswith("roof-norm-softmax")]
    assert len(rows) == 4
    for row in rows:
        assert row.outside < 0.07
        assert row.outside < 0.6 * row.plain


def test_boards_of_little_power(kernels):
    """Batches on T4 and L4, by energy: not far above what their readings scatter by what ran before."""
    assert kernels["roof-bmm-fp32-6gpus, T4"].outside < 0.6 * kernels["roof-bmm-fp32-6gpus, T4"].plain
    assert kernels["roof-bmm-fp32-6gpus, L4"].outside < 0.22


def test_the_ledger_of_kernels_says_what_was_met(kernels):
    rows = list(kernels.values())
    assert "goals met" in fits_markdown(rows)
    assert "all of P100-PCIE" in fits_text(rows)


def test_intervals_of_halves_of_kernels(kernels):
    """85 to 95 % of the readings; two rows hold half of theirs, whose misses their fitted halves do not show."""
    share, few = held(kernels.values())
    assert 0.85 <= share <= 0.95
    assert few <= {"roof-bmm-fp32-6gpus, L4", "roof-azure-a100_v4, A100-SXM4-80GB"}
    wide = sorted(row.width for name, row in kernels.items() if not name.startswith("all of "))
    assert wide[len(wide) // 2] < 0.17


@pytest.fixture(scope="module")
def left_out(cases):
    rows = left_out_rows([case for name, case in cases.items() if name.startswith("roof-")])
    return {row.name: row for row in rows}


def test_intervals_of_a_gpu_that_was_left_out(left_out):
    """Made of what other boards are missed by: in 35 rows of eight boards one that holds fewer than 0.7 of its points.

    Elementwise kernels of a board all lie off by as much: these rows hold all of their points or none.
    """
    share, few = held(left_out.values())
    assert 0.85 <= share <= 0.95
    assert few <= {"softmax fp32, T4"}
    products = [row for name, row in left_out.items() if name.startswith(("bmm", "linear", "softmax", "layernorm"))]
    assert 0.85 <= held(products)[0] <= 0.95
    assert all(row.width < 0.25 for name, row in left_out.items() if name.startswith(("add", "relu", "tanh", "gelu")))


def test_boards_of_little_power_have_wide_intervals_and_others_have_not(left_out):
    """Readings of batches depend on what ran before only where the clock is held back."""
    wide = {name.partition(", ")[2]: row.width for name, row in left_out.items() if name.startswith("bmm")}
    assert min(wide[gpu] for gpu in ("T4", "L4", "H100-SXM5-80GB")) > 0.4
    assert max(wide[gpu] for gpu in ("P100-PCIE", "A100-PCIE-40GB", "A100-PCIE-80GB")) < 0.3


def test_rows_on_a_gpu_that_was_left_out(left_out):
    """From data sheets, caches and threads among them: 25 % or less."""
    rows = [row for name, row in left_out.items() if name.startswith(("softmax", "layernorm"))]
    assert len(rows) == 8
    assert max(row.outside for row in rows) < 0.25
    assert sum(row.outside for row in rows) / len(rows) < 0.15


def test_elementwise_kernels_of_a_gpu_that_was_left_out(left_out):
    rows = [row for name, row in left_out.items() if name.startswith(("add", "relu", "tanh", "gelu"))]
    assert len(rows) == 16
    assert max(row.outside for row in rows) < 0.25


def test_products_of_a_gpu_that_was_left_out(left_out):
    """By its tiles, its peaks, its power and what another Pascal does with long sums: 25 % or less, for all."""
    rows = {name: row for name, row in left_out.items() if name.startswith(("bmm", "linear"))}
    assert len(rows) == 11
    assert max(row.outside for row in rows.values()) < 0.24
    assert rows["bmm fp32, P100-PCIE"].outside < 0.10
    assert rows["linear fp32, P100-PCIE"].outside < 0.15
    assert rows["linear fp32, T4"].outside < 0.10
    assert sum(row.outside for row in rows.values()) / len(rows) < 0.13
