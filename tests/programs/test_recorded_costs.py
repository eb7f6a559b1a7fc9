"""Times of recorded kernels on another GPU: ratios of the roofline's, and of nothing else."""

import pytest

from simperf.hardware import Catalog
from simperf.programs.recorded_costs import KernelRatios
from simperf.workload.recorded.kernel_class import KernelClass
from simperf.workload.recorded.recorded_step import RecordedActivity


def activity(kind, duration, **given):
    return RecordedActivity("kernel", 0, duration, 0.0, 0.0, (), KernelClass(kind, **given), 0.0, 0.0)


@pytest.fixture(scope="module")
def gpus():
    catalog = Catalog.load()
    return catalog.gpu("a100-sxm4-80gb"), catalog.gpu("h100-sxm5-80gb")


@pytest.mark.parametrize("kind", ["collective", "copy"])
def test_what_is_not_computed_takes_as_long(gpus, kind):
    assert KernelRatios(*gpus).time(activity(kind, 3e-4)) == 3e-4


@pytest.mark.parametrize("kind", ["memory", "product", "attention", "convolution"])
def test_there_and_back_is_the_same_and_the_same_gpu_is_as_recorded(gpus, kind):
    one, other = gpus
    before = activity(kind, 5e-4, dtype="fp16")
    assert KernelRatios(one, one).time(before) == pytest.approx(5e-4)
    there = KernelRatios(one, other).time(before)
    assert there < 5e-4
    if kind != "memory":  # whose bytes follow from its time
        assert KernelRatios(other, one).time(activity(kind, there, dtype="fp16")) == pytest.approx(5e-4)


def test_much_memory_takes_the_ratio_of_bandwidths(gpus):
    """Of 0.1 s, what a kernel pays beside its bytes is nothing."""
    one, other = gpus
    time = KernelRatios(one, other).time(activity("memory", 0.1))
    assert time / 0.1 == pytest.approx(one.memory_bandwidth / other.memory_bandwidth, rel=0.1)
