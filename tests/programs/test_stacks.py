"""Software stacks: files with a source for every value, and what they set of a job."""

import tomllib
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

import simperf
from simperf.errors import InputError, UnknownNameError
from simperf.programs import PROGRAMS
from simperf.programs.parameters import file_value
from simperf.programs.stack_file import load_stack, stacks
from simperf.scenario import load_scenario, make_scenario, shipped_scenarios
from simperf.scenario.json_schema import json_schema
from simperf.training.stack import Stack
from simperf.training.strategies import DDP, Servers
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer

MINE = """
format = 1
kind = "stack"
title = "Mine"

[strategy]
kind = "servers"
overlap = false

[strategy.compression]
on = "cpu"

[transport]
connections = 1
message = "5 us"

[source]
overlap = "its code"
on = "its code"
connections = "its code"
message = "measured"
"""
SMALL = Transformer(layers=2, hidden=64, heads=4, vocabulary=100, sequence=24)
LAYERS = {"layers": 4, "backward": "4 ms", "weights": "40 MB", "steps": 2}


@pytest.mark.parametrize("name", stacks())
def test_every_value_is_read_as_it_is_written_and_has_a_source(name):
    """Round trip: the options of the type, written as a file has them, are those of the file."""
    stack = load_stack(name)
    text = stacks()[name].read_text("utf-8")
    data = tomllib.loads(text)
    assert data["format"] == 1
    Draft202012Validator(json_schema("stack")).validate(data)
    assert stack.title
    base = load_stack(data["base"]) if "base" in data else Stack()
    sources = {one.field: one.source for one in base.options} | data.get("source", {})
    assert len(sources) == len(stack.options) + ("frontend" in data)
    for one in stack.options:
        spec = PROGRAMS["parameter-server" if stack.strategy == "servers" else "train"]
        parameter = spec.options.names[one.kind, one.field]
        dimensions = one.kind is Stack or stack.optimizer or stack.strategy == "model-parallel"
        dimensions = dimensions or stack.kernels != LayerKernels()
        strategy = {} if stack.strategy == "servers" else {"strategy": stack.strategy}
        images = {stack.kernels.memory_format, stack.kernels.batch_norm} != {"channels-last", "alone"}
        model = {"model": "resnet18" if images else SMALL} if dimensions else {}
        values = spec.options.completed({"stack": name, **strategy, **model})
        assert values[parameter] in (file_value(one.kind, one.field, one.value), spec.parameters[parameter].default)
        assert one.source == sources[one.field]


@pytest.mark.parametrize("name", stacks())
def test_every_stack_is_used_by_a_shipped_scenario(name):
    paths = [path for path in shipped_scenarios().values() if f'= "{name}"' in path.read_text("utf-8")]
    scenario = load_scenario(paths[0])
    runs = [one for one in (*scenario.variants, scenario) if one.parameters["stack"] == name]
    result = simperf.run(runs[0], record=False)
    assert any(key.startswith(f"{name}: ") for key in result.assumed)


def test_a_stack_gives_what_the_scenario_does_not(mine):
    folder = mine()
    base = {"machine": {"use": "book-4gpu"}, "program": {"use": "parameter-server", "stack": "mine.toml", **LAYERS}}
    scenario = make_scenario(base, folder=folder)
    assert scenario.parameters["connections"] == 1
    assert scenario.parameters["message"] == pytest.approx(5e-6)
    assert scenario.parameters["codec_on"] == "gpu", "nothing is encoded, and that is not refused"
    own = {key: value for key, value in base["program"].items() if key != "stack"}
    same = {**own, "connections": 1, "message": "5 us", "overlap": False}
    times = [simperf.run(made).time for made in (scenario, make_scenario({**base, "program": same}))]
    assert times[0] == times[1]
    base["program"]["message"] = 0
    changed = make_scenario(base, folder=folder)
    assert changed.parameters["message"] == 0.0
    result = simperf.run(changed)
    assert result.time < times[0]
    assert set(result.assumed) == {"mine: overlap", "mine: connections"}


