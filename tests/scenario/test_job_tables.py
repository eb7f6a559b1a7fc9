"""``[strategy]``, ``[devices]``, ``[input]``, ``[disturbances]``: the typed form of a training job."""

import tomllib
from dataclasses import replace

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import simperf
from simperf.errors import InputError
from simperf.layout import Layout
from simperf.programs.stack_file import load_stack
from simperf.run import run
from simperf.scenario import load_scenario, make_scenario
from simperf.scenario.job_tables import job_tables
from simperf.scenario.json_schema import json_schema
from simperf.training.failures.options import Failures, FailureTimes, Repair, Saving
from simperf.training.failures.recovery import Recovery
from simperf.training.job import Devices, Disturbances, Input, Job, SlowLink
from simperf.training.replica import Layers, Passes, Traced
from simperf.training.servers.staleness import Consistency
from simperf.training.stack import ServerTransport, Serving, Stack
from simperf.training.strategies import DDP, ByHand, Compression, DataParallel, LocalSGD, Servers, ServerUpdate
from simperf.workload import zoo

MACHINE = {"use": "pcie-4gpu"}
SCHEMA, JOB_SCHEMA = (Draft202012Validator(json_schema(kind)) for kind in ("scenario", "job"))


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


@st.composite
def failures(draw):
    """Failures of all kinds; what has no effect beside the rest is left out."""
    several, yes = st.floats(1.0, 1e6), st.booleans()
    weibull = {"law": "weibull", "shape": 0.5} if draw(yes) else {}
    counted = {"counts": {"GPU": 3, "update": 1}, "observed": 1e6, "planned": ("update",)} if draw(yes) else {}
    shrinks = {"without_spare": "shrink", "least": 2} if draw(yes) else {"spares": draw(st.integers(0, 3))}
    runs = draw(st.integers(0, 3))
    return Failures(
        FailureTimes(node_mtbf=draw(several), **weibull, **counted),
        fails_at=draw(st.sampled_from([(), (10.0, 20.0)])),
        saving=Saving(draw(several), size=1e9, storage=draw(several), asynchronous=draw(yes)),
        recovery=Recovery(restart=draw(several), timeout=draw(several), **shrinks),
        repair=Repair(draw(several), draw(st.sampled_from(["constant", "exponential"]))),
        runs=runs,
        search=runs > 0 and draw(yes),
    )


@st.composite
def jobs(draw):
    """Jobs of all strategies; what has no effect beside the rest is left out."""
    size = st.sampled_from([0.5e6, 1e6, 4e6])
    counts, yes = st.integers(1, 4), st.booleans()
    kind = draw(st.sampled_from(["ddp", "local-sgd", "data-parallel", "naive", "servers"]))
    made = {
        "ddp": lambda: DDP("ring", bucket=draw(size), overlap=draw(yes), broadcast=draw(yes), accumulate=draw(counts)),
        "local-sgd": lambda: LocalSGD(every=draw(counts), watched=draw(yes)),
        "data-parallel": lambda: DataParallel(watched=draw(yes)),
        "naive": ByHand,
        "servers": lambda: Servers(
            draw(counts),
            draw(st.sampled_from(["cpu", "gpu", "dedicated"])),
            via_host=draw(st.sampled_from([None, True, False])),
            consistency=draw(
                st.sampled_from([Consistency(), Consistency("bounded", 2), Consistency("backup", backup=1)])
            ),
            compression=draw(st.sampled_from([Compression(), Compression("top-k", ratio=0.1, dense_below=1e3)])),
            update=draw(st.sampled_from([ServerUpdate(), ServerUpdate(add=1.0), ServerUpdate(on_workers=True)])),
            overlap=draw(yes),
        ),
    }[kind]()
    if kind == "ddp" and draw(yes):
        stack = load_stack("apex-ddp")
        made = stack.strategy_with(overlap=draw(yes), bucket=draw(size))
    elif kind == "servers":
        serving = Serving(slice_size=draw(size), handle=draw(st.sampled_from([0.0, 1e-6])))
        stack = Stack(transport=ServerTransport(window=draw(counts), message=1e-6), serving=serving)
    else:
        stack = Stack()
    links = (SlowLink("gpu0>plx0", 0.5, 1e-3, 2e-3),) if draw(yes) else ()
    jitter = {"jitter": "gamma", "cv": 0.25} if draw(yes) else {}
    read = Input(disk="ssd0", stored=1e5) if draw(yes) else Input()
    loaded = Input(loop=1e-3, decode=1e-3, workers=2, jitter="lognormal", cv=0.3, counted=2.0, dataset=1000)
    alone, total = draw(st.sampled_from([0.0, 123.456])), draw(st.sampled_from([0, 50]))
    in_layout = draw(yes) and kind != "servers"
    layout = {"layout": Layout(dp=2)} if in_layout else {}
    layout |= {"devices": Devices(gpus=0 if in_layout else 2, alone=alone)}
    traced = draw(yes) or kind == "servers"
    model = Layers(3, 1e-3, 2e-3, 1e6, states=2.0, name="lenet" if traced else "layers")
    return Job(
        model,
        made,
        stack=stack,
        input=draw(st.sampled_from([read, loaded])) if kind != "servers" else read,
        disturbances=Disturbances(links=links, stragglers=1, slowdown=1.5, **jitter),
        batch_per_gpu=draw(counts),
        total=total,
        failures=draw(failures()) if total else None,
        **layout,
    )


