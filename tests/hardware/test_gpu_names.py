"""Names of GPUs as drivers write them."""

import pytest

from simperf.hardware import Catalog
from simperf.hardware.gpu_names import gpu_of_driver


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NVIDIA H20", "h20-sxm5-96gb"),
        ("NVIDIA B300 SXM6 AC", "b300-sxm-270gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-blackwell-server"),
        ("AMD Instinct MI250X / MI250", "mi250x"),
        ("Tesla V100-SXM3-32GB-H", "v100-sxm3-32gb"),
    ],
)
def test_the_gpu_that_a_driver_names(name, part):
    assert gpu_of_driver(name, Catalog.load()).name == part


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA H20-3e",
        "NVIDIA H100 NVL",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA L40",
        "NVIDIA A10-24Q",
        "GRID T4-16Q",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb",
        "AMD Instinct MI300X VF",
        "NVIDIA A100",  # four of them
        "Quadro RTX 6000",
        "A GPU that nobody makes",
        "",
    ],
)
def test_other_products_and_names_of_several_are_no_gpu(name):
    assert gpu_of_driver(name, Catalog.load()) is None
