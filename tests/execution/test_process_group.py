"""A process group: which ranks it has, and what it refuses."""

from dataclasses import dataclass

import pytest

from simperf.collectives.settings import NcclSettings
from simperf.engine.device import Device
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, ProgramError, UnknownNameError
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.hardware import Catalog, build_topology

CATALOG = Catalog.load()


@dataclass(frozen=True)
class Member:
    """Ranks of a device."""

    rank: int
    members: tuple[int, ...]
    device: Device


def group(machine=None, *, ranks=None, stand=None, **options):
    """A group of the first ranks of a machine; `stand` says which ranks each member stands for."""
    machine = machine or build_topology("star", 4, bandwidth=1e9, latency=1e-6)
    m = Session(Simulation(machine))
    nodes = machine.gpus[:ranks]
    stand = stand or [(rank,) for rank in range(len(nodes))]
    members = [Member(one[0], tuple(one), m.simulation.device(nodes[one[0]])) for one in stand]
    return ProcessGroup(m, nodes, members, **options)


def test_the_algorithm_is_nccl_where_it_runs_and_else_a_ring():
    assert group().algorithm == "ring"
    assert group().settings is None
    nccl = group(CATALOG.machine("dgx-1v"))
    assert nccl.algorithm == "nccl"
    assert nccl.settings == NcclSettings()


def test_nccl_on_other_devices_is_noted():
    found = group(CATALOG.machine("mi300x-8gpu"), algorithm="nccl")
    assert any("NCCL does not run on these devices" in note for note in found.m.notes)


@pytest.mark.parametrize("stand", [[(0,), (1,)], [(0, 1), (1, 2, 3)], [(0,), (1,), (2,), (3,), (3,)]])
def test_members_stand_for_every_rank_once(stand):
    with pytest.raises(InputError, match="every rank once"):
        group(stand=stand)


def test_a_member_may_stand_for_several_ranks_unless_every_send_is_played():
    assert group(stand=[(0, 2), (1, 3)]).size == 4
    with pytest.raises(InputError, match="every rank once"):
        group(stand=[(0, 2), (1, 3)], exact=True)


@pytest.mark.parametrize("slowdown", [0.5, float("inf"), float("nan"), 1e300])
def test_kernels_get_slower_by_a_finite_factor(slowdown):
    with pytest.raises(InputError, match="1 or more"):
        group(slowdown=slowdown)
    assert group(slowdown=2.0).held == 0.5


def test_wrong_names_are_refused():
    with pytest.raises(UnknownNameError, match="ring"):
        group(algorithm="rng")
    found = group()
    with pytest.raises(UnknownNameError, match="all-reduce"):
        found.collective(found.members[0], "all-redus", 1.0)
    nccl = group(CATALOG.machine("dgx-1v"))
    with pytest.raises(InputError, match="NCCL has no gather of its own"):
        nccl.collective(nccl.members[0], "gather", 1.0)


@pytest.mark.parametrize("peer", [0, 4, -1, True, 1.0])
def test_a_rank_communicates_with_the_other_ranks_of_its_group(peer):
    found = group()
    with pytest.raises(ProgramError, match="rank 0 of 4 communicates with other ranks of its group, from 0 to 3"):
        found.send_receive(found.members[0], "send", [(True, peer, 8.0)])


def test_a_device_without_a_rank_is_named():
    found = group(ranks=2)
    assert found.member(found.members[1].device) is found.members[1]
    with pytest.raises(ProgramError, match="r3 is not in the group of r0, r1"):
        found.member(found.m.simulation.device("r3"))


def test_turns_are_counted_rank_by_rank():
    found = group()
    assert [found.turn(rank) for rank in (0, 0, 1, 0)] == [0, 1, 0, 2]
