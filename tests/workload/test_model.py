"""Traced models of the zoo: published counts, steps, precisions, gradients (no torch needed)."""

from itertools import pairwise

import pytest

from simperf.errors import InputError, UnknownNameError
from simperf.workload import zoo
from simperf.workload.mixed import TRAINING_PRECISIONS
from simperf.workload.op import MATRIX_FAMILIES
from simperf.workload.optimizers import OPTIMIZERS, implemented
from simperf.workload.traced import Affine

# parameters: He and others 2016, Simonyan and Zisserman 2015, Krizhevsky 2014 as PyTorch's model documentation
# gives them; BERT and GPT-2 of the released checkpoints; Touvron and others 2023. GMAC: the same documentation.
CHANNELS = (1024, 512, 512, 256, 256, 256)
PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "resnext50": 25_028_904,
    "resnext101": 88_791_336,
    "vgg16": 138_357_544,
    "alexnet": 61_100_840,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    # what the logs of Lambda's benchmark count (lambdal/deeplearning-benchmark, PyTorch_gnmt_FP32)
    "gnmt": 159_593_523,
    "gnmt-padded": 159_593_523 + 6 * (1024 + 1024 + 1),
    # ResNet-50 without its last stage and classifier, five pairs of layers, and heads for 81 classes and 4 numbers
    "ssd300": 25_557_032
    - 14_964_736
    - 2_049_000
    + sum(
        a * w + 2 * w + 9 * w * b + 2 * b
        for a, w, b in zip(CHANNELS[:-1], (256, 256, 128, 128, 128), CHANNELS[1:], strict=True)
    )
    + sum((9 * c + 1) * n * (81 + 4) for c, n in zip(CHANNELS, (4, 6, 6, 6, 4, 4), strict=True)),
    # NVIDIA's Tacotron 2: embedding, encoder, prenet, cells, attention, projection and gate, postnet
    "tacotron2": 148 * 512
    + 3 * (512 * 512 * 5 + 3 * 512)
    + 2 * (4 * 256 * (512 + 256) + 8 * 256)
    + (80 + 256) * 256
    + 4 * 1024 * (768 + 1024 + 1536 + 1024)
    + 2 * 8 * 1024
    + (1024 + 512 + 1 + 32) * 128
    + 2 * 32 * 31
    + (1536 + 1) * 81
    + 2 * 80 * 512 * 5
    + 3 * 512 * 512 * 5
    + 3 * (4 * 512 + 80),
    "lenet": 20 * 9 + 20 + 50 * 20 * 25 + 50 + 800 * 128 + 128 + 128 * 10 + 10,
    "mlp": 784 * 256 + 256 + 256 * 10 + 10,
}
GMACS = {
    "resnet18": 1.81,
    "resnet34": 3.66,
    "resnet50": 4.09,
    "resnet101": 7.80,
    "resnet152": 11.51,
    "vgg16": 15.47,
    "alexnet": 0.71,
}


@pytest.mark.parametrize(("name", "count"), PARAMETERS.items())
def test_parameters_are_those_published(name, count):
    assert zoo.load(name).parameter_count == count


@pytest.mark.parametrize(("name", "gmacs"), GMACS.items())
def test_work_is_that_published(name, gmacs):
    assert round(zoo.load(name).macs() / 1e9, 2) == gmacs


def test_transformer_work_against_the_closed_form():
    """2 P T for the matrices, and 4 T^2 d a layer for attention, half of it if causal (Kaplan and others, 2020)."""
    model, tokens, width, layers = zoo.load("gpt2"), 1024, 768, 12
    matrices = 12 * layers * width**2 + 50257 * width
    attention = 2 * tokens**2 * width * layers / 2
    assert model.macs() == pytest.approx(matrices * tokens + attention, rel=1e-12)
    base = zoo.load("bert-base")
    assert base.macs() == pytest.approx(12 * 12 * 768**2 * 512 + 2 * 512**2 * 768 * 12 + 768**2, rel=1e-12)


def test_tacotron_has_its_published_size_and_the_work_of_its_layers():
    """28.2 million parameters; a segment of 29 frames and 6 letters, with an attention over 180."""
    model, frames, letters, seen = zoo.load("tacotron2"), 29, 6, 180
    assert model.parameter_count == 28_193_153
    cells = 4 * 1024 * (768 + 1024) + 4 * 1024 * (1536 + 1024)
    attention = 1024 * 128 + seen * (2 * 31 * 32 + 32 * 128 + 128 + 512)
    encoder = letters * (3 * 512 * 512 * 5 + 2 * 4 * 256 * (512 + 256))
    prenet = (frames + 1) * (80 + 256) * 256  # the first frame is silence
    postnet = frames * (2 * 80 * 512 + 3 * 512 * 512) * 5
    decoder = frames * (cells + attention + 1536 * 81)
    assert model.macs() == encoder + seen * 512 * 128 + prenet + decoder + postnet


