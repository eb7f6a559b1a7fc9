"""Published scaling of data parallelism; nothing is fitted but the speed of one device.

The limits state what is reached, failures included: a change that makes one worse has to say so. What fails most is
large models where GPUs go through the memory of AMD hosts (Lambda's runs with NCCL_P2P_DISABLE, above all eight A100),
which is slower there than its parts allow, sentences of unequal length, work in Python, and Lambda's Tacotron 2, whose
figures are mostly of one step that began by waiting for loaders (docs/explanation/training.md).
"""

from statistics import median

import pytest

from simperf.units import parse
from tests.truth.runs import UNORDERED, attempts

#: scenario: largest absolute error of its variants
LIMITS = {
    "ddp-resnet50": 0.015,
    "ddp-resnet50-small-buckets": 0.035,
    "ddp-resnext50": 0.045,
    "ddp-resnext50-small-buckets": 0.05,
    "ddp-resnet101-small-buckets": 0.055,
    "ddp-resnext101-small-buckets": 0.045,
    "d2l-resnet18": 0.16,
    "d2l-lenet": 0.11,
    "lambda-v100-resnet50": 0.045,
    "lambda-v100-ssd": 0.035,
    "lambda-v100-bert-base": 0.06,
    "lambda-v100-bert": 0.10,
    "lambda-v100-gnmt": 0.14,
    "lambda-v100-waveglow": 0.03,
    "lambda-v100-tacotron2": 0.19,
    "lambda-a100-resnet50": 0.09,
    "lambda-a100-ssd": 0.05,
    "lambda-a100-bert-base": 0.28,
    "lambda-a100-bert": 0.95,
    "lambda-a100-gnmt": 1.10,
    "lambda-a100-waveglow": 0.38,
    "lambda-a100-tacotron2": 1.45,
    "lambda-a100-pcie-resnet50": 0.025,
    "lambda-a100-pcie-ssd": 0.02,
    "lambda-a100-pcie-bert-base": 0.08,
    "lambda-a100-pcie-bert": 0.18,
    "lambda-a100-pcie-gnmt": 0.36,
    "lambda-a100-pcie-waveglow": 0.14,
    "lambda-a100-pcie-tacotron2": 0.11,
    "lambda-h100-resnet50": 0.02,
    "lambda-h100-ssd": 0.02,
    "lambda-h100-bert-base": 0.06,
    "lambda-h100-bert": 0.07,
    "lambda-h100-gnmt": 0.04,
    "lambda-h100-waveglow": 0.02,
    "lambda-h100-tacotron2": 0.25,
    "lambda-b200-resnet50": 0.02,
    "lambda-b200-ssd": 0.01,
    "lambda-b200-bert-base": 0.36,  # eight measured at twelve times one
    "lambda-b200-bert": 0.05,
    "lambda-b200-gnmt": 0.05,
    "lambda-b200-waveglow": 0.015,
    "lambda-b200-tacotron2": 0.70,
    "lambda-rtx3090-resnet50": 0.03,
    "lambda-rtx3090-ssd": 0.01,
    "lambda-rtx3090-bert-base": 0.05,
    "lambda-rtx3090-bert": 0.12,
    "lambda-rtx3090-gnmt": 0.26,
    "lambda-rtx3090-waveglow": 0.075,
    "lambda-rtx3090-tacotron2": 0.015,
    "lambda-rtx4090-resnet50": 0.03,
    "lambda-rtx4090-ssd": 0.02,
    "lambda-rtx4090-bert-base": 0.09,
    "lambda-rtx4090-bert": 0.30,
    "lambda-rtx4090-gnmt": 0.46,
    "lambda-rtx4090-waveglow": 0.14,
    "lambda-rtx4090-tacotron2": 0.015,
    "lambda-rtx6000ada-resnet50": 0.02,
    "lambda-rtx6000ada-ssd": 0.055,
    "lambda-rtx6000ada-bert-base": 0.04,
    "lambda-rtx6000ada-bert": 0.09,
    "lambda-rtx6000ada-gnmt": 0.11,
    "lambda-rtx6000ada-waveglow": 0.68,
    "lambda-rtx6000ada-tacotron2": 9.9,
    "lambda-rtxa6000-resnet50": 0.02,
    "lambda-rtxa6000-ssd": 0.02,
    "lambda-rtxa6000-bert-base": 0.095,
    "lambda-rtxa6000-bert": 0.24,
    "lambda-rtxa6000-gnmt": 0.44,
    "lambda-rtxa6000-waveglow": 0.15,
    "lambda-rtxa6000-tacotron2": 0.27,
    "dle-pytorch-a100": 0.10,
    "dle-pytorch-v100": 0.07,
    "dle-mxnet-a100": 0.05,
    "dle-mxnet-v100": 0.065,
    "dle-tensorflow-a100": 0.03,
    "dle-tensorflow-v100": 0.03,
    "dle-bert-a100": 0.03,
    "dle-bert-pretraining-128-a100": 0.02,
    "dle-bert-pretraining-512-a100": 0.02,
    "dle-bert-pretraining-128-v100": 0.03,
    "dle-bert-pretraining-512-v100": 0.02,
    "dle-gnmt-a100": 0.31,
    "dle-gnmt-v100": 0.31,
    "dle-transformer-a100": 0.16,
    "dle-transformer-v100": 0.19,
    "dle-dlrm-a100": 0.37,
    "dle-dlrm-v100": 0.35,
    "horovod-512-p100": 0.19,
    "horovod-16-p100-resnet101": 0.20,
    "tf-replicated-dgx1-p100-vgg16": 0.15,
    "tf-replicated-dgx1-p100-alexnet": 0.19,
    "tf-replicated-dgx1-p100-vgg16-real": 0.34,  # reading and decoding are not modelled
    "tf-replicated-dgx1-p100-alexnet-real": 0.42,
}


def pairs(name, *, ordered=False):
    """Predicted and measured figures of a scenario; all of them, or those that can be put in order."""
    for attempt in attempts(f"measured/{name}"):
        if ordered and (f"measured/{name}", attempt.name) in UNORDERED:
            continue
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
    found = list(pairs(name, ordered=True))
    for first, left in found:
        for second, right in found:
            if left < 0.98 * right:
                assert first < second * 1.01


def test_buckets_of_1_mb_are_no_faster_than_of_25():
    """As published: by 0.3 to 3.8 % slower, which is more than is predicted."""
    small, usual = ([predicted for predicted, _ in pairs(f"ddp-resnet50{end}")] for end in ("-small-buckets", ""))
    assert all(one / 0.101 >= other / 0.1 * 0.98 for one, other in zip(small, usual, strict=True))
