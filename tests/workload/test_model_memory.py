"""Memory of a training step, and the rules that it must obey (`footprint`, `lowering`)."""

import pytest

from simperf.errors import InputError
from simperf.workload import zoo
from simperf.workload.footprint import largest_model_batch, memory
from simperf.workload.lowering import lower
from simperf.workload.mixed import TRAINING_PRECISIONS, training_precision
from simperf.workload.optimizers import OPTIMIZERS

PARTS = ("weights", "master", "optimizer", "buffers", "gradients", "activations", "temporaries")


@pytest.mark.parametrize("precision", TRAINING_PRECISIONS)
@pytest.mark.parametrize("name", ["lenet", "resnet18", "gpt2"])
def test_parts_add_up_and_nothing_is_negative(name, precision):
    found = memory(zoo.load(name), 4, precision=precision)
    assert found["total"] == pytest.approx(sum(found[part] for part in PARTS), rel=1e-12)
    assert min(found.values()) >= 0
    assert 0 <= found["peak"] <= 1


def test_sixteen_bytes_a_parameter():
    """Mixed precision with Adam: 2 weights, 2 gradients, 12 master weights and moments (ZeRO, SC 2020, section 3.1)."""
    model = zoo.load("gpt2")
    found = memory(model, 1, precision="fp16-master", optimizer="adam-fused", resident_gradients=True)
    states = sum(found[part] for part in ("weights", "gradients", "master", "optimizer"))
    assert states == 16 * model.parameter_count


def test_perceptron_by_hand():
    """784-256-10 at batch b, SGD, fp32: what is alive when the last weight gradient is made."""
    model, b = zoo.load("mlp"), 1000
    found = memory(model, b, optimizer="sgd")
    values = {
        "input": 784 * b * 4,
        "targets": b * 8,
        "logits": 10 * b * 4,
        "loss": 4,
    }
    hidden = 256 * b * 4
    assert found["weights"] == 4 * 203_530
    # first layer: the gradient after the ReLU is read to make that of the weight; ReLU's input is overwritten or gone
    least = sum(values.values()) + hidden
    assert least <= found["activations"] + found["temporaries"] <= least + 3 * hidden + 4 * values["logits"]


def test_activations_grow_with_the_batch_and_half_as_fast_in_half_precision():
    model = zoo.load("resnet50")
    full = [memory(model, b, precision="fp32")["total"] for b in (64, 128, 192)]
    half = [memory(model, b, precision="bf16-pure")["total"] for b in (64, 128, 192)]
    assert full[2] - full[1] == pytest.approx(full[1] - full[0], rel=1e-6)
    assert (half[1] - half[0]) / (full[1] - full[0]) == pytest.approx(0.5, abs=0.02)


def test_kept_gradients_need_no_less():
    model = zoo.load("vgg16")
    freed, kept = (memory(model, 16, resident_gradients=flag) for flag in (False, True))
    assert kept["gradients"] == 4 * model.parameter_count
    assert kept["total"] >= freed["total"]


def test_states_follow_the_optimizer():
    model = zoo.load("lenet")
    for name, steps in OPTIMIZERS.items():
        assert memory(model, 1, optimizer=name)["optimizer"] == 4 * steps.states * model.parameter_count


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_everything_is_born_before_it_dies(precision):
    lowered = lower(zoo.load("bert-base-128"), 2, training_precision(precision))
    for one in lowered.tensors:
        assert 0 <= one.born < one.dies <= len(lowered.ops)
        assert one.nbytes >= 0
    kept = sum(one.nbytes for one in lowered.tensors if one.kind == "gradients")
    assert kept == sum(nbytes for _, _, nbytes, _ in lowered.gradients)


def test_largest_batch_is_the_last_that_fits():
    model = zoo.load("resnet50")
    capacity = 16e9
    most = largest_model_batch(model, capacity)
    assert memory(model, most)["total"] <= capacity < memory(model, most + 1)["total"]
    assert model.largest_batch(capacity) == most
    assert model.largest_batch(capacity, "bf16") > 1.5 * most
    assert largest_model_batch(zoo.load("llama2-7b"), 80e9) == 0
    with pytest.raises(InputError, match="finite"):
        largest_model_batch(model, float("nan"))


@pytest.mark.parametrize(
    ("name", "batch", "total"),
    [("resnet18", 32, 829_383_304), ("resnet50", 32, 2_987_738_000), ("vgg16", 16, 2_808_347_496)],
)
def test_peak_is_that_of_torchs_own_tracker(name, batch, total):
    """`torch.distributed._tools.mem_tracker` (2.13) over the second step, SGD with momentum, plus its momentum."""
    assert memory(zoo.load(name), batch)["total"] == total
