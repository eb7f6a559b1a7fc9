"""CSV files that know the line of every row (simperf.csv_file)."""

import pytest

from simperf.csv_file import parse_csv, read_csv
from simperf.errors import InputError


def test_rows_know_on_which_line_they_begin(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b'\xef\xbb\xbfname, size\r\n\r\n"a\r\nb",1\r\nc,2\r\n')
    file = read_csv(path)
    assert file.names == ["name", "size"]
    assert list(file.records()) == [(3, {"name": "a\r\nb", "size": "1"}), (5, {"name": "c", "size": "2"})]


def test_all_rows_without_a_cell_for_each_column_are_told():
    with pytest.raises(InputError) as found:
        parse_csv("a,b\n1\n2,3\n4,5,6\n", "mine.csv").records()
    assert [problem.line for problem in found.value.problems] == [2, 4]
    assert "mine.csv:2: 1 values in a table of 2 columns" in str(found.value)


@pytest.mark.parametrize(
    ("text", "line"), [('a,b\n1,"2\n3,4\n', 2), ('a,b\n1,2\n"3"x,4\n', 3), ("a\n" + 200_000 * "1" + "\n", 2)]
)
def test_what_is_no_csv_is_refused_with_its_line(text, line):
    with pytest.raises(InputError, match=rf"mine\.csv:{line}: .*not valid CSV"):
        parse_csv(text, "mine.csv")


def test_a_file_that_is_too_large_or_empty_is_refused(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(2_000_000 * "1,")
    with pytest.raises(InputError, match="more than is read"):
        read_csv(path, most=1024 * 1024)
    path.write_text("\n")
    with pytest.raises(InputError, match="no table: the file is empty"):
        read_csv(path, what="no table")
