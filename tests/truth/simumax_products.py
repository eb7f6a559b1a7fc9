"""The table of products of a machine with eight B200, as ``simperf calibrate kernels`` reads tables.

``python -m tests.truth.simumax_products FILE FOLDER`` reads ``configs/system/b200_bf16_ceperm.json`` of
MooreThreads/SimuMax at 4dcaae51 (Apache-2.0): the share of 2250 TFLOP/s that products of Transformer Engine reach in
loops, by shape and layout. ``simperf calibrate kernels FOLDER b200-sxm-180gb`` makes the shipped profile
``products-b200-sxm-180gb-simumax`` of them; its title and source were written by hand.
"""

import csv
import gzip
import io
import json
import sys
from pathlib import Path
from statistics import median

#: what shares are of [FLOP/s]
PEAK = 2250e12
NAME = "b200_sxm_gemm.csv.gz"


def rows(factors):
    """Shape and time [ms] of each product; of several layouts of one shape the median."""
    found = {}
    for name, share in factors.items():
        sizes = dict(part.split("=") for part in name.split(", "))
        m, n, k = (int(sizes[key]) for key in "mnk")
        if sizes["b"] == "1":
            found.setdefault((m, n, k), []).append(2e3 * m * n * k / (share * PEAK))
    return {shape: median(times) for shape, times in found.items()}


def main(file, folder):
    """Write the table and its index."""
    data = json.loads(Path(file).read_text("utf-8"))
    found = rows(data["accelerator"]["op"]["matmul"]["accurate_efficient_factor"])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["kernel_source", "gemm_dtype", "m", "n", "k", "latency"])
    writer.writerows(["transformer-engine", "bfloat16", *shape, time] for shape, time in found.items())
    table = {
        "file": NAME,
        "rows": len(found),
        "of": len(found),
        "path": "configs/system/b200_bf16_ceperm.json",
        "constant": {"device": "NVIDIA B200", "op_name": "gemm"},
        "columns": ["kernel_source", "gemm_dtype", "m", "n", "k", "latency"],
    }
    index = {"source": "MooreThreads/SimuMax at 4dcaae513ba7679d56c116a17cd4a691ec41e252", "licence": "Apache-2.0"}
    into = Path(folder) / "llm" / "kernels"
    into.mkdir(parents=True, exist_ok=True)
    (into / NAME).write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    (into / "index.json").write_text(json.dumps({**index, "note": "", "tables": [table]}, indent=1), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
