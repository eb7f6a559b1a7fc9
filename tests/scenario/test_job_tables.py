"""``[strategy]``, ``[devices]``, ``[input]``, ``[disturbances]``: the typed form of a training job."""

import pytest
from jsonschema import Draft202012Validator

from simperf.errors import InputError
from simperf.run import run
from simperf.scenario import load_scenario, make_scenario
from simperf.scenario.json_schema import json_schema
from simperf.training.job import Disturbances, Input, SlowLink
from simperf.training.strategies import DDP, Compression, LocalSGD, Servers

MACHINE = {"use": "pcie-4gpu"}
SCHEMA = Draft202012Validator(json_schema("scenario"))


def job(**tables):
    """The job of a scenario with these tables."""
    data = {"machine": MACHINE, "program": {"use": "train"}, **tables}
    SCHEMA.validate(data)
    scenario = make_scenario(data)
    return scenario.program.options.made(scenario.parameters)


def refused(**tables):
    with pytest.raises(InputError) as caught:
        make_scenario({"machine": MACHINE, "program": {"use": "train"}, **tables})
    return str(caught.value)


def test_each_table_is_its_type():
    made = job(
        strategy={"kind": "ddp", "bucket": "40 MB", "overlap": False},
        devices={"gpus": 2},
        input={"decode": "1 ms", "workers": 2, "jitter": "gamma", "cv": 0.2},
        disturbances={"stragglers": 1, "slowdown": 2.0, "links": [{"link": "gpu0>plx0", "share": 0.5}]},
    )
    assert made.strategy == DDP(bucket=40e6, overlap=False)
    assert made.gpus == 2
    assert made.input == Input(decode=1e-3, workers=2, jitter="gamma", cv=0.2)
    assert made.disturbances == Disturbances(stragglers=1, slowdown=2.0, links=(SlowLink("gpu0>plx0", 0.5),))
    assert job(strategy={"kind": "local-sgd", "every": 4}).strategy == LocalSGD(every=4)
    assert job(program={"use": "train", "batch_per_gpu": 8}, strategy={"bucket": "1 MB"}).strategy == DDP(bucket=1e6)


def test_servers_are_a_strategy_of_train():
    program = {"use": "train", "model": "lenet", "batch_per_gpu": 8, "gpus": 2, "steps": 2}
    compression = {"codec": "top-k", "ratio": 0.1}
    strategy = {"kind": "servers", "servers": 1, "via_host": "yes", "compression": compression}
    tables = {
        "strategy": {**strategy, "consistency": {"mode": "bounded", "bound": 2}},
        "disturbances": {"jitter": "gamma"},
    }
    made = job(program=program, **tables)
    assert isinstance(made.strategy, Servers)
    assert made.strategy.compression == Compression("top-k", ratio=0.1)
    assert (made.strategy.consistency.bound, made.strategy.via_host, made.batch_per_gpu, made.gpus) == (2, True, 8, 2)
    assert (made.disturbances.jitter, made.disturbances.cv) == ("gamma", 0.1)
    own = {"use": "parameter-server", "model": "lenet", "batch": 8, "workers": 2, "steps": 2, "servers": 1}
    own |= {"via_host": "yes", "compression": "top-k", "ratio": 0.1, "mode": "bounded", "bound": 2}
    own |= {"family": "gamma", "jitter": 0.1}
    assert job(program=own) == made
    flat = run(make_scenario({"machine": MACHINE, "program": {**program, "strategy": "servers"}}), record=False)
    plain = {"use": "parameter-server", "model": "lenet", "batch": 8, "workers": 2, "steps": 2}
    assert flat.time == run(make_scenario({"machine": MACHINE, "program": plain}), record=False).time


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"strategy": {"kind": "dpp"}}, "strategy.kind: no such strategy; did you mean 'ddp'"),
        ({"strategy": {"kind": "naive", "bucket": "1 MB"}}, "strategy.bucket: ByHand has no option 'bucket'"),
        ({"strategy": {"bucket": "1 Mb"}}, "strategy.bucket"),
        ({"strategy": {"kind": "ddp"}, "program": {"use": "train", "strategy": "ddp"}}, "strategy. says it"),
        ({"strategy": {"bucket": "1 MB"}, "program": {"use": "train", "bucket": "1 MB"}}, "program.bucket says it"),
        ({"input": {"decoding": "1 ms"}}, "input.decoding: Input has no option 'decoding'; did you mean 'decode'"),
        ({"strategy": {"kind": "servers"}, "input": {"decode": "1 ms"}}, "input.decode: strategy servers has no use"),
        ({"strategy": {"kind": "servers"}, "program": {"use": "train", "batch": 8}}, "program.batch: with servers"),
        ({"strategy": {"kind": "servers"}, "disturbances": {"cv": 0.2}}, "disturbances.cv: a constant time"),
        ({"strategy": {"kind": "ddp"}, "program": {"use": "parameter-server"}}, "this program has servers"),
        ({"input": {"decode": "1 ms"}, "program": {"use": "async-chain"}}, "'async-chain' has no input"),
        ({"disturbances": {"links": [{"link": "a"}, {"link": "b"}]}}, "disturbances.links: one table is expected"),
        ({"strategy": ["ddp"]}, "strategy"),
    ],
)
def test_what_does_not_fit_is_told_where_it_stands(tables, words):
    assert words in refused(**tables).replace("[strategy]", "strategy.").replace("..", ".")


def test_options_of_tables_can_be_set(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        '[machine]\nuse = "pcie-4gpu"\n\n[program]\nuse = "train"\n\n[strategy]\nkind = "ddp"\nbucket = "1 kg"\n'
    )
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    assert (caught.value.problems[0].line, caught.value.problems[0].key) == (9, "strategy.bucket")
    made = load_scenario(path, ["strategy.bucket=2 MB", "disturbances.variation=0.01"])
    assert made.parameters["bucket"] == 2e6
    assert made.parameters["variation"] == 0.01
    with pytest.raises(InputError, match="--set"):
        load_scenario(path, ["strategy.bucket=2 MB", "strategy.bukket=2 MB"])
