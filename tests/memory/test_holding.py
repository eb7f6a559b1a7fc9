"""Memory of a replica: what holds it, and what would fit."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simperf.errors import DeviceMemoryError
from simperf.hardware import build_machine
from simperf.memory import MemoryPool, largest_batch
from simperf.memory.holding import Holding, hold
from tests.training.strategies import CATALOG, layers, metric, run, session, star


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
    one = Holding(m.gpu(0).memory, {"weights": 10e9}, samples=1)
    hold([one])
    with pytest.raises(DeviceMemoryError, match=r"weights 10\.00 GB"):
        hold([one])
    assert m.gpu(0).memory.held == 10e9, "what does not fit is not held"


@pytest.mark.parametrize("exact", [True, None])
def test_devices_that_are_alike_are_told_in_one_go(exact):
    """Whether they are simulated one by one or together."""
    with pytest.raises(DeviceMemoryError) as caught:
        run(star(6), layers(activations=1e9), batch=120, exact=exact)
    (problem,) = caught.value.problems
    assert problem.message.startswith("gpu0 is out of memory: 20 samples need")
    assert problem.message.endswith("at most 16 samples fit on it; so are gpu1, gpu2, gpu3 and 2 more")
    assert (problem.key, problem.expected) == ("batch", "at most 96, or accumulate = 2")


def test_all_that_do_not_fit_are_told_together():
    """Two makes of GPU, both too small: each says what would fit on it."""
    machine = build_machine(
        {
            "node": [
                {"id": "gpu0", "gpu": "v100-sxm2-16gb"},
                {"id": "gpu1", "gpu": "a100-sxm4-40gb"},
                {"id": "hub", "kind": "switch"},
                {"id": "cpu0", "cpu": "xeon-8168"},
            ],
            "link": [{"a": end, "b": "hub", "bandwidth": "16 GB/s"} for end in ("gpu0", "gpu1", "cpu0")],
        },
        CATALOG,
    )
    with pytest.raises(DeviceMemoryError) as caught:
        run(machine, layers(activations=1e9), batch_per_gpu=64, batch=256)
    told = [(problem.message[:4], problem.key, problem.expected) for problem in caught.value.problems]
    assert told == [
        ("gpu0", "batch_per_gpu", "at most 16, or accumulate = 4"),
        ("gpu1", "batch_per_gpu", "at most 42, or accumulate = 2"),
    ]


def test_what_is_said_to_fit_fits():
    """The batch and the number of micro-batches of the message, and one sample more."""
    work = layers(activations=1e9)
    run(star(6), work, batch=96)
    run(star(6), work, batch=120, accumulate=2)
    with pytest.raises(DeviceMemoryError):
        run(star(6), work, batch=97)


@pytest.mark.parametrize("strategy", ["naive", "data-parallel"])
def test_one_process_is_not_told_to_accumulate(strategy):
    with pytest.raises(DeviceMemoryError) as caught:
        run(star(2), layers(activations=1e9), batch=64, strategy=strategy)
    assert all("accumulate" not in problem.expected for problem in caught.value.problems)


def test_a_shortage_says_what_is_needed_and_how_many_samples_would_fit():
    pool = MemoryPool("gpu0", 10e9)
    fits = Holding(pool, {"weights": 4e9, "activations": 6e9}, samples=6)
    assert fits.shortage() == ("", None)
    short = Holding(pool, {"weights": 4e9, "activations": 8e9}, samples=8, need=lambda n: 4e9 + n * 1e9)
    text, most = short.shortage()
    assert most == 6
    assert text.startswith("8 samples need 12.00 GB (weights 4.000 GB, activations 8.000 GB), but it has 10.00 GB")
    assert replace(short, need=None).shortage()[1] is None, "nobody knows how many would fit"


def test_all_that_does_not_fit_is_told_with_the_right_value_of_the_key():
    pools = [MemoryPool(f"gpu{i}", 10e9) for i in range(3)]
    one = [Holding(pool, {"weights": 12e9}, samples=4, need=lambda n: 3e9 * n) for pool in pools[:2]]
    none = Holding(pools[2], {"weights": 40e9}, samples=1, need=lambda n: 40e9 * n)
    with pytest.raises(DeviceMemoryError) as caught:
        hold([*one, none], key="program.batch", right="{} samples a GPU".format, otherwise="another model")
    told = [(problem.key, problem.expected) for problem in caught.value.problems]
    assert told == [("program.batch", "3 samples a GPU"), ("program.batch", "another model")]
    assert "so is gpu1" in caught.value.problems[0].message
    assert [pool.held for pool in pools] == [0.0, 0.0, 0.0], "none is held if one does not fit"


def test_what_fits_is_held_by_kind():
    pool = MemoryPool("gpu0", 10e9)
    hold([Holding(pool, {"weights": 4e9, "buckets": 0.0, "activations": 2e9}, samples=1)])
    assert (pool.held, pool.peak) == (6e9, 6e9)
