"""Logs as nccl-tests prints them, of times by size."""

from collections.abc import Mapping


def nccl_log(
    times: Mapping[int, float], ranks: int, *, program: str = "all_reduce_perf", hosts: int = 1, device: str = "A GPU"
) -> str:
    """The text of a log: payload [B] to time [s], out of place; in place is 3 % slower."""
    each = ranks // hosts
    factor = 2 * (ranks - 1) / ranks if program == "all_reduce_perf" else (ranks - 1) / ranks
    lines = [f"# {program}", f"# nThread 1 nGpus {each} minBytes 8 maxBytes 1073741824 step: 2(factor)"]
    lines += ["#", "# Using devices"]
    lines += [
        f"#  Rank {rank:2d} Group  0 Pid  4242 on node{rank // each} device {rank % each} [0x07] {device}"
        for rank in range(ranks)
    ]
    lines += ["#", "#       size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong"]
    for size, time in times.items():
        columns = []
        for one in (time, 1.03 * time):
            rate = size / one / 1e9
            columns.append(f"{one * 1e6:10.3f} {rate:9.3f} {rate * factor:9.3f} 0")
        lines.append(f"{size:12d} {size // 4:12d} float sum -1 {' '.join(columns)}")
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth : 1", "#"]) + "\n"
