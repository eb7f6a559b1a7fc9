"""Host memory on the way (simperf.collectives.staging) and what lies before the wire (simperf.collectives.networks)."""

import re
from pathlib import Path

import pytest

import simperf.hardware
from simperf.collectives.nccl import Tuner
from simperf.collectives.networks import (
    in_network_efficiency,
    low_latency_limit,
    network,
    network_of,
    tree_limit,
)
from simperf.collectives.settings import NcclSettings
from simperf.collectives.staging import DUPLEX, KERNEL, MEMORY, THROUGH, StagedMachine
from simperf.errors import UnknownNameError
from simperf.hardware import Catalog, build_cluster, build_machine

CATALOG = Catalog.load()


def _box(*, peer_access: bool, gpus: int = 4, cpu: str = "epyc-7742"):
    spec = {
        "kind": "server",
        "peer_access": peer_access,
        "node": [{"id": f"gpu{{0..{gpus - 1}}}", "gpu": "rtx-4090"}, {"id": "cpu0", "cpu": cpu}],
        "link": [{"a": f"gpu{{0..{gpus - 1}}}", "b": "cpu0", "part": "pcie4-x16"}],
    }
    return build_machine(spec, CATALOG)


def _busbw(machine):
    ranks = machine.gpus
    time = Tuner(machine, ranks).best(2.0**30).time
    return 2.0**30 * 2 * (len(ranks) - 1) / len(ranks) / time


def test_a_staged_byte_crosses_the_memory_bus_twice_and_the_gpus_links_both_ways():
    machine = _box(peer_access=False)
    staged = StagedMachine(machine, network("rdma"))
    route = staged.route("gpu0", "gpu1")
    wire = CATALOG.link("pcie4-x16").bandwidth
    assert set(machine.route("gpu0", "gpu1").resources) < set(route.resources)
    assert staged.resources["cpu0:staged/2"] == MEMORY * CATALOG.part("cpu", "epyc-7742").memory_bandwidth / 2
    assert staged.resources["cpu0+gpu0:both"] == pytest.approx(2 * DUPLEX * KERNEL * wire)
    assert "cpu0:staged/2" in route.resources
    assert len(staged.resources) == len(list(staged.resources))


def test_intel_keeps_staged_bytes_in_its_cache():
    staged = StagedMachine(_box(peer_access=False, cpu="xeon-8480c"), network("rdma"))
    assert not any("staged" in name for name in staged.route("gpu0", "gpu1").resources)


def test_what_a_processor_is_called_changes_nothing(tmp_path):
    """Direct I/O and the vendor are data of the part; its title is for people."""
    shipped = Path(simperf.hardware.__file__).parent / "data" / "cpu"
    for name in ("xeon-8480c", "epyc-7742"):
        text = (shipped / f"{name}.toml").read_text()
        title = re.search('title = "(.*)"', text)[1]
        (tmp_path / f"{name}-renamed.toml").write_text(text.replace(title, "A processor"))
    catalog = Catalog.load(folders=[tmp_path])

    def found(cpu):
        spec = {
            "kind": "server",
            "peer_access": False,
            "node": [{"id": "gpu{0..3}", "gpu": "rtx-4090"}, {"id": "cpu0", "cpu": cpu}],
            "link": [{"a": "gpu{0..3}", "b": "cpu0", "part": "pcie4-x16"}],
        }
        machine = build_machine(spec, catalog)
        staged = StagedMachine(machine, network("rdma"))
        return staged.route("gpu0", "gpu1").resources, _busbw(machine)

    for name in ("xeon-8480c", "epyc-7742"):
        assert found(name) == found(f"{name}-renamed")


def test_host_memory_binds_when_many_gpus_share_it():
    """Sixteen GPUs on one socket: the memory's bus is what they share, whatever PCIe could carry."""
    four, sixteen = _busbw(_box(peer_access=False)), _busbw(_box(peer_access=False, gpus=16))
    assert sixteen < 0.5 * four
    bus = CATALOG.part("cpu", "epyc-7742").memory_bandwidth
    assert 16 * sixteen < MEMORY * bus / 2 * (1 + 1e-9)


