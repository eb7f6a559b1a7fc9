"""Half of the shapes of a GPU: intervals know what other tables of the same sort of kernel scatter by."""

import numpy as np
import pytest

from simperf.accuracy.fits import kernels as module
from simperf.accuracy.fits.kernels import kernel_rows
from simperf.hardware import Catalog
from simperf.workload.kinds import unary

pytest.importorskip("scipy")

CATALOG = Catalog.load()
NAMES = {"P100-PCIE": "p100-pcie-16gb", "V100-PCIe-32GB": "v100-pcie-32gb", "A100-PCIE-40GB": "a100-pcie-40gb"}
CASE = {"id": "roof-elementwise-x", "source": {"repo": "nobody/nothing"}}


def tables(rng, *, scatter, lucky=""):
    """Two operations on three GPUs, sixteen sizes each; the fitted half of one GPU's lies near a line by chance."""
    for gpu, name in NAMES.items():
        part, rows = CATALOG.gpu(name), []
        for kind in ("relu", "tanh"):
            for number in range(16):
                op = unary(kind, int(3e6 * 1.4**number))
                off = rng.standard_normal() * (0.3 if gpu == lucky and number % 2 == 0 else 1.0)
                time = op.nbytes / (0.8 * part.memory_bandwidth) * np.exp(scatter * off)
                rows.append(("", op, time + part.kernel_floor))
        yield CASE, gpu, rows


def rows_of(monkeypatch, *, seed=0, **given):
    monkeypatch.setattr(module, "kernel_cases", lambda cases: tables(np.random.default_rng(seed), **given))
    return {row.name: row for row in kernel_rows([])}


def test_rows_of_every_table_and_of_every_gpu(monkeypatch):
    rows = rows_of(monkeypatch, scatter=0.01)
    assert len(rows) == 6
    for gpu in NAMES:
        row = rows[f"all of {gpu}"]
        assert (row.points, row.predicted) == (16, 16)
        assert row.outside < 0.03


def test_a_half_that_lies_near_a_line_by_chance_is_not_believed(monkeypatch):
    gpu = "V100-PCIe-32GB"
    together = [rows_of(monkeypatch, seed=seed, scatter=0.05, lucky=gpu)[f"all of {gpu}"] for seed in range(3)]
    assert np.mean([row.inside for row in together]) < 0.5 * np.mean([row.outside for row in together])
    monkeypatch.setattr(module, "with_pooled_scatter", lambda fits: fits)
    alone = [rows_of(monkeypatch, seed=seed, scatter=0.05, lucky=gpu)[f"all of {gpu}"] for seed in range(3)]
    assert [row.outside for row in together] == [row.outside for row in alone]
    assert np.mean([row.coverage for row in alone]) < 0.5
    assert np.mean([row.coverage for row in together]) > np.mean([row.coverage for row in alone]) + 0.1


def test_nine_of_ten_points_that_were_not_fitted_are_held(monkeypatch):
    held = []
    for seed in range(5):
        rows = rows_of(monkeypatch, seed=seed, scatter=0.05)
        held += [rows[f"all of {gpu}"].coverage for gpu in NAMES]
    assert 0.85 < np.mean(held) < 0.95
