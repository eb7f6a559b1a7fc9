"""Dies of one board slow each other; GPUs of boards of their own do not."""

import pytest

from simperf.hardware import Catalog
from simperf.training.boards import board_paces
from tests.training.strategies import layers, metric, run

CATALOG = Catalog.load()
PACE = CATALOG.gpu("k80").die_pace


@pytest.mark.parametrize(
    ("which", "slower"),
    [((0,), ()), ((0, 1), (0, 1)), ((0, 2), ()), ((0, 2, 4, 6), ()), ((0, 2, 3), (2, 3)), (range(8), range(8))],
)
def test_a_die_is_slower_only_where_its_neighbour_works(which, slower):
    machine = CATALOG.machine("p2-8xlarge")
    expected = [PACE if one in slower else 1.0 for one in which]
    assert board_paces(machine, [machine.gpus[one] for one in which]) == expected


def test_boards_of_one_gpu_keep_their_pace():
    machine = CATALOG.machine("dgx-1v")
    assert set(board_paces(machine, machine.gpus)) == {1.0}


def test_kernels_of_a_step_take_longer_by_the_pace():
    """With free communication a step on two boards is that of one die, and on both dies of one longer by 1 / pace."""
    machine = CATALOG.machine("p2-8xlarge")
    work = layers(backward=30e-3, nbytes=1.0)
    times = {
        nodes: metric(run(machine, work, nodes=nodes, batch=2), "time per step")
        for nodes in (("gpu0", "gpu2"), ("gpu0", "gpu1"))
    }
    apart, together = times.values()
    assert together == pytest.approx(apart / PACE, rel=0.01)


def test_a_lone_die_keeps_its_pace_and_waits_for_the_others():
    """Of three dies the one without a neighbour computes as fast as by itself, and all have the step of the pair."""
    machine = CATALOG.machine("p2-8xlarge")
    work = layers(backward=30e-3, nbytes=1.0)
    pair, three = (
        run(machine, work, nodes=nodes, batch=len(nodes)) for nodes in (("gpu2", "gpu3"), ("gpu0", "gpu2", "gpu3"))
    )
    assert metric(three, "time per step") == pytest.approx(metric(pair, "time per step"), rel=0.01)
    assert metric(pair, "device busy, min over ranks") == pytest.approx(
        metric(pair, "device busy, max over ranks"), rel=1e-9
    )
    assert metric(three, "device busy, min over ranks") == pytest.approx(
        PACE * metric(three, "device busy, max over ranks"), rel=0.01
    )


def test_asynchronous_workers_keep_the_pace_of_their_own_boards(with_servers):
    """Nobody waits for a slower one: three workers do as much as a lone die and two that share a board."""
    machine = CATALOG.machine("p2-8xlarge")
    given = {"steps": 300, "backward": 10e-3, "weights": 1.0, "batch": 8, "mode": "asynchronous", "workers": 3}
    rate = with_servers(machine, **given).metrics["samples per second"][0]
    alone = with_servers(machine, **{**given, "workers": 1}).metrics["samples per second"][0]
    assert rate == pytest.approx((1 + 2 * PACE) * alone, rel=0.005)
