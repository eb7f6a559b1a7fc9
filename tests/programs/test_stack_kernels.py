"""Kernels of a layer and the optimizer of a stack: where they have an effect, what goes before, what is refused."""

from dataclasses import replace

import pytest

import simperf
from simperf.errors import InputError, SimperfError
from simperf.programs.stack_file import load_stack
from simperf.scenario import make_scenario
from simperf.training.job import Job
from simperf.training.replica import Layers, Traced
from simperf.training.stack import Stack
from simperf.training.strategies import DDP, Servers
from simperf.workload import zoo
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.optimizers import OPTIMIZERS
from simperf.workload.transformers import Transformer

MINE = """
format = 1
kind = "stack"
title = "Mine"
optimizer = "adamw-fused"

[strategy]
kind = "ddp"

[kernels]
attention = "unfused"
norm = "fused"

[source]
optimizer = "its code"
attention = "its code, line 3"
norm = "its code"
"""
DIMENSIONS = {"layers": 2, "hidden": 256, "heads": 4, "vocabulary": 1000, "sequence": 128, "ffn": 512}


def tables(**program):
    shared = {"use": "train", "precision": "fp16", "batch_per_gpu": 4, "gpus": 2, "stack": "mine.toml", **program}
    return {"machine": {"use": "dgx-1v"}, "model": DIMENSIONS, "program": shared}


def job(folder, **program):
    scenario = make_scenario(tables(**program), folder=folder)
    return scenario.program.options.made(scenario.parameters)


def test_a_stack_says_kernels_and_the_optimizer(mine):
    folder = mine()
    stack = load_stack("mine.toml", folder)
    assert (stack.optimizer, stack.kernels) == ("adamw-fused", LayerKernels("unfused", "fused"))
    made = job(folder)
    assert made.model.model.kernels == LayerKernels("unfused", "fused")
    assert made.model.optimizer == "adamw-fused"
    transformer = Transformer(**DIMENSIONS)
    assert made.model.model == zoo.load(replace(transformer, name=made.model.name), made.stack.kernels)


def test_results_say_what_of_it_was_used_with_its_source(mine):
    folder = mine()
    used = simperf.run(make_scenario(tables(), folder=folder), record=False).assumed
    assert used["mine: attention"] == "its code, line 3"
    assert {"mine: norm", "mine: optimizer"} <= set(used)
    said = simperf.run(make_scenario(tables(attention_kernels="flash", optimizer="sgd"), folder=folder), record=False)
    assert "mine: norm" in said.assumed
    assert not {"mine: attention", "mine: optimizer"} & set(said.assumed)


def test_what_the_scenario_says_goes_before(mine):
    made = job(mine(), attention_kernels="fused-softmax", optimizer="momentum")
    assert made.model.model.kernels == LayerKernels("fused-softmax", "fused")
    assert (made.model.optimizer, made.stack.optimizer) == ("momentum", "momentum")


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_the_update_is_that_of_the_implementation(mine, name):
    made = job(mine(MINE.replace("adamw-fused", name)))
    assert made.model.model.update(made.model.optimizer).kernels == OPTIMIZERS[name].kernels


def test_one_kernel_for_each_operation_takes_longer(mine):
    folder = mine()
    times = [
        simperf.run(make_scenario(tables(**given), folder=folder), record=False).time
        for given in ({"attention_kernels": "flash"}, {"attention_kernels": "fused-softmax"}, {})
    ]
    assert times == sorted(times)
    assert len(set(times)) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": {"name": "resnet18"}}, "program.stack: a traced model brings its own kernels, and this stack sets"),
        ({"model": {}, "program": {"batch_per_gpu": 0}}, "program.stack: layers in round numbers have none, and this"),
    ],
)
def test_kernels_without_a_model_by_its_dimensions_are_refused(mine, change, words):
    base = tables()
    data = {**base, **change, "program": {**base["program"], **change.get("program", {})}}
    with pytest.raises(InputError) as caught:
        make_scenario({key: value for key, value in data.items() if value}, folder=mine())
    assert words in str(caught.value)


