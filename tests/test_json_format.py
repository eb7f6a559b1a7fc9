"""Files of JSON with a format and a schema: what is no such file, and all that is wrong in one."""

import pytest

from simperf.errors import InputError
from simperf.json_format import FORMAT, JsonTable, read_format


class Point(JsonTable):
    at: float
    name: str = ""


class Curve(JsonTable):
    format: int
    points: list[Point]
    unit: str | None = None


def problems(data):
    """What is said of a file."""
    with pytest.raises(InputError) as caught:
        read_format(Curve, data, "no curve", file="curve.json", again="draw it again")
    assert all(one.file == "curve.json" for one in caught.value.problems)
    return [(one.message, one.expected) for one in caught.value.problems]


def test_a_file_is_read():
    found = read_format(Curve, {"format": FORMAT, "points": [{"at": 1}]}, "no curve", file="c.json", again="")
    assert found.points == [Point(at=1.0)]
    with pytest.raises(ValueError, match="frozen"):
        found.unit = "s"


@pytest.mark.parametrize("data", [[], "text", 1, None])
def test_a_file_is_a_table(data):
    assert problems(data) == [("no curve: a table is expected", "")]


def test_a_file_names_its_format():
    assert problems({"points": []}) == [("no curve: the key `format` is missing", f'"format": {FORMAT}')]


@pytest.mark.parametrize("version", [FORMAT + 1, 0, "1", True, None])
def test_another_format_is_refused_with_what_to_do(version):
    (told,) = problems({"format": version, "points": []})
    assert told == (
        f"no curve that this simperf reads: format {version!r}",
        f'"format": {FORMAT}; draw it again',
    )


def test_all_that_is_wrong_is_told_by_its_place():
    told = problems({"format": FORMAT, "points": [{"at": "x"}, {"name": "a"}], "color": "red"})
    where = [message.split(": ")[1] for message, _ in told]
    assert where == ["points[0].at", "points[1].at", "color"]


def test_many_problems_are_not_all_told():
    assert len(problems({"format": FORMAT, "points": [{}] * 50})) == 10
