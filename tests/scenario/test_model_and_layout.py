"""``[model]`` and ``[layout]`` of a scenario: the same as the program's own keys, or refused."""

import json
from dataclasses import replace

import pytest

import simperf
from simperf.errors import InputError
from simperf.scenario import load_scenario, make_scenario
from simperf.scenario.load import change_scenario
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.shipped import shipped_transformers
from simperf.workload.transformers.transformer_file import write_transformer

SMALL = {"layers": 2, "hidden": 256, "heads": 8, "kv_heads": 2, "ffn": 512, "vocabulary": 1000, "sequence": 64}
TRAIN = {"machine": {"use": "dgx-1v"}, "program": {"use": "train", "batch": 32, "steps": 2}}


def scenario(folder=".", *, program=(), **tables):
    return make_scenario({**TRAIN, "program": {**TRAIN["program"], **dict(program)}, **tables}, folder=folder)


def time(**tables):
    return simperf.run(scenario(**tables)).time


def test_a_name_and_a_layout_are_the_programs_own_keys():
    own = scenario(program={"model": "resnet18", "gpus": 4})
    tables = scenario(model={"format": 1, "name": "resnet18"}, layout={"format": 1, "dp": 4})
    assert tables.parameters == own.parameters
    assert simperf.run(tables).time == simperf.run(own).time


def test_dimensions_a_file_and_a_configuration_are_the_same_model(tmp_path):
    write_transformer(Transformer(**SMALL), tmp_path / "small.toml")
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8}
    config |= {"num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 2048}
    (tmp_path / "config.json").write_text(json.dumps(config))
    given = [{"format": 1, **SMALL}, {"name": "small.toml"}, {"config": "config.json", "sequence": 64}]
    models = [scenario(tmp_path, model=one).parameters["model"] for one in given]
    assert models[0] == models[1] == Transformer(**SMALL)
    assert models[2] == Transformer(**SMALL, name="llama")
    times = {simperf.run(scenario(tmp_path, model=one)).time for one in given}
    times.add(simperf.run(scenario(program={"model": str(tmp_path / "small.toml")})).time)
    assert len(times) == 1


def test_a_named_transformer_may_have_a_length_of_its_own():
    named, usual = {"name": "llama3-8b"}, shipped_transformers()["llama3-8b"]
    assert scenario(model={**named, "sequence": 4096}).parameters["model"] == replace(usual, sequence=4096)
    with pytest.raises(InputError, match=r"model.sequence: a whole number, 1 or more"):
        scenario(model={**named, "sequence": -2})
    with pytest.raises(InputError, match=r"model.sequence: only a transformer by its dimensions"):
        scenario(model={"name": "resnet18", "sequence": 64})


def test_setting_a_name_or_a_configuration_replaces_the_model_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8}
    config |= {"intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 128}
    (tmp_path / "config.json").write_text(json.dumps(config))
    usual = shipped_transformers()["llama3-8b"]

    def model(changes, **given):
        return change_scenario(scenario(tmp_path, model=given), changes).parameters["model"]

    assert model({"model.name": "llama3-8b"}, **SMALL) == usual
    assert model({"model.sequence": 512, "model.name": "llama3-8b"}, **SMALL) == replace(usual, sequence=512)
    assert model({"model.name": "llama3-8b"}, name="llama3-70b", sequence=512) == replace(usual, sequence=512)
    assert model({"model.name": "llama3-8b"}, config="config.json") == usual
    assert model({"model.config": "config.json"}, **SMALL).sequence == 128
    assert model({"model.config": "config.json"}, name="llama3-8b").layers == 2
    assert model({"model.layers": 4}, **SMALL) == Transformer(**{**SMALL, "layers": 4})
    with pytest.raises(InputError, match=r"unknown model 'lama3-8b'; did you mean 'llama3-8b'") as caught:
        model({"model.name": "lama3-8b"}, **SMALL)
    assert [one.key for one in caught.value.problems] == ["model.name"], "of what a model needs nothing is reported"


def test_a_named_model_with_some_dimensions_is_refused_once():
    with pytest.raises(InputError, match=r"model.layers: llama3-8b has its own dimensions") as caught:
        scenario(model={"name": "llama3-8b", "layers": 4})
    assert len(caught.value.problems) == 1
    with pytest.raises(InputError, match=r"model.hidden: a transformer needs it"):
        scenario(model={"name": "mine", "layers": 4})


def test_a_name_that_a_layout_divides_is_that_of_dimensions():
    divided = {"strategy": "model-parallel", "precision": "bf16-master"}

    def model(*, program=(), **tables):
        return scenario(program={**divided, **dict(program)}, layout={"tp": 8}, **tables).parameters["model"]

    for name in ("llama2-7b", "llama3-8b"):
        assert model(model={"name": name}) == model(program={"model": name}) == shipped_transformers()[name]
    assert scenario(model={"name": "llama2-7b"}).parameters["model"] == "llama2-7b", "the traced one"
    for tables in ({"model": {"name": "resnet50"}}, {"program": {"model": "resnet50"}}):
        with pytest.raises(InputError, match=r"a layout divides a transformer by its dimensions") as caught:
            model(**tables)
        assert len(caught.value.problems) == 1
    with pytest.raises(InputError, match=r"program.model: unknown model 'llama2-7'; did you mean 'llama2-7b'"):
        model(program={"model": "llama2-7"})


def test_twice_as_many_layers_take_longer_and_more_gpus_do_not():
    assert time(model={**SMALL, "layers": 4}) > 1.5 * time(model=SMALL)
    assert time(model=SMALL, layout={"dp": 8}) == time(model=SMALL)


def test_a_forward_pass_by_dimensions():
    table = {"use": "decoder-forward", "batch": 2}
    own = {"layers": 2, "width": 256, "heads": 8, "kv_heads": 2, "hidden": 512, "vocabulary": 1000, "sequence": 64}
    one, two = (
        make_scenario({"machine": {"use": "dgx-1v"}, "program": table | mine, **tables})
        for mine, tables in ((own, {}), ({}, {"model": SMALL}))
    )
    assert one.parameters == two.parameters


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"layout": {"tp": 2}}, "layout.tp: tensor parallelism is of strategy model-parallel"),
        ({"layout": {"dp": 2, "sharding": "zero-3"}}, "layout.sharding: sharded data parallelism is of"),
        ({"layout": {"dp": 2, "order": "dp-tp-cp-ep-pp"}}, "layout.order: has no effect"),
        ({"layout": {"dp": 16}}, "layout.dp: the layout has 16 ranks, and the machine has 8"),
        ({"layout": {"dp": 2}, "program": {"gpus": 2}}, "program.gpus: .layout. says"),
        ({"layout": {"dp": 2}, "program": {"devices": ["gpu0"]}}, "program.devices: .layout. says"),
        ({"layout": {"dq": 2}}, "layout.dq: a layout has no 'dq'"),
        ({"model": {"name": "resnet5"}}, "model.name: unknown model 'resnet5'; did you mean 'resnet50'"),
        ({"model": {"name": "vgg16"}, "program": {"model": "vgg16"}}, "program.model: .model. says"),
        ({"model": {}}, "model: no model is named"),
        ({"model": {"format": 2, "name": "vgg16"}}, "model.format: a transformer of another format"),
        ({"model": {"name": 5}}, "model.name: a text in quotes"),
        ({"model": {"layers": 2}}, "model.hidden: a transformer needs it"),
        ({"model": {**SMALL, "tied": True}}, "model.tied: the kernels"),
        ({"model": {"config": "none.json"}}, "(?s)model.config: no such file .read: .none.json"),
        ({"model": {"config": "none.json", "layers": 2}}, "model.layers: the configuration says it"),
        ({"model": {"config": "s.json", "sequence": -2}}, "model.sequence: a whole number"),
        ({"model": "resnet50"}, "a table .model. is expected"),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_refused(tables, message):
    with pytest.raises(InputError, match=message):
        scenario(**tables)


