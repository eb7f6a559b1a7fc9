"""Bytes a weight, whole and sharded: formulas of the ZeRO paper, and of Megatron-LM's distributed optimizer."""

import pytest

from simperf.errors import InputError
from simperf.layout import SHARDINGS
from simperf.memory import ParameterBytes, state_memory
from simperf.memory.sharded_states import SHARDED_KINDS

PSI = 7.5e9


@pytest.mark.parametrize("over", [1, 4, 64, 1024])
def test_zero_as_in_its_paper(over):
    k = 12
    expected = {
        "none": (2 + 2 + k) * PSI,
        "zero-1": (2 + 2) * PSI + k * PSI / over,
        "zero-2": 2 * PSI + (2 + k) * PSI / over,
        "zero-3": (2 + 2 + k) * PSI / over,
    }
    for sharding, total in expected.items():
        found = state_memory(PSI, ParameterBytes(), sharding=sharding, over=over)
        assert sum(found.values()) == pytest.approx(total, rel=1e-12)


def test_the_distributed_optimizer_with_gradients_in_fp32():
    """NVIDIA/Megatron-LM, docs/source/api-guide/dist_optimizer.md: 18 bytes, and 6 + 12 / d."""
    each = ParameterBytes(gradients=4.0)
    assert each.total == 18
    assert sum(state_memory(1.0, each, sharding="zero-1", over=8).values()) == 6 + 12 / 8


def test_every_sharding_of_a_layout_is_known():
    assert set(SHARDED_KINDS) == set(SHARDINGS)
    with pytest.raises(InputError, match="no such sharding"):
        state_memory(1.0, ParameterBytes(), sharding="zero-4")
