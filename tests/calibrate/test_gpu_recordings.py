"""The GPUs that were measured: what the catalogue says of them, to which nothing was fitted."""

import statistics
from pathlib import Path

import pytest

import simperf
from simperf.calibrate.validation import validate
from simperf.errors import InputError

FOLDER = Path(simperf.__file__).parent.parent / "calibration"


def errors(gpu, data):
    """Errors of a data set's points by the family of their series."""
    found = {}
    for point in validate(gpu, FOLDER / data).points:
        found.setdefault(point.series if point.series.startswith("op/") else point.series.partition("/")[0], []).append(
            point.error
        )
    return found


def middle(found):
    return statistics.median(map(abs, found))


def test_kernels_of_training_on_an_h100():
    found = errors("h100-sxm5-80gb", "gpu-h100-training.json.gz")
    assert len(found["op/gemm"]) == 530
    assert middle(found["op/gemm"]) < 0.06
    assert middle(found["op/attention"]) < 0.08
    assert middle(found["op/elementwise"]) < 0.08


@pytest.mark.parametrize(("gpu", "data"), [("h100-sxm5-80gb", "gpu-h100"), ("h200-sxm-141gb", "gpu-h200")])
def test_memory_of_whole_steps(gpu, data):
    found = errors(gpu, f"{data}-steps.json.gz")
    assert middle(found["memory"]) < 0.07
    assert max(map(abs, found["memory"])) < 0.2
    assert len(found["step"]) == len(found["memory"])


def test_a_file_without_a_gpu_is_refused():
    with pytest.raises(InputError, match="no operation and no step of a GPU"):
        validate("h100-sxm5-80gb", FOLDER / "boxed-cluster-xeon-2c-ordinary.json.gz")
