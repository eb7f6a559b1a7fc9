"""The catalogue's hardware of today is what was published: dense peaks, memory, links, power, prices with their dates.

The tables are typed from the sources and know nothing of the catalogue's files. Peaks are dense; where a source prints
rates with sparsity, half of them stand here.
"""

import re

import pytest

from simperf.hardware import Catalog, GpuPart, NicPart
from simperf.units import parse

CATALOG = Catalog.load()
YEAR = re.compile(r"20[12]\d")
#: GPU: fp32, tf32, fp16, fp8, fp4 [TFLOP/s], None where it has none; memory [GB/s] and its capacity [GB or GiB];
#: NVLink or Infinity Fabric, both directions [GB/s]; power [W]
PUBLISHED = {
    # datasheets of A100 (2021), H100 (2023), H800 (2023), H200 (2024): rates with sparsity halved
    "a100-sxm4-40gb": (19.5, 156, 312, None, None, 1555, 40, 600, 400),
    "a100-sxm4-80gb": (19.5, 156, 312, None, None, 2039, 80, 600, 400),
    "h100-sxm5-80gb": (67, 989 / 2, 1979 / 2, 3958 / 2, None, 3350, 80, 900, 700),
    "h800-sxm5-80gb": (67, 989 / 2, 1979 / 2, 3958 / 2, None, 3350, 80, 400, 700),
    "h200-sxm-141gb": (67, 989 / 2, 1979 / 2, 3958 / 2, None, 4800, 141, 900, 700),
    # specification of H20 (2023), dense
    "h20-sxm5-96gb": (44, 74, 148, 296, None, 4000, 96, 900, 400),
    # HGX B200 and B300 (2024, 2025), an eighth of a board: 18, 36 and 72 PFLOP/s with sparsity, 4 bits without on B300
    "b200-sxm-180gb": (75, 18000 / 8 / 2, 36000 / 8 / 2, 72000 / 8 / 2, 144000 / 8 / 2, 8000, 180, 1800, 1000),
    "b300-sxm-270gb": (75, 18000 / 8 / 2, 36000 / 8 / 2, 72000 / 8 / 2, 108000 / 8, 8000, 270, 1800, 1100),
    # GB200 and GB300 NVL72 (2024, 2025), a 72nd of a rack: 180, 360 and 720 PFLOP/s with sparsity, 1,440 in 4 bits on
    # GB200, 1,080 without on GB300; 13.4 and 20 TB of memory
    "gb200": (5760 / 72, 180e3 / 72 / 2, 360e3 / 72 / 2, 720e3 / 72 / 2, 1440e3 / 72 / 2, 8000, 13400 / 72, 1800, 1200),
    "gb300": (5760 / 72, 180e3 / 72 / 2, 360e3 / 72 / 2, 720e3 / 72 / 2, 1080e3 / 72, 8000, 20000 / 72, 1800, 1400),
    # datasheets of L40S (2023) and of RTX PRO 6000 (2025), whose 4,000 TOPS are 4 bits with sparsity
    "l40s": (91.6, 366 / 2, 362, 733, None, 864, 48, 0, 350),
    "rtx-pro-6000-blackwell-workstation": (126, 251.9, 503.8, 1007.6, 4030 / 2, 1792, 96, 0, 600),
    "rtx-pro-6000-blackwell-server": (120, 240, 480, 960, 1920, 1597, 96, 0, 600),
    # datasheets of MI300X (2023), MI325X (2024), MI355X (2025), dense
    "mi300x": (163.4, 653.7, 1307.4, 2614.9, None, 5300, 192, 896, 750),
    "mi325x": (163.4, 653.7, 1307.4, 2614.9, None, 6000, 256, 896, 1000),
    "mi355x": (157.3, None, 2500, 5000, 10100, 8000, 288, 1071, 1400),
}
FABRIC = {"cdna3": "xgmi3", "cdna4": "xgmi4", "ampere": "nvlink3", "hopper": "nvlink4", "blackwell": "nvlink5"}
#: server: GPUs that one NVLink or Infinity Fabric domain joins, and network for them [Gbit/s]
SERVERS = {
    **{f"dgx-{name}": (8, 8 * rate) for name, rate in (("h100", 400), ("h200", 400), ("b200", 400), ("b300", 800))},
    "gb200-nvl72": (72, 72 * 400),
    "gb300-nvl72": (72, 72 * 800),
    "h800-8gpu": (8, 3200),
    "h20-8gpu": (8, 3200),
    **{f"{name}-8gpu": (8, 3200) for name in ("mi300x", "mi325x", "mi355x")},
    # AWS, instance pages
    "p4d-24xlarge": (8, 400),
    "p4de-24xlarge": (8, 400),
    **dict.fromkeys(("p5-48xlarge", "p5e-48xlarge", "p5en-48xlarge", "p6-b200-48xlarge"), (8, 3200)),
    "p6-b300-48xlarge": (8, 6400),
    "g6e-48xlarge": (1, 400),
    "g7e-48xlarge": (1, 1600),
    # Google, beside the NICs for other traffic
    "a3-highgpu-8g": (8, 4 * 200),
    "a3-megagpu-8g": (8, 8 * 200),
    "a3-ultragpu-8g": (8, 8 * 400),
    "a4-highgpu-8g": (8, 8 * 400),
    # Azure
    "nd96asr-v4": (8, 8 * 200),
    "nd96amsr-a100-v4": (8, 8 * 200),
    **{f"nd96isr-{name}-v5": (8, 8 * 400) for name in ("h100", "h200", "mi300x")},
}
#: cluster: GPUs, and how much less its upper tier carries than the servers send
CLUSTERS = {
    **{f"dgx-{name}-superpod": (8 * 127, 1.0) for name in ("h100", "h200", "b200")},
    "dgx-b300-superpod": (4608, 1.0),
    "gb200-nvl72-superpod": (576, 1.0),
    "gb300-nvl72-superpod": (576, 1.0),
    "llama3-24k": (24576, 7.0),
    **dict.fromkeys(("p4de-x16", "p5en-x16", "p6-b200-x16", "p6-b300-x16", "a3-high-x16", "a3-mega-x16"), (128, 1.0)),
    **dict.fromkeys(("a3-ultra-x16", "a4-x16", "nd-a100-v4-x16", "nd-h100-v5-x16", "nd-h200-v5-x16"), (128, 1.0)),
}
#: instance: price on demand and of a capacity block [USD/h], None where there is none, and the month of the first
PRICES = {
    "p4d-24xlarge": (21.957642, 8 * 1.475, "2026-11"),
    "p4de-24xlarge": (27.44705, 8 * 2.214, "2026-11"),
    "p5-48xlarge": (55.04, 8 * 5.191, "2026-11"),
    "p5e-48xlarge": (None, 8 * 5.97, "2026-09"),
    "p5en-48xlarge": (63.296, 8 * 6.865, "2026-09"),
    "p6-b200-48xlarge": (113.9328, 8 * 12.355, "2026-09"),
    "p6-b300-48xlarge": (142.416, 8 * 14.04, "2026-09"),
    "g6e-48xlarge": (30.13118, None, "2026-01"),
    "g7e-48xlarge": (33.14432, None, "2026-09"),
    "a3-highgpu-8g": (88.490000119, None, "2026-09"),
    "a3-megagpu-8g": (93.400712807, None, "2026-09"),
    "a3-ultragpu-8g": (84.806908493, None, "2026-09"),
    "nd96asr-v4": (8 * 3.3996, None, "2026-11"),
    "nd96amsr-a100-v4": (32.77, None, "2026-09"),
    "nd96isr-h100-v5": (8 * 12.29, None, "2026-11"),
    "nd96isr-h200-v5": (8 * 10.6, None, "2026-09"),
    "nd96isr-mi300x-v5": (8 * 6.0, None, "2026-09"),
}
#: instances that no list has a price on demand of, so that no plan names a cost
WITHOUT_PRICE = ("p5e-48xlarge", "a4-highgpu-8g")


