"""Rows from the cache, and machines that are kept: not when a file that they were made of has changed."""

import tracemalloc

from simperf import load_scenario, make_scenario
from simperf.file_bytes import MOST_BYTES
from simperf.hardware import Catalog
from simperf.study.cache import folder_hash, own_files
from simperf.study.planning.candidates import _step_bound
from simperf.study.sweep import sweep
from simperf.workload import zoo
from simperf.workload.modelfile import write_model

LINK = """kind = "link"
title = "A cable"
technology = "ethernet"
rate = "{rate} GB/s"
latency = "1 us"
[source]
default = "an example"
"""
SENDS = """[machine]
folder = "parts"
node = [{ id = "n{0..1}", kind = "cpu" }]
link = [{ a = "n0", b = "n1", part = "cable" }]
[program]
use = "sends"
source = "n0"
target = "n1"
"""


def test_a_large_file_beside_a_program_is_not_taken_into_memory(tmp_path):
    (tmp_path / "own.py").write_text("")
    large, data = tmp_path / "large.json", {"program": {"python": "own.py:work"}}
    with large.open("wb") as stream:
        stream.truncate(2 * MOST_BYTES)
    tracemalloc.start()
    first = folder_hash(data, str(tmp_path))
    assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    tracemalloc.stop()
    with large.open("ab") as stream:
        stream.truncate(3 * MOST_BYTES)
    assert folder_hash(data, str(tmp_path)) != first


def test_files_that_a_scenario_names_are_its_own(tmp_path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "code").mkdir()
    for name in ("profiles/mine.toml", "code/train.py", "code/shapes.json", "model.json", "notes.toml"):
        (tmp_path / name).write_text(name)
    data = {
        "calibration": {"use": "profiles/mine.toml"},
        "program": {"python": "code/train.py:step", "model": "model.json", "n": 3},
    }
    found = {path.relative_to(tmp_path).as_posix() for path in own_files(data, str(tmp_path))}
    assert found == {"profiles/mine.toml", "code/train.py", "code/shapes.json", "model.json"}
    (shipped,) = own_files({"calibration": {"use": "cpu-epyc-zen5-2c"}}, str(tmp_path))
    assert shipped.name == "cpu-epyc-zen5-2c.toml"
    assert own_files({"program": {"use": "async-chain"}}, str(tmp_path)) == []
    assert own_files({}, str(tmp_path), named=["notes.toml", "ring"]) == [tmp_path / "notes.toml"]


def test_another_content_is_another_hash(tmp_path):
    data = {"calibration": {"use": "profiles/mine.toml"}, "program": {"use": "async-chain"}}
    (tmp_path / "profiles").mkdir()
    assert folder_hash(data, str(tmp_path)) == ""
    (tmp_path / "profiles" / "mine.toml").write_text("one")
    first = folder_hash(data, str(tmp_path))
    (tmp_path / "profiles" / "mine.toml").write_text("two")
    assert first != folder_hash(data, str(tmp_path)) != ""


def test_a_part_that_has_changed_is_built_anew(tmp_path):
    """In one process: neither rows nor machines of an earlier sweep stand for those of a changed part."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "s.toml").write_text(SENDS)
    times = []
    for rate in (1, 4):
        (tmp_path / "parts" / "cable.toml").write_text(LINK.format(rate=rate))
        times.append(sweep(load_scenario(tmp_path / "s.toml"), ["program.nbytes=1 GB"]).column("time")[0])
    assert times[1] < 0.3 * times[0]


def test_a_model_that_was_traced_again_is_read_again(tmp_path):
    path = str(tmp_path / "mine.json")
    table = []
    for name in ("lenet", "resnet18"):
        write_model(zoo.load(name), path)
        assert zoo.load(path).name == name
        assert zoo.load(path) is zoo.load(path)
        program = {"use": "train", "model": path, "batch": 8, "steps": 1}
        base = make_scenario({"machine": {"use": "desktop-1gpu"}, "program": program}, folder=tmp_path)
        table.append(sweep(base, {"program.gpus": [1]}).column("time")[0])
    assert table[1] > 2 * table[0]


def test_a_bound_belongs_to_its_model():
    part = Catalog.load().gpu("t4")
    bounds = {name: _step_bound(zoo.load(name), part, 8, "fp32", "") for name in ("lenet", "resnet18")}
    assert bounds["resnet18"] > bounds["lenet"] == _step_bound(zoo.load("lenet"), part, 8, "fp32", "")
