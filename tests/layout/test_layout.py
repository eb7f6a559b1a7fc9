"""Layouts: sizes that make sense, and where ranks sit on a machine."""

import pytest

from simperf.errors import InputError, nearest_divisors
from simperf.hardware import Catalog, build_cluster
from simperf.layout import Layout, by_server, server_classes, server_count


def test_sizes_multiply_to_the_ranks_and_experts_share_them():
    layout = Layout(dp=4, tp=2, pp=3, cp=2, ep=8)
    assert layout.ranks == 48 == layout.mesh.size == layout.expert_mesh.size
    assert len(layout.expert_mesh.group(0, "dp")) == 1
    assert not layout.replicated
    assert Layout(dp=8).replicated
    assert not Layout(dp=8, sharding="zero-1").replicated


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dp": 0}, r"dp: .*1 or more"),
        ({"tp": True}, r"tp: .*1 or more"),
        ({"dp": 6, "ep": 4}, r"which 4 does not divide(?s:.*)ep = 3 or ep = 6, of which"),
        ({"dp": 2, "sharding": "zero-4"}, r"did you mean"),
        ({"tp": 8, "sharding": "zero-3"}, "has no effect"),
        ({"dp": 6, "sharding": "zero-3", "dp_replicate": 4}, r"does not divide dp = 6(?s:.*)3 or 6"),
        ({"dp": 4, "dp_replicate": 2}, "every data-parallel rank has a copy"),
        ({"dp": 4, "sharding": "zero-3", "dp_replicate": 4}, "no rank is left"),
        ({"dp": 4, "sharding": "zero-3", "dp_replicate": 0}, r"dp_replicate: .*1 or more"),
        ({"order": ("tp", "dp")}, "not an order of dimensions"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        Layout(**given)


def test_copies_cut_data_parallelism_in_two():
    layout = Layout(dp=4, tp=2, cp=2, sharding="zero-3", dp_replicate=2)
    mesh = layout.sharding_mesh
    assert (layout.dp_shard, mesh.size) == (2, layout.ranks)
    assert mesh.groups("cp", "dp_shard")[0] == (0, 2, 4, 6)
    assert mesh.groups("dp_replicate")[0] == (0, 8)
    assert sorted(mesh.groups("dp_shard", "dp_replicate")) == sorted(layout.mesh.groups("dp"))
    assert str(layout) == "dp=4 tp=2 cp=2 zero-3 dp_replicate=2"


def test_another_number_of_gpus_names_the_dp_that_fits():
    layout = Layout(dp=2, tp=4)
    assert layout.over(8) is layout
    with pytest.raises(InputError, match=r"8 ranks \(dp = 2 x tp = 4\) for 16 GPUs(?s:.*)dp = 4"):
        layout.over(16)
    with pytest.raises(InputError, match="8 or 12 GPUs"):
        layout.over(10)
    with pytest.raises(InputError, match="4 GPUs"):
        layout.over(3)


def test_divisors_on_both_sides():
    assert nearest_divisors(1, 4) == (1,)
    assert nearest_divisors(12, 4) == (4,)
    assert nearest_divisors(7, 3) == (1, 7)


def test_tensor_parallel_groups_of_eight_stay_in_servers_of_eight():
    cluster = build_cluster("dgx-h100", 4, link="ethernet-10g-jumbo")
    mesh = Layout(dp=2, tp=8, pp=2).mesh
    assert all(server_count(cluster, [cluster.gpus[rank] for rank in group]) == 1 for group in mesh.groups("tp"))
    assert all(server_count(cluster, [cluster.gpus[rank] for rank in group]) == 2 for group in mesh.groups("dp"))


def test_servers_are_alike_if_they_are_built_and_used_alike():
    machine = build_cluster("p3-8xlarge", 3, link="ethernet-10g-jumbo")
    assert [list(one) for one in server_classes(machine, machine.gpus)] == [["n0", "n1", "n2"]]
    looks = [rank == 5 for rank in range(12)]
    assert [list(one) for one in server_classes(machine, machine.gpus, looks)] == [["n0", "n2"], ["n1"]]
    assert by_server(machine, machine.gpus)["n1"] == (4, 5, 6, 7)
    alone = Catalog.load().machine("dgx-1v")
    assert list(by_server(alone, alone.gpus).values()) == [tuple(range(8))]