@pytest.mark.parametrize("name", PUBLISHED)
def test_peaks_memory_links_and_power_are_the_published_ones(name):
    fp32, tf32, fp16, fp8, fp4, bandwidth, capacity, fabric, power = PUBLISHED[name]
    gpu = CATALOG.gpu(name)
    peaks = {"fp32": fp32, "tf32": tf32, "fp16": fp16, "bf16": fp16, "fp8": fp8, "fp4": fp4}
    for precision, value in peaks.items():
        if value is None:
            assert precision not in gpu.peak
        else:
            assert gpu.peak[precision] == pytest.approx(value * 1e12, rel=0.012), precision
    assert gpu.memory_bandwidth == pytest.approx(bandwidth * 1e9, rel=0.005)
    left = 15 / 16 if "ECC" in gpu.source("memory_capacity") else 1.0
    assert any(gpu.memory_capacity == pytest.approx(left * capacity * unit, rel=0.005) for unit in (1e9, 2**30))
    assert gpu.power == power
    link = CATALOG.link(FABRIC[gpu.architecture]).raw if fabric else 0.0
    assert 2 * gpu.nvlinks * link == pytest.approx(fabric * 1e9)


def test_sparse_rates_are_not_taken_for_dense_ones():
    """A tensor core does twice as much with half the bits, and no GPU more than that."""
    for name in CATALOG.names("gpu"):
        peak = CATALOG.gpu(name).peak
        if CATALOG.gpu(name).architecture in ("hopper", "blackwell", "blackwell-rtx", "cdna3", "cdna4"):
            assert peak.get("fp8", 2 * peak["bf16"]) == pytest.approx(2 * peak["bf16"], rel=0.01), name
            assert peak["bf16"] == peak["fp16"], name
        if "tf32" in peak and CATALOG.gpu(name).architecture not in ("ada", "ampere"):
            assert peak["fp16"] == pytest.approx(2 * peak["tf32"], rel=0.01), name
        if "fp4" in peak:
            assert 2 <= round(peak["fp4"] / peak["fp8"], 2) <= 3, name
        if "fp64" in peak:
            assert peak["fp64"] <= peak["fp32"], name