@pytest.mark.parametrize("name", ["resnet50", "vgg16", "bert-base", "gpt2", "llama2-7b"])
def test_backward_is_twice_forward(name):
    """Each product has two gradients; only the first layer's input and recomputed scores differ."""
    model = zoo.load(name)
    forward, backward = (
        sum(op.flops.at(1) for op in part if op.family in MATRIX_FAMILIES)
        for part in (model.ops[: model.forward], model.ops[model.forward :])
    )
    assert 1.9 < backward / forward < 2.2


@pytest.mark.parametrize("name", zoo.names())
def test_every_model_is_small_quick_and_whole(name):
    model = zoo.load(name)
    path = zoo.model_files()[name]
    assert path.stat().st_size < 400 * 1024
    assert sorted(order.parameter for order in model.gradients) == list(range(len(model.parameters)))
    told = ("gnmt", "gnmt-padded", "tacotron2", "waveglow")
    assert not model.notes or name in told, "steps of an LSTM; determinants of 8 x 8"
    assert {op.kind for op in model.ops if op.family in MATRIX_FAMILIES}


def test_all_together_are_small():
    assert sum(path.stat().st_size for path in zoo.model_files().values()) < 1.5 * 2**20


@pytest.mark.parametrize("precision", TRAINING_PRECISIONS)
@pytest.mark.parametrize("name", ["lenet", "resnet18", "bert-base-128"])
def test_a_step_is_a_graph_in_every_precision(name, precision):
    step = zoo.load(name).at(4, precision)
    graph = step.graph()  # checks that everything read is made before or given
    assert len(graph.ops) == len(step.forward) + len(step.backward) + len(step.update)
    assert {gradient.name for gradient in step.gradients} == {p.name for p in zoo.load(name).parameters}
    for before, after in pairwise(step.gradients):
        assert before.after <= after.after
    for gradient in step.gradients:
        made = [i for i, op in enumerate(step.backward) if gradient.tensor in op.outputs]
        assert made
        assert made[-1] <= gradient.after


def test_gradients_come_from_the_last_layer_to_the_first():
    names = [gradient.name for gradient in zoo.load("lenet").at(8).gradients]
    assert [name.split(".")[0] for name in names] == ["9", "9", "7", "7", "3", "3", "0", "0"]
    tied = [gradient.name for gradient in zoo.load("gpt2").at(1).gradients]
    assert set(tied[-2:]) == {"word.weight", "position.weight"}  # the head's part waits for the embedding's


def test_precision_changes_bytes_and_units():
    model = zoo.load("bert-base-128")
    steps = {name: model.at(8, name) for name in TRAINING_PRECISIONS}
    traffic = {name: sum(op.nbytes for op in step.forward) for name, step in steps.items()}
    assert traffic["tf32"] == traffic["fp32"]
    assert traffic["bf16-pure"] / traffic["fp32"] == pytest.approx(0.5, abs=0.02)
    assert traffic["bf16-pure"] < traffic["bf16"] < traffic["fp32"]
    for name, mode in TRAINING_PRECISIONS.items():
        products = {op.dtype for op in steps[name].ops if op.family in MATRIX_FAMILIES}
        assert products == {mode.matrix}
    assert steps["bf16"].gradient_nbytes == steps["fp32"].gradient_nbytes == 4 * model.parameter_count
    assert steps["bf16-master"].gradient_nbytes == 2 * model.parameter_count


def test_mixed_precision_casts_each_weight_once():
    step = zoo.load("gpt2").at(2, "bf16")
    casts = [op.outputs[0] for op in step.ops if op.kind == "cast"]
    weights = [name for name in casts if name.endswith("weight.bf16")]
    assert len(weights) == len(set(weights)) == 4 * 12 + 1  # four products a block, and the head
    norms = [op for op in step.forward if op.kind == "layernorm"]
    assert {op.dtype for op in norms} == {"fp32"}
    gelu = next(op for op in step.forward if op.kind == "gelu")
    assert gelu.dtype == "bf16"
    assert gelu.nbytes == 2 * 2 * (2 * 1024 * 4 * 768)


