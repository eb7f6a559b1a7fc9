"""Key lines, reading errors, and writing whole or not at all."""

import gzip
import os

import pytest

from simperf.errors import InputError
from simperf.files import atomic_writer, dotted, read_toml, write_packed, write_text

TEXT = '''a = 1
[m]
x = """
foo = 3
"""
[[m.link]]
a = "x"  # [not a table]
[[m.link]]
b = [
 {c = 1},
 {c = 2},
]
[q."z y".w]
k.j = 5
'''


def test_every_key_knows_its_line(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text(TEXT)
    toml = read_toml(path)
    lines = TEXT.splitlines()
    expected = {
        ("a",): 1,
        ("m", "x"): 3,
        ("m", "link", 0, "a"): 7,
        ("m", "link", 1, "b"): 9,
        ("m", "link", 1, "b", 1, "c"): 11,
        ("q", "z y", "w", "k", "j"): 14,
    }
    for key, line in expected.items():
        assert toml.line(key) == line, (key, lines[line - 1])
    assert toml.line(("m", "foo")) == 2, "a line inside a multi-line string is no key"
    assert dotted(("m", "link", 1, "b")) == "m.link[1].b"


@pytest.mark.parametrize(
    ("content", "word"),
    [(b"", "empty"), (b"\xff\xfe\x00", "UTF-8"), (b"a = 1\na = 2\n", ":2"), (b"[m\n", "TOML"), (b"x = \n", "TOML")],
)
def test_broken_files_are_explained(tmp_path, content, word):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=word) as caught:
        read_toml(path)
    assert "broken.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('title = "x\n', "closing quote in the same line"),
        ('title = "x', "a closing quote"),
        ("title = 'x", "a closing quote"),
        ("a = [1, 2\nb = 3", "a closing ]"),
        ("a = { x = 1\n", "closed in the same line"),
        ("[machine\nuse = 1", "[table] or [[table]]"),
        ("[[compare]\n", "[table] or [[table]]"),
        (r'path = "C:\models"', "single quotes"),
        ("é = 3", "other letters than a to z in quotes"),
        ('\n{"schema": 1}', "`simperf show` prints a saved result"),
    ],
)
def test_what_newcomers_forget_is_said(tmp_path, content, hint):
    path = tmp_path / "broken.toml"
    path.write_text(content, "utf-8")
    with pytest.raises(InputError) as caught:
        read_toml(path)
    assert hint in caught.value.problems[0].expected, caught.value


def test_missing_file_and_directory(tmp_path):
    (tmp_path / "ring.toml").write_text("a = 1")
    with pytest.raises(InputError, match=r"did you mean .*ring\.toml"):
        read_toml(tmp_path / "rnig.toml")
    with pytest.raises(InputError, match="directory"):
        read_toml(tmp_path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_writer(target) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_mark_at_the_beginning_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n")
    assert read_toml(path).data == {"a": 1}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("x = 1\ny = [1, 9223372036854775808]\n", r":2: y\[1\]: .*64 bits"),
        ("y = 1\nx = " + "9" * 5000, ":2: a number of thousands of digits"),
        ("y = 1\nx = " + "[" * 20_000 + "]" * 20_000, ":2: .*depth of more than 64"),
        ("y = 1\nx." + "a." * 5000 + "b = 1", ":2: .*depth of more than 64"),
        ("x = 1\nx = 2\n", "every key once"),
    ],
)
def test_what_no_file_of_ours_holds(tmp_path, content, word):
    path = tmp_path / "broken.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=word):
        read_toml(path)


def test_a_long_value_is_cut_in_a_message(tmp_path):
    path = tmp_path / "long.toml"
    path.write_text("a = 1\n")
    assert len(str(read_toml(path).problem(("a",), "no", value="x" * 1000))) < 300


def test_a_link_stays_and_a_device_is_never_replaced(tmp_path):
    target, link, pipe = tmp_path / "real.json", tmp_path / "link.json", tmp_path / "pipe"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "bytes")
    assert os.read(reader, 100) == b"bytes"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_name_that_ends_in_gz_is_packed_the_same_way_every_time(tmp_path):
    plain, packed, again = tmp_path / "a.json", tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    for path in (plain, packed, again):
        write_packed(path, b"x" * 1000)
    assert plain.read_bytes() == b"x" * 1000
    assert len(packed.read_bytes()) < 100
    assert gzip.decompress(packed.read_bytes()) == b"x" * 1000
    assert packed.read_bytes() == again.read_bytes()