def test_peer_access_is_faster_but_not_as_fast_as_the_link():
    direct, through_host = _busbw(_box(peer_access=True)), _busbw(_box(peer_access=False))
    wire = CATALOG.link("pcie4-x16").bandwidth
    assert through_host < 0.8 * direct < direct < THROUGH * wire * (1 + 1e-9)


def test_nothing_is_staged_over_nvlink():
    machine = CATALOG.machine("dgx-a100")
    staged = StagedMachine(machine, network("rdma"))
    assert staged.route("gpu0", "gpu1").resources == machine.route("gpu0", "gpu1").resources
    assert not staged.staged("gpu0", "gpu1")


def test_without_gpudirect_both_ends_are_staged():
    machine = build_cluster("p3dn-24xlarge", 2, link="ethernet-100g-jumbo")
    staged = StagedMachine(machine, network("socket"))
    names = staged.route("n0/gpu0", "n1/gpu0").resources
    assert {"n0/gpu0:core", "n1/gpu0:core", "n0/cpu0:staged/4", "n1/cpu0:staged/4"} < set(names)
    inside = StagedMachine(machine, network("socket"), inside=True).route("n0/gpu0", "n1/gpu0").resources
    assert not any("core" in name or "switch" in name for name in inside)


def test_one_core_sends_and_receives_unless_there_are_more():
    machine = build_cluster("a100-4gpu", 2, link="ethernet-200g-jumbo")
    ranks = [machine.gpus[0], machine.gpus[4]]

    def rate(name):
        return 2.0**30 / Tuner(machine, ranks, settings=NcclSettings(network=name)).best(2.0**30).time

    assert rate("socket") == pytest.approx(42e9 / 8 / 2, rel=0.01)
    assert rate("socket-aws") == pytest.approx(42e9 / 8, rel=0.01)


def test_a_flow_gets_no_more_than_its_adapter_allows():
    machine = build_cluster("p3dn-24xlarge", 2, link="ethernet-100g-jumbo")
    ranks = [machine.gpus[0], machine.gpus[8]]
    limit = CATALOG.part("nic", "ena-100g").flow_limit
    assert 2.0**30 / Tuner(machine, ranks, settings=NcclSettings(network="socket")).best(2.0**30).time == pytest.approx(
        limit, rel=0.01
    )


def test_a_switch_below_the_processor_passes_peers_on_unharmed():
    machine = CATALOG.machine("pcie-4gpu")
    names = StagedMachine(machine, network("rdma")).route("gpu0", "gpu1").resources
    assert not any("through" in name for name in names)


@pytest.mark.parametrize(
    ("server", "link", "expected"),
    [
        ("p4d-24xlarge", "efa-100g", "efa"),
        ("p5-48xlarge", "efa-100g", "efa-v2"),
        ("p3dn-24xlarge", "ethernet-100g", "socket-aws"),
        ("dgx-a100", "infiniband-hdr", "rdma"),
    ],
)
def test_adapters_say_how_they_are_driven(server, link, expected):
    machine = build_cluster(server, 2, link=link)
    found = network_of(machine, machine.gpus)
    assert found.name == expected
    assert found.source
    assert network_of(machine, machine.gpus[:2]).name == "rdma", "nothing leaves one server"


def test_an_unknown_network_is_told_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="did you mean 'socket'"):
        network("sockets")


def test_limits_depend_on_gpu_processor_and_servers():
    one = CATALOG.machine("dgx-h100")
    two, many = (build_cluster("dgx-a100", n, link="infiniband-hdr") for n in (2, 4))
    assert low_latency_limit(one, one.gpus) == 141e9
    assert low_latency_limit(two, two.gpus) == 22.5e9, "AMD"
    assert (tree_limit(two, two.gpus), tree_limit(many, many.gpus)) == (23.6e9, 17.8e9)
    assert in_network_efficiency(one, one.gpus) == 0.85
    assert in_network_efficiency(two, two.gpus) == 0.0