@pytest.mark.parametrize(
    ("name", "cores", "flops"), [("rtx-pro-6000-blackwell-workstation", 752, 256), ("l40s", 568, 256)]
)
def test_peak_of_tensor_cores_is_cores_times_clock(name, cores, flops):
    gpu = CATALOG.gpu(name)
    clock = gpu.peak["fp32"] / (gpu.sms * gpu.lanes * 2)
    assert gpu.peak["fp16"] == pytest.approx(cores * flops * clock, rel=0.02)


def test_an_architecture_that_nobody_measured_says_so():
    for name in ("cdna4", "blackwell-rtx"):
        part = CATALOG.part("architecture", name)
        assert "unmeasured" in part.sources["default"]
    assert "unmeasured" in CATALOG.gpu("mi355x").source("efficiency.attention")
    hopper = CATALOG.part("architecture", "hopper")
    for name in ("h20-sxm5-96gb", "h200-sxm-141gb"):
        assert CATALOG.gpu(name).efficiency == hopper.efficiency


@pytest.mark.parametrize("name", SERVERS)
def test_links_of_a_gpu_add_up_to_its_fabric_and_nics_to_the_network(name):
    domain, network = SERVERS[name]
    machine = CATALOG.machine(name)
    first = machine.gpus[0]
    part = machine.nodes[first].part
    assert isinstance(part, GpuPart)
    own = [edge for edge in machine.leaving(first) if edge.technology == "nvlink"]
    assert sum(edge.count for edge in own) == part.nvlinks
    if domain > 1:
        assert 2 * sum(edge.count * CATALOG.link(edge.part).raw for edge in own) == pytest.approx(
            PUBLISHED[part.name][7] * 1e9
        )
        together = [
            gpu for gpu in machine.gpus if all(edge.technology == "nvlink" for edge in machine.route(first, gpu).edges)
        ]
        assert len(together) == domain == len(machine.gpus)
    cards = [node.part for node in machine.nodes.values() if isinstance(node.part, NicPart)]
    assert sum(card.bandwidth for card in cards) == pytest.approx(network * 1e9 / 8)


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters_have_their_gpus_and_their_upper_tier(name):
    gpus, oversubscription = CLUSTERS[name]
    machine = CATALOG.machine(name)
    assert len(machine.gpus) == gpus
    below = sum(port.bandwidth for slot in machine.servers for port in slot.ports)
    above = sum(edge.bandwidth for edge in machine.fabric.edges.values() if "spine" in edge.dst)
    assert above * oversubscription == pytest.approx(below)


def test_pods_of_llama_3_do_not_block_inside_and_share_a_seventh_between_them():
    machine = CATALOG.machine("llama3-24k")
    inside, between = machine.route("n0/gpu0", "n383/gpu0"), machine.route("n0/gpu0", "n384/gpu0")
    assert not any("spine" in node for node in inside.nodes)
    assert any("spine" in node for node in between.nodes)
    up = next(edge for edge in between.edges if edge.dst == "spine0")
    assert up.bandwidth == pytest.approx(3072 * machine.servers[0].ports[0].bandwidth / 7)


