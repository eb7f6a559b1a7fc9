"""The matrix is what nvidia-smi topo -m prints on the real machine."""

import pytest

from simperf.hardware import Catalog, connection, connectivity

CATALOG = Catalog.load()
#: pytorch, benchmarks/distributed/ddp/README.md
DGX_1V = """
X NV1 NV1 NV2 NV2 SYS SYS SYS
NV1 X NV2 NV1 SYS NV2 SYS SYS
NV1 NV2 X NV2 SYS SYS NV1 SYS
NV2 NV1 NV2 X SYS SYS SYS NV1
NV2 SYS SYS SYS X NV1 NV1 NV2
SYS NV2 SYS SYS NV1 X NV2 NV1
SYS SYS NV1 SYS NV1 NV2 X NV2
SYS SYS SYS NV1 NV2 NV1 NV2 X
"""


@pytest.mark.parametrize("name", ["dgx-1v", "p3-16xlarge", "p3dn-24xlarge"])
def test_hybrid_cube_mesh_as_published(name):
    machine = CATALOG.machine(name)
    wanted = [row.split() for row in DGX_1V.strip().splitlines()]
    assert [[connection(machine, a, b) for b in machine.gpus] for a in machine.gpus] == wanted


@pytest.mark.parametrize(
    ("name", "a", "b", "word"),
    [
        ("dgx-a100", "gpu0", "gpu7", "NV12"),
        ("dgx-h100", "gpu0", "gpu7", "NV18"),
        ("dgx-2", "gpu0", "gpu15", "NV6"),
        ("pcie-4gpu", "gpu0", "gpu3", "PIX"),
        ("p2-16xlarge", "gpu0", "gpu1", "PIX"),
        ("p2-16xlarge", "gpu0", "gpu2", "PXB"),
        ("p2-16xlarge", "gpu0", "gpu8", "SYS"),
        ("desktop-2gpu", "gpu0", "gpu1", "PHB"),
        ("dgx-a100-x4", "n0/gpu0", "n1/gpu0", "NET"),
        ("dgx-a100", "gpu0", "nic0", "PIX"),
    ],
)
def test_phrases(name, a, b, word):
    assert connection(CATALOG.machine(name), a, b) == word


def test_unconnected_devices_and_large_machines(wired):
    chain = wired({"gpu0": "gpu", "gpu1": "gpu", "gpu2": "gpu"}, [("gpu0", "gpu1", 1, 1), ("gpu1", "gpu2", 1, 1)])
    assert connection(chain, "gpu0", "gpu2") == "-"
    devices, rows = connectivity(CATALOG.machine("dgx-h100-x128"))
    assert len(devices) == len(rows) == 32
    assert devices[0] == "n0/gpu0"
