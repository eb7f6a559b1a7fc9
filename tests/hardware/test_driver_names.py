"""GPUs by the names that their drivers give them."""

import pytest

from simperf.hardware import Catalog
from simperf.hardware.driver_names import gpu_of_driver


@pytest.mark.parametrize(
    ("driver", "part"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("A GPU that nobody makes", None),
    ],
)
def test_gpus_are_found_by_the_names_of_their_drivers(driver, part):
    assert getattr(gpu_of_driver(driver, Catalog.load()), "name", None) == part