@pytest.mark.parametrize("name", PRICES)
def test_prices_are_those_of_their_sources(name):
    price, block, month = PRICES[name]
    quoted = CATALOG.file("server", name).data["price"]
    assert quoted["date"].startswith(month)
    assert CATALOG.machine(name).price == (None if price is None else pytest.approx(price, rel=1e-6))
    own = quoted.get("capacity_block")
    assert (own and parse(own, "USD/h")) == (None if block is None else pytest.approx(block, rel=1e-6))


def test_what_no_list_prices_has_no_price_and_every_other_instance_of_today_has_one():
    rented = {name for name in SERVERS if CATALOG.file("server", name).data.get("cloud")}
    assert {name for name in rented if CATALOG.machine(name).price is None} == set(WITHOUT_PRICE)
    assert rented == set(PRICES) | set(WITHOUT_PRICE)


def test_every_price_has_a_date_and_a_source():
    priced = 0
    for name in CATALOG.names("server"):
        data = CATALOG.file("server", name).data
        quoted = data.get("price")
        if quoted is not None:
            priced += 1
            assert data["cloud"], name
            assert YEAR.match(quoted["date"]), name
            assert YEAR.match(quoted.get("capacity_block_date", quoted["date"])), name
            assert len(quoted["source"]) > 10, name
            assert quoted["region"], name
    assert priced >= len(PRICES)


@pytest.mark.parametrize("kind", ["gpu", "server", "cluster"])
def test_sources_of_hardware_of_today_are_dated(kind):
    names = {"gpu": PUBLISHED, "server": SERVERS, "cluster": CLUSTERS}[kind]
    for name in names:
        sources = CATALOG.file(kind, name).data.get("source")
        if kind == "cluster" and sources is None:
            continue  # a cluster of a cloud's instances: the server's file has the source
        assert YEAR.search(sources["default"]), name


#: rates of a part, by kind; a key of a table stands for all of its entries
RATES = {
    "gpu": ("peak", "memory_bandwidth"),
    "cpu": ("peak", "memory_bandwidth"),
    "link": ("rate",),
    "nic": ("bandwidth",),
    "memory": ("bandwidth",),
    "storage": ("read_bandwidth", "write_bandwidth"),
}
#: how a text begins that names no document: a number that was computed, or is nobody's
_OWN = ("computed: ", "assumed: ", "estimate", "as fp16")


@pytest.mark.parametrize("kind", RATES)
def test_every_peak_and_bandwidth_has_a_source(kind):
    seen = 0
    for name in CATALOG.names(kind):
        part = CATALOG.part(kind, name)
        for key in part.numbers():
            if key.partition(".")[0] in RATES[kind]:
                seen += 1
                assert len(part.source(key)) >= 7, (name, key)
    assert seen >= len(CATALOG.names(kind))


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_rate_of_a_gpu_of_today_has_a_dated_source_or_says_that_it_has_none(name):
    gpu = CATALOG.gpu(name)
    keys = [key for key in gpu.numbers() if key.partition(".")[0] in RATES["gpu"]]
    for key in [*keys, "memory_capacity", "power", "nvlinks"]:
        text = gpu.source(key)
        assert YEAR.search(text) or text.startswith(_OWN), (key, text)
    assumed = {key for key in keys if gpu.source(key).startswith("assumed: ")}
    assert assumed <= {"peak.fp64", "peak.fp64-tensor"}  # no rate of training rests on an assumption


def test_rates_of_a_part_agree_with_each_other():
    """What one source prints for a board, a rack or a link is what another prints for its parts."""
    for name, board in (("b200-sxm-180gb", 14.4e12), ("b300-sxm-270gb", 14.4e12), ("h200-sxm-141gb", 7.2e12)):
        gpu = CATALOG.gpu(name)
        assert 8 * 2 * gpu.nvlinks * CATALOG.link(FABRIC[gpu.architecture]).raw == pytest.approx(board)
    for name, memory in (("gb200", 13.4e12), ("gb300", 20e12)):
        gpu = CATALOG.gpu(name)
        assert 72 * gpu.memory_capacity / 2**30 == pytest.approx(memory / 1e9, rel=0.005)  # GB stands for GiB there
        assert 72 * gpu.memory_bandwidth == pytest.approx(576e12)
        assert 72 * 2 * gpu.nvlinks * CATALOG.link("nvlink5").raw == pytest.approx(130e12, rel=0.005)
    chip_to_chip = CATALOG.link("nvlink-c2c")
    assert 2 * chip_to_chip.raw == pytest.approx(900e9 / 2)  # 900 GB/s of a Grace, for its two GPUs
