"""Models as files: the same back, the same bytes, and what is wrong with a broken one."""

import gzip
import json

import pytest

from simperf.errors import InputError
from simperf.workload import zoo
from simperf.workload.modelfile import check_model_name, document, from_document, read_model, write_model


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".toml"])
@pytest.mark.parametrize("name", ["mlp", "resnet18", "bert-base-128"])
def test_round_trip(tmp_path, name, suffix):
    model, path = zoo.load(name), tmp_path / f"m{suffix}"
    write_model(model, path)
    first = path.read_bytes()
    again = read_model(path)
    assert again == model
    write_model(again, path)
    assert path.read_bytes() == first
    assert zoo.load(str(path)) == model


def _break(change):
    data = json.loads(json.dumps(document(zoo.load("mlp"))))
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("format"), "not a traced model"),
        (lambda d: d.update(format="simperf-model-9"), "simperf-model-9"),
        (lambda d: d.pop("ops"), "ops: not a traced model: this key is missing"),
        (lambda d: d["ops"].append(7), "not a traced model"),
        (lambda d: d["tensors"].append(10**6), "there is no storage 1000000"),
        (lambda d: d["storages"][0].__setitem__(0, -5), r"storages\[0\]\[0\]: .*at least 0 is expected"),
        (lambda d: d["storages"][0].__setitem__(1, 3), "width"),
        (lambda d: d["ops"][0].__setitem__(2, -1), r"ops\[0\]\[2\]: .*at least 0 is expected"),
        (lambda d: d["ops"][0].__setitem__(3, [999]), "not a traced model"),
        (lambda d: d["ops"][0].__setitem__(3, [[999, 1, 1]]), "tensor that does not exist"),
        (lambda d: d["ops"][0].__setitem__(5, [1, 2]), "4 are expected"),
        (lambda d: d["kinds"][0].__setitem__(1, "gem"), "no kernel family 'gem'"),
        (lambda d: d.update(forward=99), "cannot be the forward pass"),
        (lambda d: d["gradients"][0].__setitem__(0, 99), "does not exist"),
        (lambda d: d["parameters"][0].__setitem__(2, 99), r"lies in none of the \d+ storages"),
    ],
)
def test_broken_content_is_said(change, message):
    with pytest.raises(InputError, match=message):
        from_document(_break(change), file="m.json")


def test_broken_files(tmp_path):
    (tmp_path / "a.json").write_text('{"format": 1,')
    (tmp_path / "b.json.gz").write_bytes(b"no gzip")
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(b"[1]")[:-4])
    (tmp_path / "d.json").write_text('{"format": NaN}')
    (tmp_path / "e.toml").write_text("x = \n")
    (tmp_path / "f.json").write_text("[]")
    for name, message in {
        "a.json": "a.json:1: not a traced model: invalid JSON",
        "b.json.gz": "invalid JSON",
        "c.json.gz": "breaks off, or is damaged",
        "d.json": "a finite number is expected",
        "e.toml": "e.toml:1: not valid TOML",
        "f.json": "not a traced model",
        "missing.json": "no such file",
        "g.bin": "a .json, .json.gz or .toml file",
    }.items():
        with pytest.raises(InputError, match=message):
            read_model(tmp_path / name)


def test_names_are_checked_before_the_work(tmp_path):
    check_model_name(tmp_path / "m.json")
    (tmp_path / "d.json").mkdir()
    for path, message in ((tmp_path / "no" / "m.json", "no folder"), (tmp_path / "d.json", "directory")):
        with pytest.raises(InputError, match=message):
            check_model_name(path)


@pytest.mark.parametrize("name", zoo.names())
def test_models_that_come_with_simperf_stand_the_checks_of_files(name):
    assert document(read_model(zoo.model_files()[name])) == document(zoo.load(name))