def test_a_key_without_effect_is_refused():
    data = {**tables(attention_kernels="unfused"), "model": {"name": "gpt2"}}
    data["program"].pop("stack")
    with pytest.raises(InputError, match="are one tensor, which no trace takes apart"):
        simperf.run(make_scenario(data))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            'optimizer = "adamw-fused"',
            'optimizer = "adamwfused"',
            "optimizer: no such optimizer; did you mean 'adamw-f",
        ),
        ('attention = "unfused"', 'attention = "slow"', "kernels.attention"),
        ('norm = "fused"', 'norms = "fused"', "kernels.norms: LayerKernels has no option 'norms'; did you mean 'norm'"),
        ('optimizer = "its code"', "", "optimizer: a value needs a source"),
        ('kind = "ddp"', 'kind = "servers"', "optimizer: strategy servers has no use for it"),
    ],
)
def test_what_is_wrong_with_a_file(mine, before, after, words):
    with pytest.raises(InputError) as caught:
        load_stack("mine.toml", mine(MINE.replace(before, after)))
    assert words in str(caught.value)


def test_workers_of_servers_run_the_kernels_too(mine):
    text = (
        MINE.replace('"ddp"', '"servers"').replace('optimizer = "adamw-fused"', "").replace('optimizer = "its c', '#"')
    )
    folder = mine(text)
    data = tables(strategy="servers")
    scenario = make_scenario(data, folder=folder)
    made = scenario.program.options.made(scenario.parameters)
    assert isinstance(made.strategy, Servers)
    assert made.model.model.kernels == LayerKernels("unfused", "fused")
    assert "mine: attention" in simperf.run(scenario, record=False).assumed


def test_from_python():
    llama = Transformer(**DIMENSIONS)
    stack = Stack(optimizer="adamw-fused", kernels=LayerKernels("fused-softmax"))
    given = {"on": "dgx-1v", "precision": "fp16", "batch_per_gpu": 4, "record": False}
    one = simperf.train(llama, stack=stack, **given)
    keys = {"program.attention_kernels": "fused-softmax", "program.optimizer": "adamw-fused"}
    assert one.metrics == simperf.train(llama, stack=Stack(), set=keys, **given).metrics
    host = simperf.train(llama, stack=replace(stack, frontend="pytorch"), **given)
    assert host.metrics == simperf.train(llama, set=keys, **given).metrics
    assert host.time > one.time


def test_a_job_of_types_has_a_model_that_the_stack_fits():
    llama, kernels = Transformer(**DIMENSIONS), LayerKernels("unfused")
    model = Traced(zoo.load(llama, kernels), "fp16", "adamw-fused")
    assert Job(model, DDP(), stack=Stack(optimizer="adamw-fused", kernels=kernels)).model is model
    for stack, words in (
        (Stack(optimizer="sgd"), "stack.optimizer: the model has other optimizer"),
        (Stack(kernels=LayerKernels("fused-softmax")), "stack.kernels: the model has other kernels"),
    ):
        with pytest.raises(InputError, match=words):
            Job(model, DDP(), stack=stack)
    with pytest.raises(InputError, match=r"stack\.optimizer: the model has none"):
        Job(Layers(2, 1e-3, 2e-3, 1e6), stack=Stack(optimizer="sgd"))


LIBRARY = """
format = 1
kind = "stack"
title = "Mine"

[strategy]
kind = "ddp"

[kernels]
attention_library = "cudnn"

[source]
attention_library = "torch.backends.cuda.enable_cudnn_sdp"
"""


def library_tables(model=None, **program):
    shared = {"use": "train", "precision": "bf16", "batch_per_gpu": 4, "gpus": 2, **program}
    return {"machine": {"use": "dgx-h100"}, "model": model or DIMENSIONS, "program": shared}


def test_the_library_of_attention_is_the_architecture_s_and_told_unless_one_is_named(mine):
    folder = mine(LIBRARY)
    default = simperf.run(make_scenario(library_tables()), record=False)
    told = default.assumed["library of attention on h100-sxm5-80gb"]
    assert told.startswith("flash-attention, unless another is named; fitted to half of the H100's figures")
    named = simperf.run(make_scenario(library_tables(stack="mine.toml"), folder=folder), record=False)
    assert named.assumed["mine: attention_library"] == "torch.backends.cuda.enable_cudnn_sdp"
    assert not any(key.startswith("library of attention") for key in named.assumed)
    assert named.sources["cudnn on h100-sxm5-80gb"].startswith("fitted to half of an H200's figures")
    assert named.time != default.time
    given = library_tables(stack="mine.toml", attention_library="flash-attention")
    assert simperf.run(make_scenario(given, folder=folder), record=False).time == default.time


