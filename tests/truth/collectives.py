"""Measured tables of all-reduce inside one server beside what `simperf.collective` gives by default.

``python -m tests.truth.collectives`` prints them. The tables are those of ``llm/kernels``: half precision, eight GPUs.
"""

import csv
import gzip
import io
from pathlib import Path
from statistics import median

import simperf

#: server of the catalogue -> table, and the most that the median of the absolute errors may be
SERVERS = {"dgx-h100": ("h100_sxm_nccl.csv.gz", 0.08), "dgx-a100": ("a100_sxm_nccl.csv.gz", 0.20)}
#: bytes of an element of half precision
HALF = 2
RANKS = 8


def measured(truth: Path, server: str) -> dict[int, float]:
    """Times [s] by payload [B]."""
    text = gzip.decompress((truth / "llm" / "kernels" / SERVERS[server][0]).read_bytes()).decode()
    asked = {"op_name": "all_reduce", "nccl_dtype": "half", "num_gpus": str(RANKS)}
    rows = [row for row in csv.DictReader(io.StringIO(text)) if asked.items() <= row.items()]
    return {HALF * int(row["message_size"]): float(row["latency"]) * 1e-3 for row in rows}


def predicted(server: str, sizes) -> dict:
    """Rows of the default by payload [B]."""
    return {int(row.nbytes): row for row in simperf.collective("all-reduce", on=server, sizes=list(sizes), ranks=RANKS)}


def main() -> None:
    """Print measured beside predicted, and the medians."""
    from tests.truth.ratchet import truth_folder

    truth = truth_folder()
    for server, (_, most) in SERVERS.items():
        times = measured(truth, server)
        rows = predicted(server, times)
        errors = {nbytes: rows[nbytes].time / time - 1 for nbytes, time in times.items()}
        print(f"# all-reduce of half precision, {RANKS} GPUs of {server}: predicted by default, measured")
        print(f"# {'size (B)':>11} {'predicted (us)':>15} {'measured (us)':>14} {'error (%)':>10}  chosen")
        for nbytes, time in times.items():
            row, error = rows[nbytes], 100 * errors[nbytes]
            print(f"  {nbytes:>11} {row.time * 1e6:>15.2f} {time * 1e6:>14.2f} {error:>+10.1f}  {row.choice}")
        middle = median(map(abs, errors.values()))
        print(f"# median of the absolute errors: {100 * middle:.1f} %, at most {100 * most:.0f} %")


if __name__ == "__main__":
    main()