def test_programs_without_a_model_or_a_layout():
    with pytest.raises(InputError, match=r"(?s)layout: the program 'async-chain' has no layout.*model: the program"):
        make_scenario({"program": {"use": "async-chain"}, "model": {"name": "vgg16"}, "layout": {"dp": 2}})
    decoder = {"machine": {"use": "dgx-1v"}, "program": {"use": "decoder-forward"}}
    with pytest.raises(InputError, match=r"model.name: the program 'decoder-forward' simulates"):
        make_scenario({**decoder, "model": {"name": "vgg16"}})
    with pytest.raises(InputError, match=r"model.bias: the program 'decoder-forward' simulates no such model"):
        make_scenario({**decoder, "model": {**SMALL, "bias": True}})
    with pytest.raises(InputError, match=r"program.layers: .model. says it"):
        make_scenario({**decoder, "program": {**decoder["program"], "layers": 3}, "model": SMALL})


def test_problems_of_a_file_have_its_lines(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('[machine]\nuse = "dgx-1v"\n[layout]\ntp = 2\n[model]\nname = "x.toml"\n[program]\nuse = "train"\n')
    (tmp_path / "x.toml").write_text("format = 1\nlayers = 0\n")
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    assert "s.toml:4: layout.tp" in str(caught.value)
    assert "x.toml:1: hidden: a transformer needs it" in str(caught.value)


def test_variants_and_overrides_reach_the_tables(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(
        '[machine]\nuse = "dgx-1v"\n[layout]\ndp = 2\n[model]\nname = "lenet"\n[program]\nuse = "train"\n'
        '[[compare]]\nname = "one"\n[[compare]]\nname = "eight"\nset = { "layout.dp" = 8 }\n'
    )
    found = load_scenario(file, ["model.name=resnet18"])
    assert [one.parameters["gpus"] for one in found.variants] == [2, 8]
    assert found.parameters["model"] == "resnet18"
