"""NCCL between servers: its own formula for rings and trees (simperf.collectives.nccl_estimate), protocols and trees
where adapters are far from the GPUs (simperf.collectives.nccl_plans), and networks that hand rings on slowly
(simperf.collectives.networks)."""

import math

import pytest

from simperf.collectives.nccl import Tuner
from simperf.collectives.nccl_channels import SLICES
from simperf.collectives.nccl_estimate import network_estimate
from simperf.collectives.networks import NcclNetwork, network
from simperf.collectives.settings import NcclSettings
from simperf.hardware import build_cluster

#: GPUs whose adapters are behind a processor, and such as share a PCIe switch with one
FAR, NEAR = "a100-4gpu", "dgx-a100"


def tuner_of(server, count, collective="all-reduce", **settings):
    """The tuner of so many like servers, without reduction in switches."""
    machine = build_cluster(server, count, link="ethernet-200g-jumbo" if server == FAR else "infiniband-hdr")
    return Tuner(machine, machine.gpus, collective, NcclSettings(in_network=False, **settings))


def protocols(tuner):
    return {choice.protocol for choice in tuner.choices(1 << 20)}


def test_ll128_needs_a_pcie_switch_that_gpu_and_adapter_share():
    assert protocols(tuner_of(NEAR, 3)) == {"LL", "LL128", "Simple"}
    assert protocols(tuner_of(FAR, 3)) == {"LL", "Simple"}
    assert protocols(tuner_of(FAR, 1)) == {"LL", "LL128", "Simple"}
    assert protocols(tuner_of(FAR, 3, protocol="LL128")) == {"LL128"}


@pytest.mark.parametrize(("server", "count", "less"), [(FAR, 2, False), (FAR, 3, True), (NEAR, 3, False)])
def test_trees_of_three_servers_and_more_have_less_where_one_gpu_is_near_the_adapter(monkeypatch, server, count, less):
    def rate():
        return sum(tuner_of(server, count, only=("tree",), protocol="Simple").best(1 << 30).transport.caps)

    found = rate()
    monkeypatch.setattr("simperf.collectives.nccl.simple_tree_efficiency", lambda: 1.0)
    assert found / rate() == pytest.approx(0.85 if less else 1.0, rel=1e-12)


@pytest.mark.parametrize(("count", "most"), [(4, 1 << 26), (16, 1 << 28)])
def test_rings_begin_at_a_size_that_grows_with_the_servers(count, most):
    """A ring's latency grows with the servers, a tree's with their logarithm: payloads for each server decide."""
    tuner = tuner_of(FAR, count)
    assert tuner.best(most / 16).algorithm == "tree"
    assert tuner.best(most).name == "ring/Simple"


@pytest.mark.parametrize("count", [3, 12])
@pytest.mark.parametrize("nbytes", [1 << 16, 1 << 22, 1 << 26])
def test_what_is_taken_is_what_the_formula_has_for_the_fastest(count, nbytes):
    """However long it is played: a tree of eight NICs is played up to three times as long as the formula has it."""
    tuner = tuner_of(NEAR, count)
    estimates = {pair: tuner._estimate(pair, float(nbytes)) for pair in tuner._find_pairs()}
    taken = tuner.best(float(nbytes))
    assert (taken.algorithm, taken.protocol) == min(estimates, key=estimates.get)


def test_the_formula_of_a_ring_is_latency_by_steps_and_bytes_by_bandwidth():
    tuner, nbytes = tuner_of(FAR, 3), float(1 << 26)
    transport = tuner.choices(nbytes)[0].transport
    for protocol, factor, posts in (("Simple", 1.4, 3), ("LL", 1.0, 1)):
        transport = next(one for one in tuner.choices(nbytes) if one.name == f"ring/{protocol}").transport
        inside = max(transport.media["nvlink"], posts * 2e-6)  # AMD's processors
        latency = transport.start + 18 * inside + 4 * transport.media["network"]
        expected = factor * latency + nbytes * 22 / 12 / (transport.efficiency * sum(transport.caps))
        found = network_estimate(
            tuner.shape, ("ring", protocol), transport, network("rdma"), medium="nvlink", nbytes=nbytes
        )
        assert found == pytest.approx(expected, rel=1e-12)