def test_the_frontend_of_a_stack_is_that_of_a_scenario_without_one():
    program = {"use": "parameter-server", "stack": "byteps", "model": "lenet"}
    plain, own = (
        make_scenario({"machine": {"use": "p3-8xlarge"}, "program": program, **more})
        for more in ({}, {"frontend": {"use": "pytorch"}})
    )
    assert (plain.frontend.name, own.frontend.name) == ("mxnet", "pytorch")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ({"use": "train", "stack": "byteps"}, "this stack is of strategy servers, and has nothing for ddp"),
        ({"use": "train", "stack": "megatron-core"}, "is of strategy model-parallel, and has nothing for ddp"),
        ({"use": "train", "stack": "apex"}, "did you mean 'apex-ddp'"),
        ({"use": "train", "stack": "none.toml"}, "none.toml"),
    ],
)
def test_a_stack_that_does_not_fit_is_refused(program, words):
    with pytest.raises(InputError, match=words):
        make_scenario({"machine": {"use": "dgx-1v"}, "program": program})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('message = "measured"\n', "", "transport.message: a value needs a source"),
        ("format = 1", "format = 2", "this simperf reads format 1"),
        ('kind = "stack"', 'kind = "gpu"', "no file of a stack"),
        ('kind = "servers"', 'kind = "server"', "did you mean 'servers'"),
        ("overlap = false", "overlay = false", "did you mean 'overlap'"),
        ('"5 us"', '"5 MB"', "a time is expected"),
        ('kind = "servers"', 'kind = "ddp"', "it has no use for it"),
        ("connections = 1", "connections = -1", "cannot be negative"),
        ('overlap = "its code"', 'overlap = "its code"\nhandle = "?"', "the source of nothing"),
    ],
)
def test_wrong_files_are_told_with_line_and_key(mine, old, new, words):
    folder = mine(MINE.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as caught:
        load_stack("mine.toml", folder)
    assert any("mine.toml" in str(problem) and problem.line for problem in caught.value.problems)


def test_a_file_that_changes_is_read_again(mine):
    folder = mine()
    before = load_stack("mine.toml", folder)
    mine(MINE.replace("5 us", "7 us"))
    after = load_stack("mine.toml", folder)
    assert (before.transport.message, after.transport.message) == pytest.approx((5e-6, 7e-6))


def test_strategies_of_stacks_in_python():
    assert load_stack("apex-ddp").strategy_with(overlap=False) == DDP(
        bucket=40e6, first_bucket=40e6, bucket_view=False, overlap=False
    )
    byteps = load_stack("byteps").strategy_with(servers=4)
    assert isinstance(byteps, Servers)
    assert (byteps.servers, byteps.update.on_workers, byteps.compression.on) == (4, True, "cpu")
    assert Stack().in_use([byteps]) == {}
    with pytest.raises(UnknownNameError):
        load_stack("byte")


# A base ----------------------------------------------------------------------------------

DERIVED = """
format = 1
kind = "stack"
title = "Mine, with messages that take longer"
base = "mine.toml"

[transport]
message = "7 us"

[source]
message = "measured again"
"""


def derived(mine, text=DERIVED):
    folder = mine()
    (folder / "derived.toml").write_text(text, "utf-8")
    return folder


def test_a_stack_has_what_its_base_has_but_for_what_it_gives(mine):
    folder = derived(mine)
    base, found = (load_stack(name, folder) for name in ("mine.toml", "derived.toml"))
    assert (found.title, found.strategy) == ("Mine, with messages that take longer", "servers")
    assert found.transport == replace(base.transport, message=found.transport.message)
    assert found.transport.message == pytest.approx(7e-6)
    sources = {one.field: one.source for one in found.options}
    assert sources == {**{one.field: one.source for one in base.options}, "message": "measured again"}
    assert load_stack("torch-fsdp2-compiled-2025").kernels == replace(
        load_stack("torch-fsdp2-compiled").kernels, cross_entropy="compiled", update="fused"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('base = "mine.toml"', 'base = "derived.toml"', "base: a stack is no base of itself"),
        ('base = "mine.toml"', 'base = "byte"', "base: .*did you mean 'byteps'"),
        ('base = "mine.toml"', "base = 3", "base: the name or path of a stack is expected"),
        ("[transport]", '[strategy]\nkind = "ddp"\n[transport]', "strategy.kind: its base is of strategy servers"),
        ('"7 us"', '"5 us"', "transport.message: has no effect: the base has it, from the same source"),
        ('message = "7 us"', "", "source.message: the source of nothing"),
    ],
)
def test_wrong_bases_are_told_with_line_and_key(mine, old, new, words):
    text = DERIVED.replace(old, new, 1)
    folder = derived(mine, text.replace("measured again", "measured") if "5 us" in new else text)
    with pytest.raises(InputError, match=words) as caught:
        load_stack("derived.toml", folder)
    assert any("derived.toml" in str(problem) and problem.line for problem in caught.value.problems)


def test_all_that_is_wrong_beside_a_base_that_is_not_there_is_told_at_once(mine):
    more = 'base = "byte"\nallocator = "native"\n\n[kernels]\nnorm = "fuse"'
    folder = derived(mine, DERIVED.replace('base = "mine.toml"', more, 1))
    with pytest.raises(InputError) as caught:
        load_stack("derived.toml", folder)
    assert [one.key for one in caught.value.problems] == ["base", "kernels.norm", "allocator"]
    assert all(one.expected or "known" in one.message or "did you mean" in one.message for one in caught.value.problems)


def test_a_circle_of_bases_is_refused(mine):
    folder = derived(mine)
    mine(MINE.replace('title = "Mine"', 'title = "Mine"\nbase = "derived.toml"'))
    with pytest.raises(InputError, match="a stack is no base of itself"):
        load_stack("derived.toml", folder)


# Allocators ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "allocator", "words"),
    [
        ("ddp", "fixed-segments", "allocator: reserved memory of divided models alone is reported"),
        ("model-parallel", "fixed-segment", "allocator: no such allocator; did you mean 'fixed-segments'"),
    ],
)
def test_an_allocator_that_is_not_played_is_refused(tmp_path, strategy, allocator, words):
    text = f"""format = 1
kind = "stack"
allocator = "{allocator}"
strategy = {{ kind = "{strategy}" }}
source = {{ allocator = "its script" }}
"""
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    with pytest.raises(InputError, match=words):
        load_stack("mine.toml", tmp_path)


