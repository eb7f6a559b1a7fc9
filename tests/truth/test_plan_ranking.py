"""A plan for ResNet-50 on ImageNet ranks instances as published throughput does."""

import re

import pytest

from simperf.study.planning import make_request, plan

#: precision, instance, case, row that is taken (by its number of GPUs), column; figures are read from the cases
PUBLISHED = [
    ("fp32", "p2-xlarge", "tf-ec2-k80-synth", 1, "resnet50"),
    ("fp32", "p2-8xlarge", "tf-ec2-k80-synth", 8, "resnet50"),
    ("fp32", "dgx-1p", "tf-dgx1-p100-synth", 8, "resnet50"),
    ("fp32", "p3-2xlarge", "dle-017-pytorch-classification-convnets-resnet50v1-5", 1, "Throughput - FP32"),
    ("fp32", "p3-16xlarge", "dle-017-pytorch-classification-convnets-resnet50v1-5", 8, "Throughput - FP32"),
    ("tf32", "p4d-24xlarge", "dle-097-tensorflow-classification-convnets-resnet50v1-5", 8, "Throughput - TF32 + XLA"),
    ("tf32", "dgx-a100", "dle-016-pytorch-classification-convnets-resnet50v1-5", 8, "Throughput - TF32"),
    ("tf32", "p5-48xlarge", "lambda-h100sxm580gb-fp32", 8, "resnet50"),
    ("tf32", "dgx-b200", "lambda-b200sxm180gb-fp32", 8, "resnet50"),
    ("fp16", "p3-2xlarge", "dle-017-pytorch-classification-convnets-resnet50v1-5", 1, "Throughput - mixed precision"),
    ("fp16", "p3-16xlarge", "dle-017-pytorch-classification-convnets-resnet50v1-5", 8, "Throughput - mixed precision"),
    ("fp16", "dgx-a100", "dle-016-pytorch-classification-convnets-resnet50v1-5", 8, "Throughput - mixed precision"),
]


def published(case, gpus, column):
    columns = case["measured"]["columns"]
    place = next(i for i, name in enumerate(columns) if name.lower() in ("gpus", "num_gpu"))
    row = next(row for row in case["measured"]["table"] if int(float(row[place])) == gpus)
    return float(re.match(r"[\d.,]+", str(row[columns.index(column)])).group().replace(",", ""))


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    return [order.index(i) for i in range(len(values))]


def spearman(one, two):
    a, b = ranks(one), ranks(two)
    n = len(a)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / (n * (n * n - 1))


def predicted():
    """Images a second of each candidate, by precision and instance; prices play no part and are made up."""
    rates = {}
    for precision in dict.fromkeys(row[0] for row in PUBLISHED):
        instances = [row[1] for row in PUBLISHED if row[0] == precision]
        request = make_request(
            {
                "plan": {"model": "resnet50", "precision": precision, "samples": 1_281_167, "epochs": 90},
                "candidates": {"instances": instances, "nodes": 1, "batch_per_gpu": 64},
                "prices": {"own": dict.fromkeys(instances, "1 USD/h")},
            }
        )
        rates |= {(precision, one.choice.instance): one.rate for one in plan(request, cache=False).ranked}
    return rates


@pytest.mark.truth
def test_the_ranking_by_images_a_second(cases):
    rates = predicted()
    ours = [rates[precision, instance] for precision, instance, *_ in PUBLISHED]
    theirs = [published(cases[case], gpus, column) for _, _, case, gpus, column in PUBLISHED]
    assert spearman(ours, theirs) >= 0.9, list(zip(PUBLISHED, ours, theirs, strict=True))


def test_the_correlation_of_ranks():
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == -1
