"""Reading a folder of measured tables, and the page that is made of them."""

import json

import pytest

from simperf.accuracy.cases import read_cases, source_of
from simperf.accuracy.collectives import collective_errors
from simperf.accuracy.kernels import kernel_table
from simperf.accuracy.questions import ONE_GPU
from simperf.accuracy.ring_fit import fit_ring
from simperf.accuracy.validation import ValidationRow
from simperf.errors import InputError
from simperf.report.accuracy_rows import rows_csv, rows_page
from simperf.report.validation import accuracy_page, by_size

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
    (row,) = kernel_table(read_cases(tmp_path))
    assert row.source == "sitar-lab/NeuSight, table.csv at abc"
    assert row.low == row.high == pytest.approx(5e-5)
    assert row.predicted > 3 * 4 * 2**20 / 300e9, "not below what the memory's bandwidth allows"


@pytest.mark.parametrize(("content", "words"), [(None, "no such file"), ("{", "invalid JSON")])
def test_a_folder_that_is_none_is_told(tmp_path, content, words):
    if content:
        (tmp_path / "cases.json").write_text(content)
    with pytest.raises(InputError, match=words):
        read_cases(tmp_path)


def test_sources_that_are_addresses():
    assert source_of({"source": {"url": ["a", "b"]}}) == "a, b"


def test_the_pages_have_every_section_and_row():
    row = ValidationRow(
        "title", "variant", "time", "s", 1.0, 1.0, 1.1, source="s", case="c", fitted="nothing", question=ONE_GPU
    )
    sections = {"One": [row], "Two": [row, row]}
    page, rows = accuracy_page(sections), rows_page(sections)
    assert "| Two | 2 |" in rows
    assert rows_csv(sections).count(",variant,time,") == 3
    assert "| Two | 2 figures: median error 10.0 %" in page
    assert f"| **{ONE_GPU}** | 3 | 10.0 % | 10.0 % | +10.0 % |" in page
    assert "| loop | program.loop = 5.52 ms | `measured/d2l-lenet` |" in page, "what was read off is listed in front"


def test_tables_over_sizes_are_summed_up_by_their_ends():
    def row(nbytes, measured, predicted):
        return ValidationRow("Collectives: a", f"{nbytes} B", "time", "s", measured, measured, predicted, nbytes=nbytes)

    text = by_size([row(1024, 1.0, 0.5), row(1 << 27, 1.0, 1.1)])
    assert "| a | 2 | +10 % | x 0.50 | -50 % | +10 % |" in text
    assert "median of 1 tables' factors 2.00" in text


def test_a_range_of_times_counts_as_met_inside_it():
    measured = {"value": [4, 6], "unit": "GB/s"}
    (point,) = collective_errors({"id": "nccl450-100g-tcp", "kind": "allreduce", "measured": measured})
    assert point.low < point.high
    assert point.error == pytest.approx(0.0 if point.low <= point.predicted <= point.high else point.error)


def test_two_constants_are_recovered_from_a_ring_of_their_own_making():
    rows = [(size, 6 * (2e-6 + size / 4 / 100e9)) for size in (1e4, 1e6, 1e8)]
    made = fit_ring(4, rows)
    assert (made.latency, made.bandwidth) == pytest.approx((2e-6, 100e9), rel=1e-6)
    assert max(map(abs, made.errors)) < 1e-9
