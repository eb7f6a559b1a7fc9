"""Whole tables of layers: constants of long sums come back, and what never rests shows (tests/truth/layers.py)."""

import numpy as np
import pytest

from simperf.cost.longsums import row_seconds
from simperf.workload import Gemm
from tests.truth.layers import BOARDS, Product, Waiting, fitted, lines, missed, rates, read, seconds, sustained, whole

pytest.importorskip("scipy")

P4 = BOARDS["Tesla P4"]
SHAPES = [(m, n, k) for m in (512, 2048, 8192) for n in (1024, 4096) for k in (512, 2048, 8192, 16384, 32768, 65536)]


def table(board, given, noise=0.0):
    """Layers on a board's kernel, with their waiting."""
    rng = np.random.default_rng(5)
    height, width = board.tile
    plain = [Product(1, m, n, k, board.kernel, -(-m // height) * -(-n // width), 1.0) for m, n, k in SHAPES]
    times = seconds(plain, board, given) * np.exp(noise * rng.standard_normal(len(plain)))
    return [
        Product(1, one.m, one.n, one.k, one.kernel, one.blocks, time) for one, time in zip(plain, times, strict=True)
    ]


def test_the_constants_of_long_sums_come_back():
    truth = Waiting(clock=1.4, rows=80.0, power=2.5, waves=60.0, rate=0.8)
    free = ("clock", "rows", "power", "waves", "rate")
    found = fitted(table(P4, truth, noise=0.02), P4, free=free)
    for name in free:
        assert getattr(found, name) == pytest.approx(getattr(truth, name), rel=0.15)


@pytest.mark.parametrize("gpu", ["Tesla P4", "Tesla P100-PCIE-16GB"])
def test_the_library_waits_as_the_table_is_read(gpu):
    board = BOARDS[gpu]
    products = table(board, Waiting())
    waiting = seconds(products, board, Waiting()) - seconds(products, board, Waiting(clock=np.inf))
    there = [row_seconds(Gemm(1, one.m, one.n, one.k), board.tile, board) for one in products]
    assert waiting == pytest.approx(there)
    assert row_seconds(Gemm(1, 8192, 4096, 65536), (128, 128), BOARDS["Tesla V100-PCIE-32GB"]) == 0.0


def test_only_unsplit_kernels_of_the_board_are_taken():
    products = table(P4, Waiting())
    split = Product(1, 512, 1024, 512, P4.kernel, 2 * products[0].blocks, 1.0)
    other = Product(1, 512, 1024, 512, "maxwell_sgemm_128x64_tn", products[0].blocks, 1.0)
    assert len(whole([*products, split, other], P4)) == len([one for one in products if one.time > 5e-4])


def test_long_sums_show_in_the_table():
    rows = list(lines({"Tesla P4": table(P4, Waiting())}))
    assert len(rows) == 4
    assert "1.00 | 99 |" in rows[2]
    assert missed(table(P4, Waiting()), P4, Waiting()) < 1e-9


def test_the_sum_runs_over_the_third_number():
    line = {"Device": "Tesla P4", "Kernel Name": "k", "Latency": "2", "B": "1", "M": "64", "N": "512", "K": "128"}
    one = read([line | {"Grid x": "4.0", "Grid y": "2.0", "Grid z": "1.0"}])["Tesla P4"][0]
    assert (one.m, one.n, one.k, one.blocks, one.time) == (64, 128, 512, 8, 2e-3)


def test_boards_that_never_rest_show():
    """Layers at one rate whatever they take, batches at twice that while they are short."""

    def every(short):
        found = []
        for m, n, k in SHAPES:
            blocks = -(-m // 128) * -(-n // 128)
            plain = 2.0 * -(-blocks // 40) * 40 * 128 * 128 * k / 4e12
            time = plain / (short if plain < 1e-2 else 1.0)
            found.append(Product(1, m, n, k, "volta_sgemm_128x128_tn", blocks, time + 16e-6))
        return found

    layers, batches = every(1.0), every(2.0)
    assert rates(layers, 40)[1] == pytest.approx(4e12)
    rows = list(sustained(layers, batches, 40))
    assert rows[0][0] == "mean"
    assert rows[2] == ("below 0.01 s", "4.0, 4.0, 4.0", "8.0, 8.0, 8.0")
    assert rows[4][1] == rows[4][2]
