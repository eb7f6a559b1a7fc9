"""The page's tables of kernels: what it shows is read, made into a profile by the command, and met by a run with it."""

import gzip
import re
from itertools import product
from pathlib import Path

import pytest

from simperf import make_scenario, run
from simperf.accuracy.product_tables import layer_kernels
from simperf.accuracy.shape_tables import read_shape_tables
from simperf.cost import Roofline
from simperf.hardware import Catalog
from simperf.hardware.gpu_names import gpu_of_driver

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "formats.md").read_text("utf-8")
H100 = Catalog.load().gpu("h100-sxm5-80gb")


def block(caption):
    """What the page shows under a caption."""
    return re.search(rf":caption: {re.escape(caption)}\n\n(.*?)```", PAGE, re.DOTALL).group(1)


@pytest.fixture
def home(tmp_path):
    """A folder with what the page shows."""
    found = tmp_path / "truth" / "llm" / "kernels"
    found.mkdir(parents=True)
    (found / "index.json").write_text(block("index.json"), "utf-8")
    (found / "h100_gemm.csv.gz").write_bytes(gzip.compress(block("h100_gemm.csv").encode()))
    return found


def test_the_pages_tables_are_read_in_seconds_and_it_names_every_device(home):
    (table,) = read_shape_tables(home.parents[1], "gemm")
    assert (table.gpu, len(table)) == (H100.name, 3)
    assert table["latency"].tolist() == pytest.approx([61.2e-6, 214.5e-6, 138.8e-6])
    assert table["gemm_dtype"].tolist() == ["bfloat16", "bfloat16", "fp8_block"]
    assert table.source == "our measurements of March, gemm_bench.py"
    named = re.findall(r"`(NVIDIA [^`]+)`", PAGE)
    assert len(named) >= 5
    assert all(gpu_of_driver(name, Catalog.load()) for name in named)


def test_a_profile_of_the_pages_format_meets_the_table_it_was_made_of(home, tmp_path, simperf):
    """Times 1.3 times as long as the catalogue's come out of a run again, within the interval."""
    lines = [block("h100_gemm.csv").splitlines()[0]]
    for m, n, k in product((16, 256, 1024, 4096), (1024, 4096, 8192), (1024, 4096)):
        (op,) = layer_kernels("bfloat16", m, n, k, part=H100)
        lines.append(f"bfloat16,{m},{n},{k},{1.3e3 * Roofline(H100).cost(op).time!r}")
    (home / "h100_gemm.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    code, _, err = simperf("calibrate", "kernels", str(home.parents[1]), H100.name, "-o", "mine.toml")
    assert code == 0, err
    op = {"op": "matmul", "m": 1024, "n": 4096, "k": 4096, "dtype": "bf16"}
    scenario = {"machine": {"use": "dgx-h100"}, "program": {"use": "operations", "ops": [op], "copies": 2}}
    assert played(scenario, str(tmp_path / "mine.toml")) / played(scenario) == pytest.approx(1.3, rel=0.06)


def played(scenario, profile=None):
    """Time of the product in a run."""
    found = run(make_scenario(scenario), profile=profile)
    (kernel,) = [span for span in found.spans if span.name == "matmul"]
    return kernel.end - kernel.start
