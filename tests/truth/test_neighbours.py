"""The scatter of a table of batched products, counted: what was put in comes out, and smooth times scatter nothing."""

from dataclasses import replace

import numpy as np
import pytest

from tests.truth.neighbours import after, floor_of, own, read, scatter

SHAPES = [(m, k, n) for m in (64, 256, 1024) for k in (64, 512) for n in (96, 384, 2048)]
BATCHES = (16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192)


def table(noise=0.0, slowed=0.0):
    """Lines of a T4 in a mixed order: smooth times, with noise, and slower after a long shape."""
    rng = np.random.default_rng(3)
    shapes = [(batch, *shape) for shape in SHAPES for batch in BATCHES]
    before, found = 0.0, []
    for index in rng.permutation(len(shapes)):
        batch, m, k, n = shapes[index]
        grid = (-(-n // 128), -(-m // 64), batch)
        waves = -(-int(np.prod(grid)) // 40)
        time = waves * (k + 8) * 1e-7 * np.exp(noise * rng.standard_normal()) * (1.0 + slowed * (before > 0.5e-3))
        before = time
        found.append(
            {
                "Device": "Tesla T4",
                "Kernel Name": "sgemm_128x64",
                "Latency": str(time * 1e3),
                **{f"Grid {axis}": str(size) for axis, size in zip("xyz", grid, strict=True)},
                **dict(zip("BMNK", map(str, (batch, m, k, n)), strict=True)),
            }
        )
    return read(found)["T4"]


def test_smooth_times_scatter_nothing():
    times, _, off = scatter(table())
    assert len(times) > 80
    assert np.abs(off).max() < 1e-9


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_noise_comes_back(noise):
    """A mean size of 0.8 standard deviations, as a normal distribution has it."""
    assert floor_of(table(noise), [1e-3, 3e-3]) == pytest.approx(0.798 * noise, rel=0.25)


def test_a_shape_by_its_own_neighbours():
    """Smooth times: exact. One reading that is twice as long: its neighbours say half of it, it spoils theirs."""
    shape = (64, 256, 512, 384)
    readings = table()
    assert own(readings, [shape, (32, *shape[1:])]) == pytest.approx([0.0, 0.0])
    odd = [replace(one, time=2.0 * one.time) if one.shape == shape else one for one in readings]
    assert own(odd, [shape]) == pytest.approx([-0.5])
    assert own(odd, [(48, *shape[1:])])[0] > 0.3


def test_shapes_at_the_end_of_their_line_have_no_neighbours():
    assert len(own(table(), [(16, 256, 512, 384), (192, 256, 512, 384), (1, 2, 3, 4)])) == 0


def test_what_ran_before_shows():
    short, long = after(table(noise=0.02, slowed=0.4), short=0.5e-3, long=0.5e-3)
    assert short > 1.05
    assert long < 1.0
    assert after(table(noise=0.02), short=0.5e-3, long=0.5e-3) == pytest.approx((1.0, 1.0), abs=0.02)


def test_other_devices_are_left_out():
    line = {"Device": "Radeon", "Kernel Name": "", "Latency": "1", **dict.fromkeys("BMNK", "1")}
    assert read([line]) == {}
