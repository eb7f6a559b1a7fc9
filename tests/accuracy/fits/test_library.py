"""What GPUs share: tiles of a library, known by name or chosen together."""

import numpy as np
import pytest

from simperf.accuracy.fits import library as module
from simperf.accuracy.fits.library import Library, OperationTable, known_cut
from simperf.calibrate.fit import Data
from simperf.calibrate.fit.products import CUTS, Cut, product_columns, product_models
from simperf.cost import FittedRoofline
from simperf.hardware import Catalog
from simperf.workload.kinds import bmm, linear, matmul

pytest.importorskip("scipy")

CATALOG = Catalog.load()
SHAPES = (
    (512, 768, 768),
    (4096, 768, 768),
    (1024, 1280, 3840),
    (768, 768, 16384),
    (1600, 4800, 4096),
    (512, 50272, 1600),
)
SHAPES += ((10240, 2560, 4096), (1536, 4608, 8192), (2048, 6144, 1024), (6144, 1536, 640))


def task(part, constants, seed):
    """Products in half precision, played with `constants` and 1 % of noise."""
    ops = [matmul(m, n, k=k, dtype="fp16") for m, n, k in SHAPES]
    model = FittedRoofline(part, {"gemm": constants})
    noise = np.exp(0.01 * np.random.default_rng(seed).standard_normal(len(ops)))
    times = np.array([model.cost(op).time for op in ops]) * noise
    columns = {
        "flops": np.array([op.flops for op in ops]),
        "nbytes": np.array([op.nbytes for op in ops]),
        **product_columns([op.gemm for op in ops], part, dtype="fp16"),
    }
    rows = [("", op, time) for op, time in zip(ops, times, strict=True)]
    data = Data.table(times, **columns)
    return OperationTable({"id": f"case {seed}", "source": {}}, "gpu", part, "product", rows, data, data, 5e-6)


def test_tiles_are_chosen_for_an_architecture(monkeypatch):
    """Two GPUs of it: both get the tile that together they hold up."""

    def few(*args, **given):
        return [
            one for one in product_models(*args, **given) if "sharpness" not in one.fixed and "deep_at" not in one.fixed
        ]

    monkeypatch.setattr(module, "product_models", few)
    cut = Cut(128, 64, only=True)
    parts = [CATALOG.gpu("a100-pcie-40gb"), CATALOG.gpu("a100-pcie-80gb")]
    tasks = [task(part, {"rate": 200e12, "overhead": 5e-6, **cut.constants}, i) for i, part in enumerate(parts)]
    library = Library(tasks)
    assert set(library.cuts.values()) == {cut}
    for one in tasks:
        found = library.fit(one)
        assert Cut.of(found.model.fixed) == cut
        assert found.values["rate"] == pytest.approx(200e12, rel=0.05)


def test_tiles_that_are_known_by_name():
    p100, a100, h100 = (CATALOG.gpu(name) for name in ("p100-pcie-16gb", "a100-pcie-40gb", "h100-sxm5-80gb"))
    assert known_cut(bmm(12, 64, n=64, k=64), p100) == Cut(64, 128, only=True)
    assert known_cut(linear(64, 64, fan_out=64), p100) == Cut(128, 32, only=True)
    assert known_cut(linear(64, 64, fan_out=64), a100) is None
    assert known_cut(bmm(12, 64, n=64, k=64, dtype="fp16"), a100) is None
    assert known_cut(bmm(12, 64, n=64, k=64), h100) is None


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_is_read_back_from_a_profile(cut):
    assert Cut.of(cut.constants) == cut
