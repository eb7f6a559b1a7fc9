"""`simperf.train`: a training job from Python is the scenario that a file would give, to the bit."""

from dataclasses import replace

import pytest
import tomli_w

import simperf
from simperf import (
    DDP,
    ByHand,
    Compression,
    Consistency,
    DataParallel,
    Layout,
    LocalSGD,
    Servers,
    ServerUpdate,
    Stack,
    Transformer,
)
from simperf.errors import InputError
from simperf.programs.stack_file import load_stack
from simperf.train import training_scenario
from simperf.training.stack import ServerTransport

SMALL = Transformer(layers=2, hidden=512, heads=8, ffn=1536, vocabulary=1000, sequence=256)
CONFIG = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8}
CONFIG |= {"intermediate_size": 1536, "vocab_size": 1000, "max_position_embeddings": 256}

JOBS = {
    "a model of the zoo": (
        "resnet18",
        {"on": "dgx-1v", "strategy": DDP(bucket="10 MB"), "precision": "fp16", "batch": 64},
    ),
    "a layout": ("resnet18", {"on": "dgx-1v", "layout": Layout(dp=4), "batch_per_gpu": 16}),
    "options of all kinds": (
        "resnet18",
        {"on": "dgx-1v", "strategy": DDP(algorithm="ring", overlap=False, accumulate=2)},
    ),
    "local SGD": ("resnet18", {"on": "dgx-1v", "strategy": LocalSGD(every=2), "set": {"program.steps": 4}}),
    "DataParallel": ("resnet18", {"on": "dgx-1v", "strategy": DataParallel(), "batch": 64}),
    "by hand": ("resnet18", {"on": "dgx-1v", "strategy": ByHand(), "layout": {"dp": 2}}),
    "servers": (
        "resnet18",
        {
            "on": "dgx-1v",
            "strategy": Servers(2, consistency=Consistency("bounded", bound=2), compression=Compression("8-bit")),
            "stack": Stack(transport=ServerTransport(window=4, duplex=False)),
            "batch_per_gpu": 32,
        },
    ),
    "servers of a batch of all workers": (
        "resnet18",
        {"on": "dgx-1v", "strategy": Servers(2, update=ServerUpdate(on_workers=True)), "batch": 256},
    ),
    "a stack by its name": ("resnet18", {"on": "dgx-1v", "stack": "pytorch-ddp", "batch": 64}),
    "a transformer": (SMALL, {"on": "dgx-h100", "precision": "bf16", "batch": 16}),
    "a machine of one's own": (
        "resnet18",
        {
            "on": {"server": "dgx-1v", "count": 2, "fabric": {"type": "star", "link": "infiniband-edr"}},
            "batch": 64,
        },
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_it_is_the_run_of_the_file_that_says_the_same(name, tmp_path):
    model, given = JOBS[name]
    result = simperf.train(model, **given)
    scenario = training_scenario(model, **given)
    path = tmp_path / "job.toml"
    path.write_text(tomli_w.dumps(scenario.data), "utf-8")
    assert simperf.run(path).to_bytes() == result.to_bytes()
    assert simperf.run(simperf.make_scenario(result.scenario)).to_bytes() == result.to_bytes()
    assert result.headline[0] == "samples per second"


def test_every_option_reaches_its_strategy():
    given = DDP(bucket=3e6, first_bucket=2e6, bucket_view=False, broadcast=True, accumulate=2, watched=True)
    scenario = training_scenario("resnet18", on="dgx-1v", strategy=given)
    assert scenario.program.options.made(scenario.parameters).strategy == given
    served = Servers(2, placement="sliced", overlap=False, consistency=Consistency("backup", backup=1))
    scenario = training_scenario(
        "resnet18", on="dgx-1v", strategy=served, stack=Stack(transport=ServerTransport(window=2))
    )
    assert scenario.program.options.made(scenario.parameters).strategy == served


def test_a_stack_of_a_name_with_a_change_keeps_the_change():
    byteps = load_stack("byteps")
    changed = replace(
        byteps, transport=replace(byteps.transport, connections=3), serving=replace(byteps.serving, take=2.0)
    )
    scenario = training_scenario("resnet18", on="dgx-1v", strategy=Servers(2, reduction="ring"), stack=changed)
    made = scenario.program.options.made(scenario.parameters).stack
    assert (made.name, made.transport, made.serving) == ("byteps", changed.transport, changed.serving)


def test_a_configuration_of_hugging_face_is_the_transformer_that_it_describes():
    one = simperf.train(CONFIG, on="dgx-h100", precision="bf16", batch=16, record=False)
    other = simperf.train(SMALL, on="dgx-h100", precision="bf16", batch=16, record=False)
    assert one.metrics == other.metrics


@pytest.mark.parametrize(("given", "workers"), [({}, 8), ({"set": {"program.workers": 4}}, 4)])
def test_the_batch_of_servers_is_that_of_all_workers_as_with_ddp(given, workers):
    whole = training_scenario("resnet18", on="dgx-1v", strategy=Servers(2), batch=256, **given)
    each = training_scenario("resnet18", on="dgx-1v", strategy=Servers(2), batch_per_gpu=256 // workers, **given)
    assert whole.data == each.data
    spread = training_scenario(
        "resnet18",
        on={"server": "dgx-1v", "count": 3, "fabric": {"type": "star", "link": "infiniband-edr"}},
        strategy=Servers(1, where="dedicated"),
        batch=160,
    )
    assert spread.parameters["batch"] == 10, "a dedicated machine trains nothing"


def test_quantities_are_texts_or_numbers_in_si_units():
    found = [
        simperf.train("resnet18", on="dgx-1v", strategy=DDP(bucket=bucket), batch=64, record=False)
        for bucket in (10e6, "10 MB", "0.01 GB")
    ]
    assert len({one.time for one in found}) == 1


@pytest.mark.parametrize(
    ("model", "given", "told"),
    [
        ("resnet5", {}, "model: unknown model 'resnet5'; did you mean 'resnet50'"),
        (3, {}, "model: a model is expected, not int"),
        ({"layers": 2}, {}, r"model\.hidden: a transformer needs it"),
        ("resnet18", {"on": "dgx-1w"}, "on: unknown machine 'dgx-1w'; did you mean 'dgx-1v'"),
        ("resnet18", {"on": 3}, "on: a machine is expected, not int"),
        ("resnet18", {"strategy": "ddp"}, r"strategy: a strategy is expected, not str (.|\n)*DDP"),
        ("resnet18", {"strategy": DDP(bucket="10 MBB")}, "bucket: unknown unit 'MBB'"),
        ("resnet18", {"strategy": DDP(accumulate=-1)}, "accumulate: it cannot be negative"),
        ("resnet18", {"layout": Layout(dp=4, tp=2)}, r"layout\.tp: tensor parallelism is of strategy model-parallel"),
        ("resnet18", {"layout": 4}, "layout: a layout is expected, not int"),
        ("resnet18", {"layout": {"dq": 4}}, r"layout\.dq: a layout has no 'dq'"),
        ("resnet18", {"stack": "pytorch"}, "stack: unknown stack 'pytorch'; did you mean 'pytorch-ddp'"),
        ("resnet18", {"stack": 3}, "stack: a stack is expected, not int"),
        (
            "resnet18",
            {"strategy": Servers(2), "batch": 60},
            r"8 workers share it evenly(.|\n)*of 8: 64",
        ),
        (
            "resnet18",
            {"strategy": Servers(2), "batch": 3},
            r"8 workers share it evenly(.|\n)*of 8: 8",
        ),
        ("resnet18", {"strategy": Servers(2), "batch": 6.4}, "batch: a whole number, 1 or more, is expected"),
        ("resnet18", {"strategy": Servers(2), "batch": 8, "batch_per_gpu": 8}, "batch: batch_per_gpu stands for it"),
        (
            "resnet18",
            {"strategy": Servers(2), "batch": 64, "set": {"program.batch": 4}},
            r"batch: program\.batch says how many samples each worker has",
        ),
        ("resnet18", {"batch": 8, "batch_per_gpu": 8}, "batch: batch_per_gpu stands for it"),
        ("resnet18", {"set": {"program.stepz": 3}}, r"set: program\.stepz: the program 'train' has no parameter"),
    ],
)
def test_what_is_wrong_is_told_by_the_name_of_the_argument(model, given, told):
    with pytest.raises(InputError, match=told):
        simperf.train(model, **{"on": "dgx-1v", **given})


def test_a_stack_of_ones_own_is_given_by_its_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(simperf.programs.stack_file.stacks()["mxnet-kvstore"].read_text("utf-8"), "utf-8")
    stack = simperf.load_stack(str(path))
    with pytest.raises(simperf.InputError, match="stack: a stack of a file of one's own is given by its path"):
        simperf.train("lenet", on="p3-16xlarge", strategy=stack.strategy_with(), stack=stack, batch_per_gpu=32)
    options = {"on": "p3-16xlarge", "strategy": stack.strategy_with(), "batch_per_gpu": 32}
    assert simperf.train("lenet", stack=str(path), **options).time > 0
