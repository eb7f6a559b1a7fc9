"""Published scaling of data parallelism; nothing is fitted but the speed of one device.

The limits state what is reached, failures included: a change that makes one worse has to say so. What fails most is
BERT-large with small batches on machines whose real all-reduce is slower than its wires (RTX 4090) or whose second GPU
costs something that is no communication (V100), and DataParallel's and MXNet's own work in Python.
"""

from statistics import median

import pytest

from simperf.run import run_variants
from simperf.scenario import load_scenario
from simperf.units import parse

#: scenario: largest absolute error of its variants
LIMITS = {
    "ddp-resnet50": 0.03,
    "ddp-resnet50-small-buckets": 0.06,
    "ddp-resnext50": 0.06,
    "ddp-resnext50-small-buckets": 0.07,
    "d2l-resnet18": 0.16,
    "d2l-lenet": 0.11,
    "lambda-v100-resnet50": 0.04,
    "lambda-a100-resnet50": 0.14,
    "lambda-h100-resnet50": 0.02,
    "lambda-rtx4090-resnet50": 0.07,
    "lambda-v100-bert": 0.40,
    "lambda-h100-bert": 0.10,
    "lambda-rtx4090-bert": 0.60,
    "lambda-a100-pcie-resnet50": 0.05,
    "lambda-rtx3090-resnet50": 0.06,
    "lambda-rtxa6000-resnet50": 0.05,
    "lambda-rtx6000ada-resnet50": 0.03,
    "lambda-b200-resnet50": 0.02,
    "lambda-a100-pcie-bert": 0.30,
    "lambda-rtx3090-bert": 0.28,
    "lambda-rtxa6000-bert": 0.36,
    "lambda-rtx6000ada-bert": 0.17,
    "lambda-b200-bert": 0.08,
    "dle-pytorch-a100": 0.03,
    "dle-pytorch-v100": 0.03,
    "dle-mxnet-a100": 0.03,
    "dle-mxnet-v100": 0.03,
    "dle-tensorflow-a100": 0.03,
    "dle-tensorflow-v100": 0.03,
    "dle-bert-a100": 0.06,
    "dle-bert-pretraining-128-a100": 0.03,
    "dle-bert-pretraining-512-a100": 0.04,
    "dle-bert-pretraining-128-v100": 0.05,
    "dle-transformer-a100": 0.19,
    "dle-transformer-v100": 0.19,
    "horovod-512-p100": 0.20,
    "tf-replicated-dgx1-p100-vgg16": 0.15,
    "tf-replicated-dgx1-p100-alexnet": 0.19,
}


def pairs(name):
    """Predicted and measured figures of a scenario."""
    for attempt in run_variants(load_scenario(f"measured/{name}"), record=False):
        for one in attempt.scenario.measurements:
            found = attempt.result.metrics[one.key.removeprefix("metrics.")]
            yield found.value, parse(one.value, found.unit)


@pytest.fixture(scope="module")
def errors():
    return {name: [predicted / measured - 1 for predicted, measured in pairs(name)] for name in LIMITS}


@pytest.mark.parametrize("name", LIMITS)
def test_errors_are_as_stated(errors, name):
    assert max(map(abs, errors[name])) <= LIMITS[name]


def test_the_median_error_is_below_eight_percent(errors):
    assert median(abs(error) for name in LIMITS for error in errors[name]) <= 0.08


@pytest.mark.parametrize("name", LIMITS)
def test_which_of_two_set_ups_is_faster_is_right(name):
    """LeNet is slower on two GPUs, small buckets are no faster, everything else gains from GPUs."""
    found = list(pairs(name))
    for first, left in found:
        for second, right in found:
            if left < 0.98 * right:
                assert first < second * 1.01


def test_buckets_of_1_mb_are_no_faster_than_of_25():
    """As published: by 0.3 to 3.8 % slower, which is more than is predicted."""
    small, usual = ([predicted for predicted, _ in pairs(f"ddp-resnet50{end}")] for end in ("-small-buckets", ""))
    assert all(one / 0.101 >= other / 0.1 * 0.98 for one, other in zip(small, usual, strict=True))
