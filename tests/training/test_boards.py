"""Dies of one board slow each other; GPUs of boards of their own do not."""

import pytest

from simperf.hardware import Catalog
from simperf.training.boards import board_pace
from tests.training.strategies import layers, metric, run

CATALOG = Catalog.load()
PACE = CATALOG.gpu("k80").die_pace


@pytest.mark.parametrize(
    ("which", "expected"),
    [((0,), 1.0), ((0, 1), PACE), ((0, 2), 1.0), ((0, 2, 4, 6), 1.0), ((0, 2, 3), PACE), (range(8), PACE)],
)
def test_a_die_is_slower_only_where_its_neighbour_works(which, expected):
    machine = CATALOG.machine("p2-8xlarge")
    assert board_pace(machine, [machine.gpus[one] for one in which]) == expected


def test_boards_of_one_gpu_keep_their_pace():
    machine = CATALOG.machine("dgx-1v")
    assert board_pace(machine, machine.gpus) == 1.0


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
