"""Files that once took minutes or gigabytes to read, or whose problems were told of another line."""

import gzip
import time
import tracemalloc

import pytest

from simperf.cli import main
from simperf.errors import InputError
from simperf.file_bytes import unpacked
from simperf.files import read_toml
from simperf.json_file import parse_json
from simperf.toml_lines import key_lines

_PATIENCE = 10.0  # on a computer that has other things to do [s]


@pytest.fixture
def soon():
    """Ends the test with a failure, if it took longer than reading may."""
    began = time.process_time()
    yield
    assert time.process_time() - began < _PATIENCE


LINES = {
    "a comment with quotes": ("# \"\"\" and '''\n[a]\nb = 1\n", ("a", "b"), 3),
    "a string with quotes": ("a = \"'''\"\nb = 1\n[c]\nd = '\"\"\"' # '''\ne = 1\n", ("c", "e"), 5),
    "line separators": ('a = "x\u2028y\u2029z"\nb = "\u0085"\nc = 1\n', ("c",), 3),
    "carriage returns": ("a = 1\r\n\r\n[b]\r\nc = 1\r\n", ("b", "c"), 4),
    "a bracket in a string": ('a = ["[", "]",\n "{"]\nb = 1\n', ("b",), 3),
    "a hash in a string": ('a = "#["\nb = 1\n', ("b",), 2),
    "quotes at the end of a text": ('a = """x\n"""""\nb = 1\n', ("b",), 3),
    "escapes": ('a = "\\"["\nb = """\\"""["""\nc = 1\n', ("c",), 3),
    "entries beside one another": ("a = [1, 2,\n 3, [4], 5]\n", ("a", 4), 2),
    "a header with a bracket in quotes": ('["a]" . b]\nc = 1\n', ("a]", "b", "c"), 2),
}


@pytest.mark.parametrize("name", LINES)
def test_keys_know_their_lines(name):
    text, key, line = LINES[name]
    assert key_lines(text)[key] == line


def test_numbers_that_are_none_are_told_by_their_line(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("a = 1\nb = 99999999999999999999\n# \u2028\nc = 99999999999999999999\n")
    with pytest.raises(InputError, match=r"s.toml:4: c: ") as error:
        read_toml(path)
    assert "s.toml:2: b: " in str(error.value)


@pytest.mark.parametrize(
    "header", ["[" + " " * 2500 + '"' + " " * 2500 + ']"]', "[" + "a " * 9 + "x]", '["' + " " * 50_000 + '"]']
)
def test_headers_of_spaces_are_read_at_once(tmp_path, soon, header):
    path = tmp_path / "s.toml"
    path.write_text(f"{header}\nx = 99999999999999999999\n")
    with pytest.raises(InputError, match=r"s.toml:[12]"):
        read_toml(path)


def test_a_file_packed_in_many_parts(soon):
    part = gzip.compress(b"")
    with pytest.raises(InputError, match="more than 100,000 parts"):
        unpacked(part * 300_000, "x.gz")
    assert unpacked(part * 50_000 + gzip.compress(b"end") + b"\0" * 999 + b"x", "x.gz") == b"end"


def test_files_in_parts_are_read_as_a_whole(soon):
    texts = [bytes([each]) * size for each, size in enumerate([0, 1, 300, 70_000, 3_000_000])]
    packed = b"\0\0".join(map(gzip.compress, texts))
    assert unpacked(packed, "x.gz") == b"".join(texts)
    with pytest.raises(InputError, match="breaks off"):
        unpacked(packed[:-9], "x.gz")
    assert unpacked(packed[:-9], "x.gz", whole=False) == b"".join(texts)
    with pytest.raises(InputError, match="unpacks to more"):
        unpacked(packed, "x.gz", most=2**20)


@pytest.mark.parametrize("form", ["a{}.{} = 1\n", "[a{}.{}]\n"], ids=["keys", "headers"])
def test_toml_of_many_long_keys(tmp_path, soon, form):
    path = tmp_path / "s.toml"
    path.write_text("".join(form.format(number, ".".join("b" * 60)) for number in range(25_000)))
    with pytest.raises(InputError, match="more than 250,000 values and parts of keys"):
        read_toml(path)


def test_json_of_many_tables(soon):
    text = '{"spans":[' + '{"a":1},' * 4_900_000 + "1]}"
    with pytest.raises(InputError, match=r"would take 1\.5 GB of memory"):
        parse_json(text, "r.json")


@pytest.mark.parametrize("entry", ['{"a":1}', "[1,2,3]", "[[]]"])
def test_memory_of_json_is_estimated(tmp_path, entry, capsys):
    """What is not refused fits the memory that a case may have: the estimate is of all that a command takes."""
    estimate = entry.count("{") * 240 + entry.count("[") * 72 + (entry.count(",") + 1) * 60
    count = 10_000_000 // estimate
    path = tmp_path / "r.json"
    path.write_text("[1]")
    assert main(["show", str(path)]) == 2  # whatever a first call loads is loaded
    path.write_text("[" + (entry + ",") * count + "1]")
    tracemalloc.start()
    try:
        assert main(["show", str(path)]) == 2
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "not a saved result: " in capsys.readouterr().err
    assert taken < 1.5 * estimate * count, taken


DECODER = """[scenario]
title = "A decoder"
[machine]
use = "dgx-a100"
[model]
layers = {layers}
hidden = 64
heads = 4
ffn = 128
vocabulary = 1000
sequence = 64
[program]
use = "train"
batch_per_gpu = 1
steps = {steps}
"""


@pytest.mark.parametrize("layers", [100_000, 3_000_000, 10**8])
def test_models_of_more_blocks_than_anybody_trains(tmp_path, soon, capsys, layers):
    (tmp_path / "s.toml").write_text(DECODER.format(layers=layers, steps=2))
    assert main(["run", str(tmp_path / "s.toml")]) == 2
    err = capsys.readouterr().err
    assert "s.toml:6: model.layers: " in err
    assert "expected: 1 to 10,000" in err


def test_a_link_that_leads_nowhere(tmp_path):
    (tmp_path / "s.toml").symlink_to(tmp_path / "gone.toml")
    with pytest.raises(InputError, match=r"leads to '.*gone.toml', which does not exist"):
        read_toml(tmp_path / "s.toml")
