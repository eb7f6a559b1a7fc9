"""The reference page of the catalogue's hardware says what the catalogue says."""

from pathlib import Path

import pytest

from simperf.hardware import Catalog

CATALOG = Catalog.load()
PAGE = (Path(__file__).parents[2] / "docs/reference/catalogue.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("kind", ["gpu", "server", "cluster"])
def test_every_name_is_on_the_page_and_no_other(kind):
    names = set(CATALOG.names(kind))
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
    known = {*CATALOG.names("gpu"), *CATALOG.names("server"), *CATALOG.names("cluster")}
    assert {row[0].strip("`") for row in ROWS} <= known


def test_peaks_and_memory_on_the_page_are_the_catalogues():
    rows = [row for row in ROWS if row[0].strip("`") in CATALOG.names("gpu")]
    assert len(rows) >= 18
    for name, bf16, fp8, fp4, memory, rate, _, power in rows:
        gpu = CATALOG.gpu(name.strip("`"))
        for precision, text in (("bf16", bf16), ("fp8", fp8), ("fp4", fp4)):
            assert float(text or 0) * 1e12 == pytest.approx(gpu.peak.get(precision, 0.0)), (name, precision)
        assert gpu.memory_capacity in (float(memory) * 2**30, float(memory) * 1e9)
        assert (float(rate) * 1e9, float(power)) == (gpu.memory_bandwidth, gpu.power)


def test_prices_on_the_page_are_the_catalogues():
    found = {row[0].strip("`"): row[1:] for row in ROWS if row[0].strip("`") in CATALOG.names("server")}
    rented = {name for name in CATALOG.names("server") if CATALOG.file("server", name).data.get("cloud")}
    assert set(found) == rented
    for name, (cloud, price, date, block, block_date) in found.items():
        data = CATALOG.file("server", name).data
        quoted = data.get("price", {})
        assert cloud == data["cloud"]
        assert (price and f"{price} USD/h") == quoted.get("on_demand", "")
        assert (block and f"{block} USD/h") == quoted.get("capacity_block", "")
        assert date == (quoted["date"] if price else "")
        assert block_date == ((quoted.get("capacity_block_date") or quoted["date"]) if block else "")
