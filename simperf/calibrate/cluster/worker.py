"""Worker on each boxed host: a process that takes orders as lines of JSON and answers with times off its clock.

All hosts are namespaces of one kernel, so that their monotonic clock is the same one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from simperf.calibrate.cluster import jobs
from simperf.calibrate.cluster.jobs import HostOrder
from simperf.calibrate.cluster.priority import SENDING, promptly

__all__ = ["main"]

TIMEOUT = timedelta(seconds=120)


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Take orders until the input ends.

    Parameters
    ----------
    arguments : list of str
        Rank, number of hosts, file in which they find each other.
    """
    _die_with_parent()
    promptly(SENDING)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who gives the orders ends this process
    import torch
    import torch.distributed as dist

    rank, size, meeting = int(arguments[0]), int(arguments[1]), arguments[2]
    torch.set_num_threads(1)
    store = dist.FileStore(meeting, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    groups = {count: dist.new_group(list(range(count)), timeout=TIMEOUT) for count in range(2, size + 1)}
    _answer({"ready": rank})
    for line in sys.stdin:
        order = json.loads(line)
        count = int(order["ranks"])
        work = HostOrder(rank, groups.get(count), order)
        _answer({"read": getattr(jobs, order["job"])(work) if rank < count else None})
        promptly(SENDING)
    return 0


def _answer(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
