"""Fits to published tables: the goals that are met, held; those that are missed stay in docs/accuracy.md."""

import math

import pytest

from simperf.calibrate.ledger_copies import copy_rows
from simperf.calibrate.ledger_kernels import kernel_rows, left_out_rows
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


@pytest.fixture(scope="module")
def few(cases):
    return [cases[name] for name in sorted(cases) if name.startswith("nccl-v100") or name.startswith("nccl1")]


def test_cases_are_fitted_on_half_of_their_sizes(few):
    rows = list(nccl_rows(few))
    fitted = [row for row in rows if row.predicted]
    assert len(fitted) >= 8
    points = sum(row.predicted for row in fitted)
    assert sum(row.outside * row.predicted for row in fitted) / points < 0.15
    assert sum(row.coverage * row.predicted for row in fitted) / points > 0.7
    assert all(row.note for row in rows if not row.predicted)


def test_bus_bandwidth_becomes_time(cases):
    rows = case_table(cases["nccl-azure-nd-H100_v5"])[""]
    assert all(0 < time < 1 and size > 0 for size, time in rows)


def test_copies(cases):
    rows = {row.name: row for row in copy_rows(list(cases.values()))}
    assert rows["xfer-v100pcie-h2d-shmoo"].outside < 0.05
    assert rows["xfer-ib-loopback-200g"].outside < 0.05
    assert "a message every 0.3" in rows["xfer-ib-loopback-200g"].note
    assert math.isnan(rows["xfer-a100-pcie4"].outside)


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


def test_rows_on_a_gpu_that_was_left_out(cases):
    """From data sheets, caches and threads among them: 25 % or less."""
    chosen = [case for name, case in cases.items() if name.startswith("roof-norm")]
    rows = list(left_out_rows(chosen))
    assert len(rows) == 8
    assert max(row.outside for row in rows) < 0.25
    assert sum(row.outside for row in rows) / len(rows) < 0.15


def test_elementwise_kernels_of_a_gpu_that_was_left_out(cases):
    chosen = [case for name, case in cases.items() if name.startswith("roof-elementwise")]
    rows = list(left_out_rows(chosen))
    assert len(rows) == 16
    assert max(row.outside for row in rows) < 0.25


def test_products_of_a_gpu_that_was_left_out(cases):
    """By its tiles, its peaks, its power and what another Pascal does with long sums: 25 % or less, for all."""
    chosen = [case for name, case in cases.items() if name.startswith(("roof-bmm", "roof-linear"))]
    rows = {row.name: row for row in left_out_rows(chosen)}
    assert len(rows) == 11
    assert max(row.outside for row in rows.values()) < 0.24
    assert rows["bmm fp32, P100-PCIE"].outside < 0.10
    assert rows["linear fp32, P100-PCIE"].outside < 0.15
    assert rows["linear fp32, T4"].outside < 0.10
    assert sum(row.outside for row in rows.values()) / len(rows) < 0.13