@settings(max_examples=60, deadline=None)
@given(jobs())
def test_a_job_is_read_back_as_it_was_written(made):
    """Through TOML, and the schemas of jobs and scenarios hold for it."""
    if made.model.name == "lenet":
        made = replace(made, model=Traced(zoo.load("lenet"), "fp16"))
    tables = tomllib.loads(tomli_w.dumps({"machine": MACHINE, **job_tables(made)}))
    JOB_SCHEMA.validate(tables)
    again = job(**tables)
    gpus = again.gpus
    assert gpus == made.gpus == 2
    assert again.devices.alone == made.devices.alone
    assert replace(again, layout=None, devices=Devices()) == replace(made, layout=None, devices=Devices())


def test_a_model_that_no_table_can_say():
    with pytest.raises(InputError, match="a file cannot say a model of Passes"):
        job_tables(Job(Passes()))
    with pytest.raises(InputError, match="servers are given the batch of each GPU"):
        job_tables(Job(Traced(zoo.load("lenet")), Servers()))


def test_the_format_of_a_job():
    assert "strategy.format: this simperf reads format 1 of jobs" in refused(strategy={"format": 2, "kind": "ddp"})
    assert job(strategy={"format": 1, "kind": "ddp"}).strategy == DDP()


def test_the_schema_of_a_job_has_the_tables_of_a_job_alone():
    tables = {"machine": MACHINE, "program": {"use": "train", "model": "lenet"}, "strategy": {"kind": "ddp"}}
    assert JOB_SCHEMA.is_valid(tables)
    assert not JOB_SCHEMA.is_valid({**tables, "expect": {"time": "1 s"}})
    assert not JOB_SCHEMA.is_valid({**tables, "program": {"use": "async-chain"}})
    assert not JOB_SCHEMA.is_valid({**tables, "strategy": {"kind": "ddp", "servers": 2}})


def test_what_a_run_finds_wrong_is_placed_in_the_table_that_said_it(tmp_path):
    text = '[machine]\nuse = "p3-16xlarge"\n\n[program]\nuse = "train"\nmodel = "lenet"\nbatch_per_gpu = 32\n\n'
    text += '[strategy]\nkind = "servers"\n\n[devices]\ngpus = 4\n\n'
    text += '[[disturbances.links]]\nlink = "gpu0>sw0"\nshare = 0.5\n'
    (tmp_path / "link.toml").write_text(text)
    with pytest.raises(InputError, match=r"link\.toml:16: disturbances\.links\[0\]\.link: unknown resource 'gpu0>sw0'"):
        simperf.run(tmp_path / "link.toml")
    (tmp_path / "gpus.toml").write_text(text.replace("gpus = 4", "gpus = 40"))
    with pytest.raises(InputError, match=r"gpus\.toml:13: devices\.gpus: 40 workers wanted"):
        simperf.run(tmp_path / "gpus.toml")
