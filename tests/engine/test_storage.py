"""Disks and memory channels: access time, then bytes."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import simpy

from simperf.engine.storage import Disk, Dram
from simperf.hardware import Catalog

CATALOG = Catalog.load()


def disk(env, **changes):
    part = {"read_bandwidth": 200e6, "write_bandwidth": 100e6, "read_latency": 0.0, "write_latency": 0.0}
    part |= {"read_iops": 100.0, "write_iops": 100.0, "block": 4096.0, "seek": 4e-3, "rotation": 10_000 / 60}
    return Disk(env, "disk0", SimpleNamespace(**{**part, **changes}), rng=np.random.default_rng(0), worst=True)


def test_a_disk_of_10000_rpm_takes_6_ms_at_worst_to_turn():
    env = simpy.Environment()
    env.run(disk(env, seek=0.0, block=0.0, read_bandwidth=1e12).read(1.0))
    assert env.now == pytest.approx(6e-3, rel=1e-6)


def test_one_head_serves_one_request_at_a_time_and_order_saves_the_seek():
    env = simpy.Environment()
    drive = disk(env)
    env.run(env.all_of([drive.read(4096) for _ in range(5)]))
    assert env.now == pytest.approx(5 * (4e-3 + 6e-3 + 4096 / 200e6))
    before = env.now
    env.run(drive.read(200e6, sequential=True))
    assert env.now - before == pytest.approx(1.0)


FLASH = [
    (name, direction)
    for name in CATALOG.names("storage")
    if not CATALOG.part("storage", name).seek
    for direction in ("read", "write")
]


def served(name, direction, *, depth, requests):
    """Time in which a drive of the catalogue serves so many random requests of one block, so many under way [s]."""
    env, part = simpy.Environment(), CATALOG.part("storage", name)
    drive = Disk(env, name, part, rng=np.random.default_rng(0))

    def queue(count):
        for _ in range(count):
            yield getattr(drive, direction)(part.block)

    env.run(env.all_of([env.process(queue(requests // depth)) for _ in range(depth)]))
    return env.now


@pytest.mark.parametrize(("name", "direction"), FLASH)
def test_flash_reaches_its_iops_at_depth_and_its_latency_without(name, direction):
    part = CATALOG.part("storage", name)
    latency, iops = getattr(part, f"{direction}_latency"), getattr(part, f"{direction}_iops")
    assert served(name, direction, depth=1, requests=20) == pytest.approx(20 * latency, rel=1e-9)
    enough = math.ceil(latency * iops)  # requests that are under way at full rate
    for depth, count in ((2 * enough, 60), (8 * enough, 20)):
        time = served(name, direction, depth=depth, requests=depth * count)
        assert depth * count / time == pytest.approx(iops, rel=0.02)
    half = max(1, enough // 2)
    time = served(name, direction, depth=half, requests=half * 60)
    assert half * 60 / time == pytest.approx(half / latency, rel=0.02)


def test_large_random_requests_are_bound_by_the_bandwidth():
    part = CATALOG.part("storage", "nvme-ssd")
    env = simpy.Environment()
    drive = Disk(env, "disk0", part, rng=np.random.default_rng(0))
    env.run(env.all_of([drive.read(1 << 20) for _ in range(1000)]))
    assert env.now == pytest.approx(1000 * (1 << 20) / part.read_bandwidth, rel=1e-3)


def test_flash_reads_and_writes_at_once():
    env = simpy.Environment()
    drive = disk(env, seek=0.0, rotation=0.0, block=0.0)
    env.run(drive.read(200e6) & drive.write(100e6))
    assert env.now == pytest.approx(1.0)


def test_whole_blocks_move_and_writes_are_slower():
    env = simpy.Environment()
    drive = disk(env, seek=0.0, rotation=0.0, block=262_144.0)
    env.run(drive.read(1.0))
    assert env.now == pytest.approx(262_144 / 200e6)
    before = env.now
    env.run(drive.write(1.0))
    assert env.now - before == pytest.approx(262_144 / 100e6)


def test_bursts_beat_random_reads_by_the_first_access():
    part = SimpleNamespace(bandwidth=20e9, first_access=100e-9, burst=64.0)
    env = simpy.Environment()
    dram = Dram(env, part, channels=2)
    env.run(env.all_of([dram.read(64, i) for i in range(200)]))
    assert env.now == pytest.approx(100 * (100e-9 + 64 / 20e9))
    env = simpy.Environment()
    dram = Dram(env, part, channels=2)
    env.run(env.all_of([dram.read(6400, i) for i in range(2)]))
    assert env.now == pytest.approx(100e-9 + 6400 / 20e9)