def test_every_stack_of_divided_models_names_its_allocator():
    divided = [name for name in stacks() if load_stack(name).strategy == "model-parallel"]
    assert len(divided) >= 11
    assert all(load_stack(name).allocator != "none" for name in divided)


# Paces -----------------------------------------------------------------------------------

SLOWER = """
format = 1
kind = "stack"
title = "Slower"
base = "megatron-core"

[[pace]]
architecture = "hopper"
share = 0.8
source = "measured"

[[pace]]
architecture = "volta"
share = 0.5
source = "measured"
"""
DIVIDED = {
    "machine": {"use": "dgx-h100"},
    "model": {"layers": 2, "hidden": 2048, "heads": 16, "vocabulary": 1000, "sequence": 512},
    "layout": {"tp": 1},
    "program": {"use": "train", "strategy": "model-parallel", "batch": 2, "precision": "bf16-master"},
}


def paced(mine, text=SLOWER, **program):
    """Results without a pace and with the stack of a text."""
    folder = mine(text)
    made = [
        make_scenario({**DIVIDED, "program": {**DIVIDED["program"], "stack": one, **program}}, folder=folder)
        for one in ("megatron-core", "mine.toml")
    ]
    return [simperf.run(one) for one in made]


def test_kernels_take_longer_by_the_pace_on_their_architecture(mine):
    plain, slower = paced(mine, SLOWER.replace("0.8", "0.25"))
    assert slower.time / plain.time == pytest.approx(4.0, rel=1e-3), "nothing but kernels, the first launch aside"
    assert slower.assumed["mine: pace on hopper"] == "measured"
    assert "mine: pace on volta" not in slower.assumed
    assert slower.floor[1] <= slower.time


def test_messages_keep_their_time_at_a_pace(mine):
    folder, found = mine(SLOWER), []
    for name in ("megatron-core", "mine.toml"):
        tables = {**DIVIDED, "layout": {"tp": 8}, "program": {**DIVIDED["program"], "stack": name}}
        result = simperf.run(make_scenario(tables, folder=folder))
        found.append((result.time, sum(one.time for one in result.times if one.activity == "communication")))
    (plain, before), (slower, after) = found
    assert after == pytest.approx(before, rel=0.02)
    assert slower - plain == pytest.approx(0.25 * (plain - before), rel=0.05)


def test_a_pace_in_a_file_takes_the_place_of_the_base_s(mine):
    folder = mine(SLOWER)
    again = SLOWER.replace("megatron-core", "mine.toml").replace("0.8", "0.9").split("[[pace]]")
    (folder / "again.toml").write_text("[[pace]]".join(again[:2]), "utf-8")
    found = load_stack("again.toml", folder)
    assert [found.pace(one).share for one in ("hopper", "volta", "ampere")] == [0.9, 0.5, 1.0]


def test_a_pace_may_be_of_some_gpus_of_an_architecture(mine):
    own = SLOWER.replace('"volta"\n', '"hopper"\ngpus = ["h200-sxm-141gb"]\n')
    found = load_stack("mine.toml", mine(own))
    shares = [found.pace("hopper", gpu).share for gpu in ("h200-sxm-141gb", "h100-sxm5-80gb", "")]
    assert shares == [0.5, 0.8, 0.8]


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        ('["h300"]', r"pace\[1\].gpus: no such GPU of hopper"),
        ('["b200-sxm-180gb"]', r"pace\[1\].gpus: no such GPU of hopper"),
        ("[]", r"pace\[1\].architecture: stands here twice"),
    ],
)
def test_gpus_of_a_pace_are_of_its_architecture(mine, gpus, words):
    own = SLOWER.replace('"volta"\n', f'"hopper"\ngpus = {gpus}\n')
    with pytest.raises(InputError, match=words):
        load_stack("mine.toml", mine(own))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"hopper"', '"hoper"', r"pace\[0\].architecture: .*did you mean 'hopper'"),
        ('"volta"', '"hopper"', r"pace\[1\].architecture: stands here twice"),
        ("0.8", "1.8", r"pace\[0\].share: kernels are no faster in a step than alone"),
        ("0.8", "0", r"pace\[0\].share: kernels are no faster"),
        ("0.8", '"fast"', r"pace\[0\].share"),
        ("share", "shares", r"pace\[0\].shares: .*did you mean 'share'"),
        ('source = "measured"\n', "", r"pace\[0\]: a value needs a source"),
        ('base = "megatron-core"', 'base = "apex-ddp"', "pace: only divided models are simulated at it"),
        (SLOWER[SLOWER.index("[[pace]]") :], "pace = 3", "pace: a list of tables is expected"),
    ],
)
def test_wrong_paces_are_told_with_line_and_key(mine, old, new, words):
    folder = mine(SLOWER.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as caught:
        load_stack("mine.toml", folder)
    assert all("mine.toml" in str(problem) for problem in caught.value.problems)
