"""Memory that no tensor holds."""

import pytest

from simperf.memory import communicator_buffers, workspace


@pytest.mark.parametrize("library", ["torch", "transformer-engine"])
def test_newer_generations_keep_32_mib(library):
    assert workspace(library, "hopper") == workspace(library, "blackwell") == 32 * 2**20
    assert workspace(library, "ampere") < workspace(library, "hopper")


def test_buffers_of_an_all_to_all_as_nccl_counts_them():
    """NVIDIA/nccl, issue 1685: 8 x H100, 32 channels to and from each of 7 others, 3.28 GB beside the rest."""
    assert communicator_buffers(32 * 7) == pytest.approx(3.28e9, rel=0.15)
