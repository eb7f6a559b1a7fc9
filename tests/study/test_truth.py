"""Reading a folder of measured tables, and the page that is made of them."""

import json

import pytest

from simperf.errors import InputError
from simperf.report.ledger import accuracy_page
from simperf.study.accuracy import LedgerRow
from simperf.study.truth import read_cases, roofline_ledger, source_of

CASE = {
    "id": "roof-elementwise-l4",
    "kind": "roofline",
    "evidence": "measured",
    "hardware": {"gpu": "L4"},
    "workload": {"op": "elementwise fp32 B x H"},
    "measured": {"columns": ["op", "B", "H", "latency_ms", "GBps"], "table": [["add", 1024, 1024, 0.05, 250.0]]},
    "source": {"repo": "sitar-lab/NeuSight", "path": "table.csv", "commit": "abc"},
}


def test_a_table_becomes_rows_with_their_source(tmp_path):
    (tmp_path / "cases.json").write_text(json.dumps([CASE]))
    (row,) = roofline_ledger(read_cases(tmp_path))
    assert row.source == "sitar-lab/NeuSight, table.csv at abc"
    assert row.low == row.high == pytest.approx(5e-5)
    assert row.predicted > 3 * 4 * 2**20 / 300e9, "not below what the memory's bandwidth allows"


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), ("{", "not valid JSON")])
def test_a_folder_that_is_none_is_told(tmp_path, content, words):
    if content:
        (tmp_path / "cases.json").write_text(content)
    with pytest.raises(InputError, match=words):
        read_cases(tmp_path)


def test_sources_that_are_addresses():
    assert source_of({"source": {"url": ["a", "b"]}}) == "a, b"


def test_the_page_has_every_section_and_row():
    row = LedgerRow("title", "variant", "time", "s", 1.0, 1.0, 1.1, source="s", case="c", fitted="nothing")
    page = accuracy_page({"One": [row], "Two": [row, row]})
    assert page.count("| variant, time | 1.000 s | 1.100 s | +10.0 % |") == 3
    assert "| Two | 2 figures: median error 10.0 %" in page
