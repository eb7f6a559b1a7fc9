"""GPUs forward for those that share no NVLink, in NCCL's all-to-all (simperf.collectives.forwarding)."""

import pytest

from simperf.collectives.forwarding import Forwarding
from simperf.collectives.nccl import Tuner
from simperf.hardware import Catalog


@pytest.fixture(scope="module")
def dgx():
    return Catalog.load().machine("dgx-1v")


def technologies(route):
    return {edge.technology for edge in route.edges}


def test_all_pairs_of_a_hybrid_mesh_are_reached_over_nvlink(dgx):
    forwarding, ids = Forwarding(dgx), dgx.gpus
    pairs = [(a, b) for a in ids for b in ids if a != b]
    far = [pair for pair in pairs if "pcie" in technologies(dgx.route(*pair))]
    assert len(far) == 8 * 3, "each GPU has links with four of the seven others"
    for pair in pairs:
        route = forwarding.route(*pair)
        assert technologies(route) == {"nvlink"}
        assert len(route.edges) == 1 + (pair in far)
        assert (route.src, route.dst) == pair
    widest = {forwarding.route(*pair).bandwidth for pair in far}
    assert max(widest) <= max(dgx.route(*pair).bandwidth for pair in pairs)


def test_what_does_not_go_between_gpus_of_one_server_is_the_machines_own(dgx):
    forwarding = Forwarding(dgx)
    assert forwarding.route("cpu0", "gpu0") == dgx.route("cpu0", "gpu0")
    assert forwarding.gpus == dgx.gpus
    pcie = Catalog.load().machine("pcie-4gpu")
    assert Forwarding(pcie).route("gpu0", "gpu3") == pcie.route("gpu0", "gpu3"), "nobody has links"


def test_an_exchange_in_a_hybrid_mesh_is_bound_by_nvlink(dgx):
    """A GPU's six links carry what it sends and what it forwards: 3 of 7 parts twice, spread over all links at best."""
    nbytes = 1e9
    time = Tuner(dgx, dgx.gpus, collective="all-to-all").best(nbytes).time
    links = sum(edge.bandwidth for edge in dgx.edges.values() if edge.src == "gpu0" and edge.technology == "nvlink")
    assert time > nbytes / 8 * (4 + 2 * 3) / links
    pcie = dgx.route("gpu0", "cpu0").bandwidth
    assert time < nbytes / 8 * 3 * 2 / pcie, "over PCIe two GPUs share the way up"