def test_update_is_that_of_the_optimizer():
    model = zoo.load("resnet50")
    count = model.parameter_count
    for name, steps in OPTIMIZERS.items():
        if steps.looped:
            continue
        update = model.at(32, optimizer=name).update
        assert len(update) == len(steps.kernels)
        assert sum(op.nbytes for op in update) == 4 * count * sum(k.reads + k.writes for k in steps.kernels)
    assert model.at(32, "fp16").update[0].kind == "unscale"
    master = model.at(32, "bf16-master").update
    assert [master[0].kind, master[-1].kind] == ["cast", "cast"]


@pytest.mark.parametrize("name", [name for name, steps in OPTIMIZERS.items() if steps.looped])
def test_a_looped_update_launches_its_kernels_for_each_tensor(name):
    model, steps = zoo.load("bert-base-128"), OPTIMIZERS[name]
    update = model.at(8, "tf32", optimizer=name).update
    names = {model.parameters[one.parameter].name: model.parameters[one.parameter] for one in model.gradients}
    for key, parameter in names.items():
        own = [op for op in update if op.name.startswith(f"update.{key}.")]
        due = [k for k in steps.kernels if len(parameter.shape) > 1 or not k.matrices]
        assert [op.kind for op in own] == [k.kind for k in due]
        assert all(after.inputs == before.outputs for before, after in pairwise(own)), "one after the other"
        arrays = [(op, k) for op, k in zip(own, due, strict=True) if k.reads or k.writes]
        assert all(op.nbytes == 4 * parameter.elements * (k.reads + k.writes) for op, k in arrays)
        assert all(op.elements == 1 for op, k in zip(own, due, strict=True) if not (k.reads or k.writes))
    assert len(update) == sum(
        sum(len(one.shape) > 1 or not k.matrices for k in steps.kernels) for one in names.values()
    )
    model.at(8, "tf32", optimizer=name).graph()  # names are unique, and operations stand behind what they read


def test_a_looped_update_of_half_weights_is_unscaled_and_cast_once():
    model = zoo.load("lenet")
    update = model.at(8, "fp16-master", optimizer="for-loop").update
    kinds = [op.kind for op in update]
    assert (kinds[:2], kinds[-1]) == (["unscale", "cast"], "cast")
    assert len(kinds) == 3 + len(model.gradients) * len(OPTIMIZERS["sgd-for-loop"].kernels)


def test_an_implementation_is_that_of_the_optimizer_that_was_traced():
    model = zoo.load("resnet50")
    assert model.update("for-loop") is OPTIMIZERS["momentum-decay-for-loop"]
    assert model.update("foreach") is OPTIMIZERS["momentum-decay"]
    assert model.update("fused") is OPTIMIZERS["momentum-decay-fused"]
    with pytest.raises(UnknownNameError, match="bert-adam"):
        implemented("bert-adam-for-loop", "foreach")


def test_an_implementation_moves_the_same_bytes_but_for_what_it_fuses():
    model = zoo.load("bert-base-128")
    sizes = {
        name: sum(op.nbytes for op in model.at(8, optimizer=f"momentum{name}").update) for name in ("", "-for-loop")
    }
    assert sizes[""] == sizes["-for-loop"]


def test_the_batch_scales_activations_not_weights():
    model = zoo.load("resnet50")
    one, two, three = (sum(op.nbytes for op in model.at(b).forward + model.at(b).backward) for b in (1, 2, 3))
    assert three - two == pytest.approx(two - one, rel=1e-12)
    assert model.at(64).gradient_nbytes == model.at(1).gradient_nbytes
    assert model.at(64).input_nbytes == 64 * (3 * 224 * 224 * 4 + 8)
    conv = next(op for op in model.at(64).forward if op.kind == "conv2d")
    assert (conv.gemm.m, conv.gemm.n, conv.gemm.k) == (64 * 112 * 112, 64, 3 * 49)


def test_a_step_is_kept():
    model = zoo.load("lenet")
    assert model.at(8, "fp32") is model.at(8, "fp32")
    assert Affine(3, 2).at(5) == 13


def test_bad_questions():
    model = zoo.load("lenet")
    for batch in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="whole number"):
            model.at(batch)
    with pytest.raises(UnknownNameError, match="did you mean 'bf16'"):
        model.at(1, "bf61")
    with pytest.raises(UnknownNameError, match="'adamw'"):
        model.at(1, optimizer="adamv")
    with pytest.raises(UnknownNameError, match="did you mean 'resnet50'"):
        zoo.load("resnet5O")
