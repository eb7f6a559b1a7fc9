"""Memory of a replica: what holds it, and what would fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import DeviceMemoryError
from simperf.training.memory import hold, largest_batch
from tests.training.strategies import layers, metric, run, session, star


@given(st.floats(0, 1e9), st.floats(1, 1e6), st.floats(1, 1e10))
def test_bisection_finds_the_largest(fixed, each, capacity):
    found = largest_batch(lambda samples: fixed + each * samples, capacity, most=1 << 20)
    assert found == 0 or fixed + each * found <= capacity
    assert found >= 1 << 19 or fixed + each * (found + 1) > capacity


def test_out_of_memory_says_what_holds_it_and_what_would_fit():
    work = layers(nbytes=1e9, states=2.0, activations=50e6)
    with pytest.raises(
        DeviceMemoryError, match=r"gpu0 is out of memory: 512 samples need 30.60 GB .*activations"
    ) as no:
        run(star(2), work, batch=1024)
    fits = int(str(no.value).split("at most ")[1].split()[0])
    run(star(2), work, batch=2 * fits)
    with pytest.raises(DeviceMemoryError):
        run(star(2), work, batch=2 * fits + 2)


def test_a_model_that_does_not_fit_at_all():
    with pytest.raises(DeviceMemoryError, match=r"not even one sample fits, it needs 40\.00 GB"):
        run(star(1), layers(nbytes=20e9))


def test_buckets_hold_a_copy_of_the_gradients():
    one, two = (run(star(2), layers(nbytes=1e9), n=n) for n in (1, 2))
    held = [m.gpu(0).memory.held for m in (one, two)]
    assert held[1] - held[0] == 1e9
    assert metric(two, "memory: buckets") == metric(two, "memory: weights") == 1e9


def test_what_is_held_already_counts():
    m = session(star(1))
    device = m.gpu(0)
    hold(device, {"weights": 10e9}, samples=1)
    with pytest.raises(DeviceMemoryError, match=r"weights 10\.00 GB"):
        hold(device, {"weights": 10e9}, samples=1)
