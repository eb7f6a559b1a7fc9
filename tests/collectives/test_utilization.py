"""Utilization of links: bytes over capacity and time, and the busiest link of all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import simperf
from simperf.collectives import execute, make_plan
from simperf.collectives.channels import ChannelBytes
from simperf.collectives.nccl import Tuner
from simperf.collectives.traffic import LinkTraffic
from simperf.collectives.utilization import DIGITS, Utilization
from simperf.hardware import Catalog, build_cluster

CATALOG = Catalog.load()
MACHINES = [CATALOG.machine("dgx-1v"), build_cluster("p3-8xlarge", 2, link="ethernet-10g-jumbo", catalog=CATALOG)]


def by_hand(moved, resources, time):
    loads = {name: moved[name] / resources[name] / time for name in moved if moved[name] and name in resources}
    return max(loads.items(), key=lambda one: (round(one[1], DIGITS), one[0]), default=("", 0.0))


def test_bytes_over_capacity_and_time():
    found = Utilization({"a": 6e9, "b": 2e9, "c": 0.0, "unknown": 1e9}, {"a": 12e9, "b": 2e9, "c": 1e9}, 2.0)
    assert dict(found) == {"a": 0.25, "b": 0.5}
    assert found.busiest == ("b", 0.5)


def test_of_equal_links_the_last_by_name_is_the_busiest():
    near = {"a": 1e9, "b": 1e9 * (1 + 0.1 * 10.0**-DIGITS), "c": 1e9}
    assert Utilization(near, dict.fromkeys(near, 1e9), 1.0).busiest == ("c", 1.0)


@pytest.mark.parametrize(("moved", "time"), [({}, 1.0), ({"a": 0.0}, 1.0), ({"a": 1e9}, 0.0)])
def test_where_nothing_moves_no_link_is_busy(moved, time):
    found = Utilization(moved, {"a": 1e9}, time)
    assert (dict(found), found.busiest) == ({}, ("", 0.0))


@given(
    machine=st.sampled_from(MACHINES),
    algorithm=st.sampled_from(["ring", "binomial-tree", "recursive-doubling"]),
    nbytes=st.sampled_from([8.0, 1e6, 1e9]),
)
def test_the_busiest_link_of_arrays_is_that_of_the_names(machine, algorithm, nbytes):
    plan = make_plan("all-reduce", algorithm, nranks=len(machine.gpus))
    run = execute(plan, machine, nbytes=nbytes, ranks=machine.gpus)
    found = Utilization(run.moved, machine.resources, run.time)
    name, load = by_hand(dict(run.moved), machine.resources, run.time)
    assert isinstance(run.moved, LinkTraffic)
    assert found.busiest == (name, pytest.approx(load, rel=1e-12))
    assert 0.0 < load <= 1.0 + 1e-9


@given(machine=st.sampled_from(MACHINES), nbytes=st.sampled_from([8.0, 1e6, 1e9]))
def test_the_busiest_link_of_channels_is_that_of_the_names(machine, nbytes):
    for choice in Tuner(machine, machine.gpus).choices(nbytes):
        assert choice.channels is not None
        moved = ChannelBytes(choice.channels)
        name, load = by_hand(dict(moved), machine.resources, choice.time)
        assert Utilization(moved, machine.resources, choice.time).busiest == (name, pytest.approx(load, rel=1e-12))


def test_a_large_ring_fills_its_links_and_a_table_says_which_is_the_busiest():
    (row,) = simperf.collective("all-reduce", on="dgx-1v", sizes=["4G"], algorithm="ring")
    assert row.load == pytest.approx(max(row.loads.values()), rel=1e-12)
    assert row.load == pytest.approx(1.0, rel=1e-4)
