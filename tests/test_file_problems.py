"""What pydantic finds wrong, in words for people who have never heard of it."""

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from simperf.file_problems import explain
from simperf.files import TomlFile
from simperf.hardware.schema import TomlTable


class Shelf(TomlTable):
    boards: Annotated[int, Field(strict=True, ge=1)] = 1
    oak: Annotated[bool, Field(strict=True)] = True


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"boards": 0}, "boards: at least 1 is expected (read: 0)"),
        ({"boards": "3"}, "boards: a value of another type is expected (read: '3')\n    expected: a whole number"),
        ({"oak": "yes"}, "expected: true or false"),
        ({"bords": 3}, "bords: unknown key; did you mean 'boards'?"),
    ],
)
def test_in_plain_words(data, words):
    with pytest.raises(ValidationError) as caught:
        Shelf.model_validate(data)
    row = caught.value.errors(include_url=False)[0]
    problem = explain(row, TomlFile("shelf.toml", data, ""), tuple(row["loc"]), list(Shelf.model_fields))
    assert words in str(problem)
