"""`simperf.programs.servers_or_ring`: servers and a ring, each as the program that runs it alone."""

from dataclasses import replace

import pytest

import simperf
from simperf.errors import ProgramError
from simperf.scenario import CostSettings

MACHINE = {
    "server": "v100-pcie-8gpu-rdma",
    "count": 4,
    "fabric": {"type": "star", "switch": "ethernet-switch", "link": "ethernet-100g-jumbo"},
}


def rivals(**more):
    program = {"use": "servers-or-ring", "servers": 2, "model": "resnet18", "batch": 16, **more}
    return simperf.run(simperf.make_scenario({"machine": MACHINE, "program": program}))


def values(result):
    return {name: metric.value for name, metric in result.metrics.items()}


def test_both_ways_are_told_and_compared_over_the_same_gpus():
    found = values(rivals())
    assert found["GPUs"] == 16
    rates = {way: found[f"{way}: samples per second"] for way in ("servers", "ring")}
    assert found["speed-up of servers"] == pytest.approx(rates["servers"] / rates["ring"] - 1)
    one = {way: rates[way] / 16 / found[f"{way}: scaling efficiency"] for way in rates}
    assert one["servers"] == pytest.approx(one["ring"])
    assert all(0 < found[f"{way}: scaling efficiency"] <= 1 for way in rates)


def test_the_ring_is_the_all_reduce_on_the_machines_that_train():
    machine = {**MACHINE, "count": 2}
    program = {"use": "train", "model": "resnet18", "batch_per_gpu": 16, "algorithm": "nccl", "gpus": 16, "steps": 2}
    program |= {"bucket_view": False, "first_bucket": "25 MiB"}
    alone = values(simperf.run(simperf.make_scenario({"machine": machine, "program": program})))
    assert values(rivals())["ring: samples per second"] == pytest.approx(alone["samples per second"], rel=0.02)


def test_more_servers_are_not_slower_and_none_or_all_are_refused():
    machines = {**MACHINE, "count": 6}

    def rate(servers):
        program = {"use": "servers-or-ring", "servers": servers, "model": "vgg16", "batch": 8}
        found = values(simperf.run(simperf.make_scenario({"machine": machines, "program": program})))
        return found["servers: samples per second"] / found["GPUs"]

    assert rate(3) >= 0.999 * rate(1)
    for servers in (0, 4):
        with pytest.raises(ProgramError, match="at least one serves and one trains"):
            rivals(servers=servers)


def test_a_single_gpu_beside_a_server_is_compared_too():
    machine = {"server": "p2-xlarge", "count": 2, "fabric": {"type": "star", "bandwidth": "1 GB/s"}}
    program = {"use": "servers-or-ring", "model": "lenet", "batch": 16}
    found = values(simperf.run(simperf.make_scenario({"machine": machine, "program": program})))
    assert found["ring: scaling efficiency"] == 1.0
    assert found["servers: samples per second"] < found["ring: samples per second"]


def test_both_ways_cost_operations_with_the_same_constants():
    """A profile's constants hold for the servers' run as well: a GPU that is slower slows both ways down."""
    program = {"use": "servers-or-ring", "servers": 2, "model": "resnet18", "batch": 16}
    base = simperf.make_scenario({"machine": MACHINE, "program": program})
    slow = {"elementwise": {"overhead": 1e-3, "rate": 1e12}}
    plain, fitted = (values(simperf.run(replace(base, cost=CostSettings(kernels=each)))) for each in ({}, slow))
    for way in ("servers", "ring"):
        assert fitted[f"{way}: samples per second"] < 0.5 * plain[f"{way}: samples per second"]