def test_the_formula_of_a_tree_has_levels_and_factors_by_size():
    tuner = tuner_of(FAR, 9)
    transport = tuner_of(FAR, 9, only=("tree",), protocol="Simple").best(1 << 30).transport
    rate = transport.efficiency * sum(transport.caps)
    latency = transport.start + 2 * (3 * transport.media["nvlink"] + 3 * transport.media["network"])

    def found(nbytes):
        return network_estimate(
            tuner.shape, ("tree", "Simple"), transport, network("rdma"), medium="nvlink", nbytes=nbytes
        )

    for nbytes, factor in ((1 << 20, 0.5), (1 << 25, 0.7), (1 << 28, 0.9), (1 << 30, 1.0)):
        assert found(float(nbytes)) == pytest.approx(latency + nbytes / (rate * factor), rel=1e-12)
    assert found(8.0) == pytest.approx(latency + 8.0 / rate, rel=1e-12)


def test_simple_flushes_and_so_has_the_networks_latency_twice():
    tuner = tuner_of(FAR, 3)
    slow = NcclNetwork("slow", latency=10e-6)

    def found(name, protocol):
        transport = next(one for one in tuner.choices(8.0) if one.name == f"{name}/{protocol}").transport
        times = [
            network_estimate(tuner.shape, (name, protocol), transport, one, medium="nvlink", nbytes=8.0)
            for one in (network("rdma"), slow)
        ]
        return times[1] - times[0]

    assert found("tree", "Simple") == pytest.approx(2 * 10e-6)
    assert found("ring", "Simple") == pytest.approx(4 * 10e-6)
    assert found("ring", "LL") == 0.0


def test_software_and_two_servers_are_not_in_the_formula():
    for tuner in (tuner_of(FAR, 2), tuner_of(FAR, 3, network="socket")):
        for nbytes in (8.0, float(1 << 20), float(1 << 28)):
            assert tuner.best(nbytes).channels.time == min(one.channels.time for one in tuner.choices(nbytes))


# Networks that hand rings on --------------------------------------------------------------


def test_a_ring_over_slingshot_takes_its_time_from_server_to_server():
    """A step takes a quarter of it with four GPUs a server, until latency and bytes take more."""
    plain, slow = (tuner_of(FAR, 8, "all-gather", network=name) for name in ("rdma", "slingshot"))
    steps = 31

    def choice(tuner, nbytes):
        return next(one for one in tuner.choices(nbytes) if one.name == "ring/Simple")

    begun = choice(plain, 0.0).transport.start
    copied = choice(slow, float(1 << 24)).channels.last
    handed = choice(slow, float(1 << 24)).time - begun - copied
    assert handed == pytest.approx(steps * network("slingshot").handover["Simple"] / 4, rel=1e-9)
    assert choice(slow, float(1 << 30)).time == pytest.approx(choice(plain, float(1 << 30)).time, rel=1e-9)


def test_messages_that_are_not_announced_are_handed_on_at_once():
    plain, slow = (tuner_of(FAR, 8, "all-gather", network=name) for name in ("rdma", "slingshot"))
    ring = slow._algorithm("ring")
    for protocol in ("LL", "Simple"):
        efficiency = slow._constants("ring", protocol).efficiency
        share = max(channel.share for channel in ring.plan.channels)
        last = network("slingshot").rendezvous * 32 * efficiency * SLICES.get(protocol, 1) / share

        def time(tuner, nbytes, name=f"ring/{protocol}"):
            return next(one for one in tuner.choices(nbytes) if one.name == name).time

        assert time(slow, last * 0.999) == time(plain, last * 0.999)
        assert time(slow, last * 1.001) > 1.5 * time(plain, last * 1.001)


def test_what_is_hidden_is_not_paid_twice():
    slow = network("slingshot")
    least = slow.handover["LL"] / 4
    assert slow.exposed("LL", math.inf, 0.0, 0.25) == pytest.approx(least)
    assert slow.exposed("LL", math.inf, least / 3, 0.25) == pytest.approx(least * 2 / 3)
    assert slow.exposed("LL", math.inf, 2 * least, 0.25) == 0.0
    assert slow.exposed("LL", slow.rendezvous, 0.0, 0.25) == 0.0
    assert slow.exposed("LL128", math.inf, 0.0, 0.25) == 0.0
    assert slow.faster(2.0).exposed("LL", math.inf, 0.0, 0.25) == pytest.approx(least / 2)
