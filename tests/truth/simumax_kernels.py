"""Kernels of a machine with eight B200 that its owner measured alone, and the profile of them.

``python -m tests.truth.simumax_kernels FILE FOLDER`` reads ``configs/system/b200_bf16_ceperm.json`` of
MooreThreads/SimuMax at 4dcaae51 (Apache-2.0): the share of 2250 TFLOP/s that Transformer Engine's products and
attention reach, by shape and layout. It writes products to the folder as ``simperf calibrate kernels`` reads
tables, and prints the shipped profile ``kernels-b200-sxm-180gb-simumax``, whose title and source were written by
hand. Half of the shapes of each kind are fitted.
"""

import csv
import gzip
import io
import json
import sys
from pathlib import Path
from statistics import median

import numpy as np

from simperf.accuracy.attention_tables import shape_fitted
from simperf.accuracy.lattice_profile import MeasuredCalls, kernel_calls, kernel_profile
from simperf.hardware import Catalog
from simperf.workload.kinds.attention import attention, latent_attention
from simperf.workload.transformers.parallel.operations import attention_back, with_sums

#: what shares are of [FLOP/s]
PEAK = 2250e12
NAME = "b200_sxm_gemm.csv.gz"
GPU = "b200-sxm-180gb"
SOURCE = "MooreThreads/SimuMax at 4dcaae513ba7679d56c116a17cd4a691ec41e252"
#: kernel in the file -> name of its model, times the products of a forward pass that its share is counted of
ATTENTION = {"sdp_fwd": ("cudnn", 1.0), "sdp_bwd": ("attention_backward", 2.5)}


def rows(factors):
    """Shape and time [ms] of each product; of several layouts of one shape the median."""
    found = {}
    for name, share in factors.items():
        sizes = dict(part.split("=") for part in name.split(", "))
        m, n, k = (int(sizes[key]) for key in "mnk")
        if sizes["b"] == "1":
            found.setdefault((m, n, k), []).append(2e3 * m * n * k / (share * PEAK))
    return {shape: median(times) for shape, times in found.items()}


def attention_rows(factors, counted, *, back):
    """Operation, time [s] and shape of each attention; shares are of its arithmetic without the causal mask."""
    for name, share in factors.items():
        sizes = dict(part.split("=") for part in name.split(", "))
        tokens, heads, kv_heads = (int(sizes[key]) for key in ("seq_len", "head_num", "kv_head_num"))
        width, value = int(sizes["qk_head_dim"]), int(sizes["v_head_dim"])
        same = {"queries": tokens, "head_dim": width, "causal": True, "library": "cudnn", "dtype": "bf16"}
        alike = width == value
        made = (
            attention(1, heads, kv_heads=kv_heads, **same)
            if alike
            else latent_attention(1, heads, value_dim=value, **same)
        )
        op = with_sums(made)
        time = counted * 2.0 * tokens**2 * heads * (width + value) / (share * PEAK)
        yield (attention_back(op) if back else op), time, (tokens, heads, kv_heads, width, value)


def attention_calls(data):
    """Measured attention, forward and backward."""
    part = Catalog.load().gpu(GPU)
    for name, (kernel, counted) in ATTENTION.items():
        factors = data["accelerator"]["op"][name]["accurate_efficient_factor"]
        found = list(attention_rows(factors, counted, back=name == "sdp_bwd"))
        fitted = np.array([shape_fitted(*shape) for _, _, shape in found])
        ops, times = [(op,) for op, _, _ in found], np.array([time for _, time, _ in found])
        title = f"attention of cuDNN (bf16), {'backward' if name == 'sdp_bwd' else 'forward'}"
        yield MeasuredCalls(part, f"kernel.attention-bf16:{kernel}", title, ops, times, fitted, SOURCE)


def main(file, folder):
    """Write the table of products and its index, and print the profile."""
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
    index = {"source": SOURCE, "licence": "Apache-2.0"}
    into = Path(folder) / "llm" / "kernels"
    into.mkdir(parents=True, exist_ok=True)
    (into / NAME).write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    (into / "index.json").write_text(json.dumps({**index, "note": "", "tables": [table]}, indent=1), "utf-8")
    print(kernel_profile([*kernel_calls(folder), *attention_calls(data)], GPU))


if __name__ == "__main__":
    main(*sys.argv[1:])
