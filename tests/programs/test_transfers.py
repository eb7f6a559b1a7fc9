"""Rows B3, C1-C5, E1, E2 (programs copies, hardware, pipeline, synchronisation): times against closed forms."""

import pytest

from simperf.errors import InputError


def test_b3_copies_hide_behind_computation(play):
    """y[i-1] is copied while y[i] is computed: all but the last copy hide, if computing takes longer."""
    options = {"size": 4000, "n": 10, "allocate": False}
    compute = play("p3-2xlarge", "copy-overlap", what="compute", **options).now
    copies = play("p3-2xlarge", "copy-overlap", what="copy", **options).now
    both = play("p3-2xlarge", "copy-overlap", what="both", **options).now
    overlapped = play("p3-2xlarge", "copy-overlap", what="overlapped", **options).now
    assert both == pytest.approx(compute + copies, rel=1e-9)
    assert overlapped == pytest.approx(compute + copies / 10, rel=1e-9)


def test_b3_a_byte_an_element_is_copied_of_int8(play):
    options = {"size": 4000, "n": 10, "allocate": False, "what": "copy"}
    byte, half = (play("desktop-1gpu", "copy-overlap", dtype=dtype, **options).now for dtype in ("int8", "fp16"))
    assert half == pytest.approx(2 * byte, rel=0.01)


def test_b3_pageable_copies_hide_less(play):
    options = {"size": 4000, "n": 10, "allocate": False, "frontend": "pytorch"}
    pinned = play("p3-2xlarge", "copy-overlap", what="overlapped", **options).now
    pageable = play("p3-2xlarge", "copy-overlap", what="overlapped", pinned=False, **options).now
    assert pageable > 1.5 * pinned, "the frontend waits for each copy and launches nothing meanwhile"


@pytest.mark.parametrize("frontend", ["pytorch", "mxnet", "cuda"])
@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_b3_a_pageable_copy_takes_as_long_as_its_staging(play, catalog, frontend, direction):
    size, link = 64e6, catalog.machine("p3-2xlarge").route("cpu0", "gpu0").bandwidth
    options = {"nbytes": size, "direction": direction, "frontend": frontend}
    times = [play("p3-2xlarge", "host-copy", pinned=pinned, **options).now for pinned in (False, True)]
    assert times[0] - times[1] == pytest.approx(size / catalog.frontend(frontend).pageable - size / link, rel=1e-6)


def test_b3_mxnets_engine_copies_behind_the_frontends_back(play):
    """Copies that take longer than products hide these, all but the first; a frontend that is blocked hides none."""
    work = {"size": 4000, "n": 10, "allocate": False, "pinned": False}
    how = ("overlapped", "compute", "copy")

    def times(frontend):
        return [play("p3-2xlarge", "copy-overlap", what=what, frontend=frontend, **work).now for what in how]

    whole, compute, copies = times("mxnet")
    slack = 12 * 100e-6  # launches, 82.1 us each
    assert copies > compute
    assert copies <= whole <= compute / 10 + copies + slack
    whole, compute, copies = times("pytorch")
    assert whole > 0.95 * (compute + copies)


def test_b3_a_frontend_without_a_rate_of_pageable_copies_refuses_them(play):
    with pytest.raises(InputError, match=r"pinned: .*has no rate of pageable copies"):
        play("p3-2xlarge", "host-copy", pinned=False)


def test_c1_a_full_turn_at_10000_rpm_and_bursts(play):
    chase = play("pcie-4gpu", "pointer-chase", working_set=1e9).metrics["latency"][0]
    assert 50e-9 < chase < 150e-9
    random = play("pcie-4gpu", "memory-reads", channels=1).metrics["bandwidth"][0]
    ordered = play("pcie-4gpu", "memory-reads", channels=1, pattern="sequential").metrics["bandwidth"][0]
    assert random < 64 / 50e-9
    assert ordered > 15 * random


def test_c2_gpus_below_a_switch_share_its_way_up(play):
    alone = play("pcie-8gpu", "host-copy", nbytes=256e6, gpus=1).metrics["bandwidth per GPU"][0]
    four = play("pcie-8gpu", "host-copy", nbytes=256e6, gpus=4).metrics["bandwidth per GPU"][0]
    assert four == pytest.approx(alone / 4, rel=1e-3)


@pytest.mark.parametrize(("workers", "starved"), [(1, True), (16, False)])
def test_c4_few_workers_starve_the_gpu(play, workers, starved):
    metrics = play("p3-8xlarge", "input-pipeline", disk="ebs0", batches=60, workers=workers).metrics
    rate = metrics["samples per second"][0]
    if starved:
        assert rate == pytest.approx(1 / (10e-3 + 110e3 / 125e6), rel=0.02), "one core decodes, after reading"
        assert metrics["waited for data"][0] > 0
    else:
        assert metrics["device busy"][0] > 0.8


def test_c4_more_workers_than_cores_do_not_help(play):
    options = {"disk": "ebs0", "batches": 64, "step": 1e-3, "stored": 1e3}
    cores = play("p3-8xlarge", "input-pipeline", workers=16, **options)
    rate = play("p3-8xlarge", "input-pipeline", workers=64, **options).metrics["samples per second"][0]
    assert rate <= cores.machine.cores(cores.host) / 10e-3 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("algorithm", "milliseconds"), [("naive", 60.0), ("central", 80.0), ("sharded", 15.0), ("ring", 15.0)]
)
def test_e1_the_books_60_80_and_15_ms(play, algorithm, milliseconds):
    assert play("book-4gpu", "all-reduce", algorithm=algorithm).now == pytest.approx(milliseconds / 1e3, rel=1e-9)


def test_e2_two_rings_found_on_the_hybrid_cube_mesh(play):
    """2 * 7/8 * 160e6 / (3 * 18e9); the book rounds to 6 ms by dropping 7/8."""
    found = play("book-8v100", "all-reduce", algorithm="multi-ring")
    assert found.now == pytest.approx(2 * 7 / 8 * 160e6 / 54e9, rel=1e-9)
    assert "2 rings" in " ".join(found.notes)


def test_e2_a_switch_that_adds_up(play):
    """Every port carries 1 + 1/n payloads, where a ring has 2 (n - 1) / n; a switch that only forwards is refused."""
    inside, ring = (play("dgx-h100", "all-reduce", algorithm=name, nbytes=1e9) for name in ("in-network", "ring"))
    assert inside.now < 0.8 * ring.now
    assert not any("cpu" in name and nbytes for name, nbytes in inside.simulation.network.moved.items())
    with pytest.raises(InputError, match="NVSwitch"):
        play("book-4gpu", "all-reduce", algorithm="in-network")


def test_gpus_that_are_not_there(play):
    with pytest.raises(InputError, match="machine has 4"):
        play("book-4gpu", "all-reduce", gpus=5)
    with pytest.raises(InputError, match="no disk 'tape0'"):
        play("desktop-1gpu", "disk-reads", disk="tape0")
