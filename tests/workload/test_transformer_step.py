"""The training step of a transformer by its dimensions is the traced one, kernel by kernel."""

import pytest

from simperf.errors import InputError
from simperf.workload import zoo
from simperf.workload.transformers import Transformer, from_config
from simperf.workload.transformers.step import training_model

MODELS = {
    "llama2-7b": Transformer(layers=32, hidden=4096, heads=32, ffn=11008, vocabulary=32000, sequence=4096),
    **{
        name: from_config(
            {"model_type": "gpt2", "n_layer": layers, "n_embd": width, "n_head": heads, "n_positions": 1024}
            | {"vocab_size": 50257}
        )
        for name, layers, width, heads in (("gpt2", 12, 768, 12), ("gpt2-xl", 48, 1600, 25))
    },
}


@pytest.fixture(scope="module", params=MODELS)
def pair(request):
    return training_model(MODELS[request.param]), zoo.load(request.param)


def kernel(op):
    reads, writes = ([(one.elements, one.passes) for one in operands] for operands in (op.reads, op.writes))
    return op.kind, op.family, op.flops, reads, writes, [size.at(3) for size in op.gemm]


def test_the_kernels_are_those_of_the_trace(pair):
    made, traced = pair
    assert made.forward == traced.forward
    assert [kernel(op) for op in made.ops] == [kernel(op) for op in traced.ops]


def test_the_same_operations_at_a_batch_and_a_precision(pair):
    made, traced = (model.at(2, "bf16") for model in pair)
    assert [one.nbytes for one in made.ops] == [one.nbytes for one in traced.ops]
    assert (made.parameter_nbytes, made.input_nbytes) == (traced.parameter_nbytes, traced.input_nbytes)


def test_gradients_become_ready_in_the_same_order(pair):
    made, traced = ([(model.parameters[one.parameter].name, one.after) for one in model.gradients] for model in pair)
    assert made == [(name.replace("word.", "embed.").replace(".out.", ".o."), after) for name, after in traced]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
@pytest.mark.parametrize("batch", [1, 4])
def test_the_same_memory(pair, batch, precision):
    made, traced = (model.memory(batch, precision) for model in pair)
    assert made == {key: pytest.approx(value, rel=1e-9, abs=8) for key, value in traced.items()}


def test_grouped_queries_have_narrower_keys_and_less_work():
    few = {"layers": 2, "hidden": 256, "heads": 8, "vocabulary": 100, "sequence": 32}
    whole, grouped = (training_model(Transformer(**few, kv_heads=count)) for count in (8, 2))
    names = [op.name for op in whole.ops]
    assert names == [op.name for op in grouped.ops]
    less = {name for name, a, b in zip(names, whole.ops, grouped.ops, strict=True) if a.flops != b.flops}
    assert {"blocks.0.k.matmul", "blocks.1.v.matmul.back"} <= less
    assert "blocks.0.q.matmul" not in less
    assert grouped.parameter_count == Transformer(**few, kv_heads=2).parameters


def test_dropout_and_a_head_of_its_own():
    few = {"layers": 2, "hidden": 64, "heads": 4, "vocabulary": 100, "sequence": 16, "bias": True}
    few |= {"norm": "layer", "positions": "learned", "activation": "gelu"}
    tied, own, dropped = (
        training_model(Transformer(**few, **more)) for more in ({"tied": True}, {}, {"tied": True, "dropout": True})
    )
    assert own.parameter_count - tied.parameter_count == 100 * 64
    assert len(tied.ops) - len(own.ops) == 1, "the two gradients of the embedding are added up"
    drops = [op.kind for op in dropped.ops if "dropout" in op.kind]
    assert len(dropped.ops) - len(tied.ops) == len(drops) == 2 * (1 + 2 * 2)
    assert len(own.gradients) == len(own.parameters)


def test_models_whose_kernels_are_not_known():
    few = {"layers": 1, "hidden": 8, "heads": 1, "vocabulary": 9, "sequence": 4}
    for given, keys in (
        ({"tied": True, "qk_norm": True}, ["tied", "qk_norm"]),
        ({"norm": "layer", "tied": True}, ["positions", "activation", "bias"]),
        ({"experts": 4, "experts_per_token": 2}, ["experts"]),
    ):
        with pytest.raises(InputError) as caught:
            training_model(Transformer(**few, **given))
        assert [one.key for one in caught.value.problems] == keys
