"""Broken part files: each is refused with file, line, key, and what would be right."""

import pytest

from simperf.errors import InputError, UnknownNameError
from simperf.hardware import Catalog
from simperf.hardware.kinds import MODELS
from simperf.testing import check_part

GPU = """kind = "gpu"
title = "A GPU of my own"
architecture = "ampere"
memory_bandwidth = "1 TB/s"
memory_capacity = "24 GiB"
l2 = "6 MiB"
sms = 84
[peak]
fp32 = "30 TFLOP/s"
fp16 = "120 TFLOP/s"
[source]
default = "measured here"
"""
LINK = (
    'kind = "link"\ntitle = "x"\ntechnology = "pcie"\nrate = "1 GB/s"\nlatency = "1 us"\n[source]\ndefault = "here"\n'
)


def write(folder, text, name="mine.toml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path):
    catalog = Catalog.load(path.parent)
    kind = catalog.kinds_of(path.stem)[0]
    return catalog.part(kind, path.stem)


def test_an_own_part_is_found_by_its_file_name(tmp_path):
    path = write(tmp_path, GPU)
    check_part(path)
    gpu = read(path)
    assert (gpu.name, gpu.peak["fp16"], gpu.source("l2")) == ("mine", 120e12, "measured here")
    assert "mine" in Catalog.load([tmp_path]).names("gpu")


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ('"1 TB/s"', '"1 TB"', 4, "memory_bandwidth", "unit of size"),
        ('"1 TB/s"', '"1 Tb/s"', 4, "memory_bandwidth", "bits or bytes"),
        ('"1 TB/s"', '"-1 TB/s"', 4, "memory_bandwidth", "negative"),
        ('"1 TB/s"', '"0 TB/s"', 4, "memory_bandwidth", "zero"),
        ('"1 TB/s"', '"2 EB/s"', 4, "memory_bandwidth", "no such thing"),
        ('"1 TB/s"', '"fast"', 4, "memory_bandwidth", "bandwidth is expected"),
        ('"1 TB/s"', "nan", 4, "memory_bandwidth", "unit is missing"),
        ('"1 TB/s"', "1e12", 4, "memory_bandwidth", "unit is missing"),
        ('"1 TB/s"', '"1e999 GB/s"', 4, "memory_bandwidth", "finite"),
        ('"24 GiB"', '"24 gilbert"', 5, "memory_capacity", "unknown unit"),
        ("sms = 84", 'sms = "84"', 7, "sms", "a whole number"),
        ("sms = 84", "sms = 0", 7, "sms", "at least 1"),
        ("sms = 84", "smss = 84", 7, "smss", "did you mean 'sms'"),
        ("sms = 84\n", "", 1, "sms", "missing"),
        ('architecture = "ampere"', 'architecture = "ampera"', 3, "architecture", "did you mean 'ampere'"),
        ('fp32 = "30', 'fp23 = "30', 9, "peak.fp23", "did you mean"),
        ('fp32 = "30 TFLOP/s"', 'fp32 = "30 GB/s"', 9, "peak.fp32", "unit of bandwidth"),
        ('default = "measured here"', 'l2 = "here"', 4, "memory_bandwidth", "no source"),
        ('default = "measured here"', 'default = "x"\nl3 = "here"', 13, "source.l3", "not there"),
        ('kind = "gpu"', 'kind = "gpu"\nkind = "gpu"', 2, "", "not valid TOML"),
        ("[peak]", "[efficiency]\ngemm = 1.5\n[peak]", 9, "efficiency.gemm", "no such thing"),
        ("[peak]", "[efficiency]\ngemmm = 0.5\n[peak]", 9, "efficiency", "did you mean 'gemm'"),
        ("[peak]", "[efficiency]\ngemm = nan\n[peak]", 9, "efficiency.gemm", "finite"),
    ],
)
def test_broken_gpu_files(tmp_path, old, new, line, key, says):
    assert old in GPU
    path = write(tmp_path, GPU.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert says in message
    problem = next(row for row in caught.value.problems if says in str(row))
    assert problem.file == str(path)
    assert problem.line == line
    assert problem.key.startswith(key)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('technology = "pcie"', 'technology = "pci"', "did you mean 'pcie'"),
        ('latency = "1 us"', 'latency = "-1 us"', "negative"),
        ('latency = "1 us"', 'latency = "1 us"\nencoding = "130/128"', "no such thing"),
        ('latency = "1 us"', 'latency = "1 us"\nencoding = "1/0"', "no such thing"),
        ('latency = "1 us"', 'latency = "1 us"\nvelocity = "400000 km/s"', "no such thing"),
        ('latency = "1 us"', 'latency = "1 us"\nlanes = 1.5', "whole number"),
        ('latency = "1 us"', 'latency = "1 us"\nshared = "maybe"', "true or false"),
    ],
)
def test_broken_link_files(tmp_path, old, new, says):
    with pytest.raises(InputError, match=says):
        read(write(tmp_path, LINK.replace(old, new)))


def test_all_problems_come_at_once_in_order_of_lines(tmp_path):
    text = GPU.replace("1 TB/s", "1 TB").replace("84", '"x"').replace("30 TFLOP/s", "no")
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, text))
    assert [row.key for row in caught.value.problems] == ["memory_bandwidth", "sms", "peak.fp32"]
    assert [row.line for row in caught.value.problems] == sorted(row.line for row in caught.value.problems)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xfe\x00\x01", "not a text file"),
        ("", "the file is empty"),
        ('title = "x"\n', "does not say its kind"),
        ('kind = "gpuu"\n', "did you mean 'gpu'"),
    ],
)
def test_files_that_are_no_parts(tmp_path, content, says):
    with pytest.raises(InputError, match=says):
        Catalog.load(write(tmp_path, content).parent)


def test_a_missing_folder_and_a_taken_name(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        Catalog.load(tmp_path / "nowhere")
    path = write(tmp_path, GPU, "l4.toml")
    with pytest.raises(InputError) as caught:
        Catalog.load(tmp_path)
    assert str(path) in str(caught.value)
    assert Catalog.load().path("gpu", "l4") in str(caught.value)


def test_unknown_names_are_answered_with_near_ones():
    catalog = Catalog.load()
    for ask in (
        lambda: catalog.gpu("v100-sxm2-16"),
        lambda: catalog.link("pcie3-x15"),
        lambda: catalog.machine("dgx-1w"),
    ):
        with pytest.raises(UnknownNameError, match="did you mean"):
            ask()
    with pytest.raises(UnknownNameError, match="kind"):
        catalog.part("gpuu", "l4")
    with pytest.raises(UnknownNameError, match="kind"):
        catalog.names("gpuu")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"120 TFLOP/s"', '"120 TFLOP/s"\nfp8 = "60 TFLOP/s"', "fewer bits"),
        ('fp32 = "30 TFLOP/s"\n', "", "fp32"),
        ('"30 TFLOP/s"', '"900 PFLOP/s"', "FLOP a byte"),
        ('"6 MiB"', '"48 GiB"', "l2"),
    ],
)
def test_check_part_refuses_what_cannot_exist(tmp_path, old, new, says):
    with pytest.raises(AssertionError, match=says):
        check_part(write(tmp_path, GPU.replace(old, new)))


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_has_a_json_schema(kind):
    schema = MODELS[kind].model_json_schema()
    assert schema["additionalProperties"] is False
    assert {"kind", "title"} <= set(schema["required"])
