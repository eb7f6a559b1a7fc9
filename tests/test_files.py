"""Key lines, reading errors, and writing whole or not at all."""

import pytest

from simperf.errors import InputError
from simperf.files import atomic_writer, dotted, read_toml

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
