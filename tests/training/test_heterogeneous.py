"""The split with which devices of different speed finish together."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simperf.errors import InputError
from simperf.hardware import build_machine
from simperf.training.data.heterogeneous import even_split, proportional_split
from simperf.training.replica import Traced
from simperf.workload.zoo import load
from tests.training.strategies import CATALOG, layers, metric, run, star


def test_shares_are_proportional_to_speed():
    m = run(star(3), layers(nbytes=1.0), batch=700, split="proportional", speeds=(4.0, 2.0, 1.0))
    assert "400, 200, 100" in m.notes[0]
    assert metric(m, "time per step") == pytest.approx(700 * 5e-3 / 7, rel=1e-4)


def test_an_even_split_waits_for_the_slowest():
    even = run(star(2), layers(nbytes=1.0), batch=300, speeds=(2.0, 1.0))
    right = run(star(2), layers(nbytes=1.0), batch=300, split="proportional", speeds=(2.0, 1.0))
    assert metric(even, "time per step") == pytest.approx(150 * 5e-3, rel=1e-4)
    assert metric(right, "time per step") == pytest.approx(100 * 5e-3, rel=1e-4)


def test_a_gpu_and_a_cpu():
    m = run(star(1), layers(nbytes=1.0), nodes=("gpu0", "cpu0"), batch=110, split="proportional", speeds=(1.0, 0.1))
    assert "100, 10" in m.notes[0]


def test_a_device_that_is_too_slow_is_named():
    with pytest.raises(InputError, match="gpu1 is so slow"):
        run(star(2), layers(fixed=1.0), batch=4, split="proportional", speeds=(1.0, 0.001))


devices = st.lists(st.tuples(st.floats(0, 3), st.floats(0.1, 5)), min_size=1, max_size=3)


@settings(max_examples=60)
@given(devices, st.integers(1, 12))
def test_no_other_split_ends_earlier(rates, batch):
    times = [lambda b, fixed=fixed, each=each: (fixed + each * b) if b else 0.0 for fixed, each in rates]
    found = proportional_split(batch, times)
    assert sum(found) == batch

    def end(shares):
        return max(time(share) for time, share in zip(times, shares, strict=True))

    splits = (split for split in product(range(batch + 1), repeat=len(rates)) if sum(split) == batch)
    assert end(found) == pytest.approx(min(map(end, splits)), rel=1e-9)


@pytest.mark.parametrize(("batch", "ranks"), [(3, 4), (0, 1), (5, 0)])
def test_fewer_samples_than_devices_are_refused(batch, ranks):
    with pytest.raises(InputError, match="batch"):
        even_split(batch, ranks)


def test_two_kinds_of_gpu_finish_a_real_model_together():
    machine = build_machine(
        {
            "node": [
                {"id": "gpu0", "gpu": "v100-pcie-16gb"},
                {"id": "gpu1", "gpu": "k80"},
                {"id": "hub", "kind": "switch"},
                {"id": "cpu0", "cpu": "xeon-8168"},
            ],
            "link": [{"a": end, "b": "hub", "bandwidth": "100 GB/s", "latency": "0 s"} for end in ("gpu{0,1}", "cpu0")],
        },
        CATALOG,
    )
    even, right = (run(machine, Traced(load("resnet50")), batch=64, split=split) for split in ("even", "proportional"))
    assert metric(right, "time per step") < 0.7 * metric(even, "time per step")
    shares = [int(share) for share in right.notes[0].rpartition(": ")[2].split(", ")]
    assert shares[0] > 3 * shares[1] > 0
    assert metric(right, "device busy, min over ranks") > 0.9
