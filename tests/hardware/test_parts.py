"""Every number of the catalog has a unit and a source, and the published ones are what was published.

Covers simperf.hardware.part, parts, processors, devices, frontend and plausible.
"""

import math
from pathlib import Path

import pytest

from simperf.hardware import PART_KINDS, Catalog, check_machine
from simperf.hardware.plausible import implausible
from simperf.testing import check_part
from simperf.units import DIMENSIONS

CATALOG = Catalog.load()
PARTS = [(kind, name) for kind in PART_KINDS for name in CATALOG.names(kind)]
MACHINES = [*CATALOG.names("server"), *CATALOG.names("cluster")]
WANTED_GPUS = """
k80 p100-pcie-16gb p100-sxm2-16gb v100-pcie-16gb v100-pcie-32gb v100-sxm2-16gb v100-sxm2-32gb t4 rtx-2080-ti
rtx-3090 rtx-4090 a10 a10g a100-sxm4-40gb a100-sxm4-80gb a100-pcie-40gb a100-pcie-80gb l4 l40s h100-pcie-80gb
a800-sxm4-80gb h100-sxm5-80gb h200-sxm-141gb b200-sxm-180gb b300-sxm-270gb h800-sxm5-80gb gb200 gb300 mi250x mi300x
""".split()  # noqa: SIM905
WANTED_SERVERS = """
desktop-1gpu desktop-2gpu pcie-4gpu pcie-8gpu p2-xlarge p2-8xlarge p2-16xlarge dgx-1v dgx-1p dgx-2 dgx-a100
dgx-h100 g4dn-xlarge g4dn-12xlarge p3-2xlarge p3-8xlarge p3-16xlarge p3dn-24xlarge p4d-24xlarge p5-48xlarge
a100-80gb-8gpu-4roce book-4gpu book-8v100 h800-8gpu gb200-nvl72 dgx-h200 dgx-b200 dgx-b300 gb300-nvl72
gb200-nvl72-64gpu gb300-nvl72-64gpu
""".split()  # noqa: SIM905


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_every_number_has_a_unit_and_a_source(kind, name):
    part = CATALOG.part(kind, name)
    numbers = part.numbers()
    assert numbers
    assert part.title
    for field, (value, unit) in numbers.items():
        assert unit in DIMENSIONS, field
        assert math.isfinite(value), field
        assert len(part.source(field)) > 3, field
    assert implausible(part) == []


@pytest.mark.parametrize(("kind", "name"), PARTS[::9])
def test_built_in_parts_pass_the_public_check(kind, name):
    check_part(CATALOG.path(kind, name))


def test_a_built_in_part_may_be_named_from_where_one_is(monkeypatch):
    path = Path(CATALOG.path("gpu", "l4"))
    monkeypatch.chdir(path.parents[1])
    check_part("gpu/l4.toml")


def test_everything_asked_for_is_there():
    assert set(WANTED_GPUS) <= set(CATALOG.names("gpu"))
    assert set(WANTED_SERVERS) <= set(CATALOG.names("server"))
    links = CATALOG.names("link")
    assert {f"pcie{g}-x{n}" for g in (3, 4, 5, 6) for n in (1, 4, 8, 16)} <= set(links)
    assert {f"ethernet-{rate}g" for rate in (1, 10, 25, 40, 50, 100, 200, 400)} <= set(links)
    assert {f"nvlink{g}" for g in range(1, 6)} | {"infiniband-hdr", "infiniband-ndr", "qpi", "upi", "wan-fibre"} <= set(
        links
    )


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_can_exist(name):
    check_machine(CATALOG.machine(name))


@pytest.mark.parametrize(
    "name", [n for n in CATALOG.names("server") if n.split("-")[0] in ("p2", "p3", "p3dn", "p4d", "p5", "g4dn")]
)
def test_cloud_instances_have_a_dated_price(name):
    price = CATALOG.file("server", name).data["price"]
    assert price["date"][:3] == "201" or price["date"][:3] == "202"
    assert price["source"]
    assert CATALOG.machine(name).price > 0


@pytest.mark.parametrize(
    ("name", "fp32", "fp16", "bandwidth", "capacity"),
    [  # vendors' datasheets: TFLOP/s, TFLOP/s dense, GB/s, GiB (15 of 16 where ECC takes its part)
        ("v100-sxm2-16gb", 15.7, 125, 900, 16),
        ("v100-pcie-32gb", 14, 112, 900, 32),
        ("p100-sxm2-16gb", 10.6, 21.2, 732, 16),
        ("t4", 8.1, 65, 320, 15),
        ("a100-sxm4-40gb", 19.5, 312, 1555, 40),
        ("a100-sxm4-80gb", 19.5, 312, 2039, 80),
        ("a800-sxm4-80gb", 19.5, 312, 2039, 80),
        ("l4", 30.3, 121, 300, 22.5),
        ("l40s", 91.6, 362, 864, 45),
        ("rtx-a6000", 38.7, 154.8, 768, 48),
        ("rtx-6000-ada", 91.1, 364, 960, 48),
        ("h100-sxm5-80gb", 66.9, 989, 3350, 80),
        ("h100-pcie-80gb", 51.2, 756, 2039, 80),
        ("h200-sxm-141gb", 66.9, 989, 4800, 141),
        ("b200-sxm-180gb", 75, 2250, 8000, 180),
        ("h800-sxm5-80gb", 66.9, 989, 3350, 80),
        ("mi300x", 163.4, 1307.4, 5300, 192),
    ],
)
def test_published_gpus(name, fp32, fp16, bandwidth, capacity):
    gpu = CATALOG.gpu(name)
    assert gpu.peak["fp32"] == pytest.approx(fp32 * 1e12, rel=0.01)
    assert gpu.peak["fp16"] == pytest.approx(fp16 * 1e12, rel=0.01)
    assert gpu.memory_bandwidth == pytest.approx(bandwidth * 1e9, rel=0.01)
    assert gpu.memory_capacity == capacity * 2**30


