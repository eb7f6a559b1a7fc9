"""Fully sharded weights with experts that are spread over ranks: what is gathered where, and what ranks hold of it."""

import pytest

from simperf import DataExchange, Layout, ModelParallel
from simperf.training.pipelined.division import divide
from simperf.training.pipelined.fitting_changes import Divided
from simperf.training.pipelined.pacing import Pacing
from simperf.training.pipelined.work import StepEnd
from simperf.training.replica import Dimensions
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.routing import Routing
from tests.training.pipelined.small import played, sharded, step_time, with_experts, work
from tests.training.pipelined.test_experts import MIXTURE, run

EACH = Pacing(gradients=True, sharded=True, each=True)
EQUAL = StepEnd(gradient=2.0, weight=2.0)
DENSE, EXPERTS, BLOCKS = 10_000_000, 30_000_000, 3


def sent(*, dp=8, ep=1, copies=1, apart=True):
    """Bytes that leave the first GPU in a step of blocks with dense weights and experts, for each byte of a block."""
    of = with_experts(work(1, 1, blocks=BLOCKS, nbytes=0.0, weights=DENSE, end=EQUAL, ends=False), EXPERTS)
    of = sharded(of, apart=apart, reshard="always")
    m, _ = played("dgx-a100-x4", of, dp=dp, ep=ep, copies=copies, pacing=EACH, steps=1)
    moved = m.simulation.network.moved.items()
    return sum(nbytes for name, nbytes in moved if name.startswith("n0/gpu0>")) / BLOCKS


@pytest.mark.parametrize("ep", [2, 4, 8])
def test_experts_are_gathered_and_reduced_over_their_copies(ep):
    """Two gathers and a reduction of n bytes over N ranks: each sends 3 n (N - 1) / N."""
    wanted = 3 * 2 * (DENSE * 7 / 8 + EXPERTS * (8 // ep - 1) / (8 // ep))
    assert sent(ep=ep) == pytest.approx(wanted, rel=1e-3)


def test_experts_that_every_rank_has_travel_with_the_other_weights():
    assert sent(apart=False) == pytest.approx(3 * 2 * (DENSE + EXPERTS) * 7 / 8, rel=1e-3)


def test_copies_add_up_the_parts_of_gradients():
    """Two copies in a server add up a part of N: each sends n / N."""
    wanted = 3 * 2 * (DENSE * 3 / 4 + EXPERTS * 1 / 2) + 2 * (DENSE / 4 + EXPERTS / 2)
    assert sent(ep=2, copies=2) == pytest.approx(wanted, rel=1e-3)
    alone = 3 * 2 * DENSE * 3 / 4 + 2 * (DENSE / 4 + EXPERTS)  # one rank of a copy has each expert
    assert sent(ep=4, copies=2) == pytest.approx(alone, rel=1e-3)


@pytest.mark.parametrize(
    "sizes",
    [
        {"dp": 8, "ep": 4},
        {"dp": 8, "ep": 8},
        {"dp": 8, "ep": 2, "dp_replicate": 2},
        {"dp": 8, "ep": 4, "dp_replicate": 2},
        {"dp": 4, "ep": 2, "pp": 2},
        {"dp": 4, "tp": 2, "ep": 4, "etp": 1},
        {"dp": 8, "ep": 2, "dp_replicate": 2, "sharding": "zero-1"},
    ],
    ids=lambda sizes: " ".join(f"{key}={value}" for key, value in sizes.items()),
)
def test_every_rank_played_takes_as_long(sizes):
    layout, options = {"sharding": "zero-3", **sizes}, {"routing": Routing("power-law-1.2")}
    few, every = (run(layout, set=set, **options) for set in ({}, {"program.exact": "yes"}))
    assert step_time(few) == pytest.approx(step_time(every), rel=1e-9)


def test_experts_that_every_rank_has_are_in_the_units_of_their_layers():
    for layout in (Layout(dp=8, sharding="zero-3"), Layout(dp=8, sharding="zero-3", dp_replicate=2)):
        (units,) = divide(Dimensions(MIXTURE, LayerKernels()), layout, ModelParallel(), 8).units
        assert all(unit.experts is None for unit in units)
        assert sum(unit.bucket.weights for unit in units) == pytest.approx(MIXTURE.parameters, rel=0.01)


# Memory ----------------------------------------------------------------------------------

BLOCK = MIXTURE.layers - MIXTURE.dense_layers
OF_EXPERTS = BLOCK * MIXTURE.experts * 3 * MIXTURE.hidden * MIXTURE.expert_ffn


def memory(ep, copies=1, **options):
    layout = Layout(dp=8, ep=ep, sharding="zero-3", dp_replicate=copies)
    kernels = LayerKernels(gradients="fp32")
    return Divided(Dimensions(MIXTURE, kernels), layout, ModelParallel(exchange=DataExchange(**options)), 8).memory()[0]


@pytest.mark.parametrize(("ep", "copies"), [(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (4, 2)])
def test_states_are_shared_by_those_that_have_them(ep, copies):
    """16 bytes a weight: of the dense ones over all ranks of a copy, of 1 / ep of the experts over 1 / ep of them."""
    held = memory(ep, copies).moments[-1].held
    states = sum(held.get(kind, 0.0) for kind in ("weights", "master", "gradients", "optimizer"))
    dense = MIXTURE.parameters - OF_EXPERTS
    wanted = 16 * (dense / (8 // copies) + OF_EXPERTS / ep / (8 // ep // copies))
    assert states == pytest.approx(wanted, rel=0.01)


@pytest.mark.parametrize("ep", [1, 2, 4, 8])
def test_whole_weights_are_those_of_the_experts_of_a_rank(ep):
    """All weights of the rank stay: 2 bytes for each dense one, and for 1 / ep of the experts."""
    held = memory(ep, reshard="never").peak.held
    assert held["unsharded weights"] == pytest.approx(2 * (MIXTURE.parameters - OF_EXPERTS + OF_EXPERTS / ep), rel=0.02)