def test_a_traced_model_takes_the_library_of_its_attention_too():
    data = library_tables({"name": "gpt2"})
    plain = simperf.run(make_scenario(data), record=False)
    data["program"]["attention_library"] = "flash-attention-2"
    other = simperf.run(make_scenario(data), record=False)
    assert other.time > plain.time
    assert zoo.load("gpt2").kernels is None
    stack = Stack(kernels=LayerKernels(attention_library="flash-attention-2"))
    given = {"on": "dgx-h100", "precision": "bf16", "batch_per_gpu": 4, "record": False, "set": {"program.gpus": 2}}
    assert simperf.train("gpt2", stack=stack, **given).time == other.time


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": {"name": "resnet18"}}, "attention_library: the model resnet18 has no attention in one kernel"),
        ({"attention_kernels": "unfused"}, "attention_library: attention is written out"),
        ({"precision": "fp32"}, "^attention_library: attention .*no library has an effect on"),
        ({"attention_library": "cudn"}, "attention_library"),
    ],
)
def test_a_library_that_changes_nothing_is_refused(change, words):
    model = change.pop("model", None)
    with pytest.raises(SimperfError, match=words):
        simperf.run(make_scenario(library_tables(model, **{"attention_library": "cudnn", **change})))


def test_images_that_are_not_channels_last_are_converted_around_each_convolution():
    data = library_tables({"name": "resnet18"}, precision="fp16", batch_per_gpu=32)
    plain = simperf.run(make_scenario(data), record=False)
    data["program"]["memory_format"] = "contiguous"
    converted = simperf.run(make_scenario(data), record=False)
    model = zoo.load("resnet18", LayerKernels(memory_format="contiguous"))
    before, after = (one.at(32, "fp16") for one in (zoo.load("resnet18"), model))
    kinds = [op.kind for op in (*after.forward, *after.backward)]
    traced = [op for op in model.ops if op.family == "conv"]
    assert kinds.count("convert") == sum(len(op.reads) + len(op.writes) for op in traced)
    moved = sum(op.nbytes for op in (*after.forward, *after.backward) if op.kind == "convert")
    assert moved == sum(2 * 2 * o.elements.at(32) for op in traced for o in (*op.reads, *op.writes))
    assert [op for op in kinds if op != "convert"] == [op.kind for op in (*before.forward, *before.backward)]
    assert [(one.name, one.nbytes) for one in after.gradients] == [(one.name, one.nbytes) for one in before.gradients]
    assert converted.time > plain.time + 2 * moved / 3.35e12, "two steps, at the bandwidth of the memory at best"


@pytest.mark.parametrize(
    ("model", "change", "words"),
    [
        ({"name": "gpt2"}, {}, "memory_format: the model gpt2 has no convolution"),
        ({"name": "resnet18"}, {"precision": "fp32"}, "memory_format: convolutions in fp32 do not run on matrix units"),
        (None, {}, "memory_format: a transformer has no images"),
    ],
)
def test_a_format_that_changes_nothing_is_refused(model, change, words):
    with pytest.raises(SimperfError, match=words):
        simperf.run(make_scenario(library_tables(model, **{"memory_format": "contiguous", **change})))


def test_kernels_of_a_divided_layer_are_refused_elsewhere(mine):
    """Of a strategy whose GPUs have the whole model, and of servers, which have no parameter for them."""
    divided = MINE.replace('norm = "fused"\n', 'norm = "fused"\nrotary = "fused"\n')
    divided = divided.replace('norm = "its code"', 'norm = "its code"\nrotary = "its code"')
    with pytest.raises(InputError, match="no layout divides the model, and this stack sets rotary"):
        make_scenario(tables(), folder=mine(divided))
    servers = divided.replace('kind = "ddp"', 'kind = "servers"').replace('optimizer = "adamw-fused"\n', "")
    servers = servers.replace('optimizer = "its code"\n', "")
    program = {"use": "parameter-server", "model": "lenet", "stack": "mine.toml"}
    with pytest.raises(InputError, match="strategy servers has no use for rotary, which this stack sets"):
        make_scenario({"machine": {"use": "p3-8xlarge"}, "program": program}, folder=mine(servers))
