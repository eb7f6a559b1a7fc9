"""Counts of a package's size."""

from tests.size import sizes, sources, table

TEXT = '__all__ = ["Part", "read"]\n\n\nclass Part:\n    pass\n\n\ndef read():\n    pass\n'


def test_lines_classes_and_exported_names_are_counted_by_package():
    files = [("simperf/engine/a.py", TEXT), ("simperf/run.py", "x = 1\n"), ("tests/test_a.py", TEXT)]
    found = sizes(files)
    assert found["engine"] == {"lines": 9, "files": 1, "classes": 1, "names": 2}
    assert set(found) == {"engine", "beside the packages", "tests"}
    rows = table(sizes(files[1:]), found).splitlines()
    assert rows[3] == "| engine | 0 to 9 | 0 to 1 | 0 to 1 | 0 to 2 |"
    assert rows[4] == "| simperf | 1 to 10 | 1 to 2 | 0 to 1 | 0 to 2 |"


def test_the_working_tree_is_read():
    assert any(path == "simperf/run.py" for path, _ in sources("", ("simperf",)))