@pytest.mark.parametrize(
    ("name", "nvlink", "rack"),  # GB/s each way of a GPU, and GPUs that NVLink joins: NVIDIA's datasheets
    [("h800-8gpu", 200, 8), ("dgx-h100", 450, 8), ("gb200-nvl72", 900, 72)],
)
def test_domains_of_nvlink(name, nvlink, rack):
    machine = CATALOG.machine(name)
    assert len(machine.gpus) == rack
    for gpu in machine.gpus:
        own = [edge for edge in machine.edges.values() if edge.src == gpu and edge.technology == "nvlink"]
        assert sum(edge.count * CATALOG.link(edge.part).raw for edge in own) == nvlink * 1e9
    assert all(edge.technology == "nvlink" for edge in machine.route(machine.gpus[0], machine.gpus[-1]).edges)


def test_a_grace_has_900_gigabytes_a_second_with_its_two_gpus():
    machine = CATALOG.machine("gb200-nvl72")
    part = CATALOG.link("nvlink-c2c")
    own = [edge for edge in machine.edges.values() if "cpu0" in (edge.src, edge.dst) and edge.part == part.name]
    assert sum(part.raw for _ in own) == 900e9  # both directions of two links


@pytest.mark.parametrize(
    ("name", "cores", "clock"),  # CUDA cores and boost clock [GHz] from the product pages: 2 FLOP a core and clock
    [
        ("v100-sxm2-16gb", 5120, 1.53),
        ("a100-sxm4-40gb", 6912, 1.41),
        ("rtx-4090", 16384, 2.52),
        ("t4", 2560, 1.59),
        ("rtx-2080-ti", 4352, 1.545),
        ("l40s", 18176, 2.52),
        ("rtx-a6000", 10752, 1.8),
        ("rtx-6000-ada", 18176, 2.505),
        ("k80", 2496, 0.824),
        ("rtx-3090", 10496, 1.695),
    ],
)
def test_fp32_peak_is_cores_times_clock(name, cores, clock):
    assert CATALOG.gpu(name).peak["fp32"] == pytest.approx(2 * cores * clock * 1e9, rel=0.01)


@pytest.mark.parametrize(
    ("name", "raw", "low", "high"),
    [  # raw GB/s a direction; payload that has been measured, GB/s
        ("pcie3-x16", 16.0, 12.0, 13.5),
        ("pcie4-x16", 32.0, 24.0, 26.5),
        ("pcie5-x16", 64.0, 49.0, 53.0),
        ("pcie6-x16", 128.0, 90.0, 115.0),
        ("nvlink1", 20.0, 18.0, 18.0),
        ("nvlink2", 25.0, 20.0, 20.0),
        ("nvlink4", 25.0, 20.6, 20.6),
        ("nvlink5", 50.0, 40.1, 40.1),
        ("ethernet-10g", 1.25, 1.17, 1.18),  # iperf3 shows 9.41 Gbit/s
        ("ethernet-100g-jumbo", 12.5, 12.3, 12.4),
        ("infiniband-hdr", 25.0, 23.8, 24.0),
        ("book-pcie3-x16", 16.0, 16.0, 16.0),
    ],
)
def test_links_carry_what_has_been_measured(name, raw, low, high):
    link = CATALOG.link(name)
    assert link.raw == pytest.approx(raw * 1e9)
    assert low * 1e9 * 0.999 <= link.bandwidth <= high * 1e9 * 1.001


def test_tcp_over_ethernet_is_the_known_941_of_1000():
    link = CATALOG.link("ethernet-1g")
    assert link.bandwidth * 8 == pytest.approx(1448 / 1538 * 1e9)


def test_10000_rpm_waits_6_ms_at_worst():
    disk = CATALOG.storage("hdd-10000rpm")
    assert 1 / disk.rotation == pytest.approx(6e-3)
    assert 1 / (disk.seek + 0.5 / disk.rotation) == pytest.approx(disk.read_iops, rel=0.02)


@pytest.mark.parametrize("name", CATALOG.names("storage"))
def test_writes_are_not_faster(name):
    part = CATALOG.storage(name)
    assert part.write_bandwidth <= part.read_bandwidth
    assert part.write_iops <= part.read_iops


def test_memory_of_a_socket_is_its_channels():
    cpu = CATALOG.cpu("epyc-7742")
    assert cpu.memory_bandwidth == pytest.approx(204.8e9)
    assert cpu.memory_latency == pytest.approx(100e-9)
    assert [cache.level for cache in cpu.caches] == ["L1", "L2", "L3"]


def test_what_the_architecture_gives_and_the_part_overrides():
    ada = CATALOG.part("architecture", "ada")
    l4 = CATALOG.gpu("l4")
    assert l4.kernel_floor == ada.kernel_floor
    assert l4.source("kernel_floor") == ada.source("kernel_floor")
    assert l4.efficiency["gemm-fp32"] != ada.efficiency["gemm"]
    assert l4.source("efficiency.copy") != ""
