"""What runs on each boxed host: a process that takes orders as lines of JSON and answers with times off its clock.

All hosts are namespaces of one kernel, so that their monotonic clock is the same one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from simperf.calibrate.cluster.priority import SENDING, promptly

__all__ = ["Work", "main"]

#: what every repeat waits for before it starts, besides what refills the token buckets [s]
SETTLE = 3e-3
TIMEOUT = timedelta(seconds=120)


class Work:
    """One host's part in an order.

    Parameters
    ----------
    rank : int
    group : object
        Process group of those who take part.
    order : mapping
        ``ranks`` who take part, ``repeats``, ``gap`` between them [s], and what the kind of work reads.
    """

    def __init__(self, rank: int, group: Any, order: Mapping[str, Any]) -> None:
        self.rank, self.group, self.order = rank, group, order
        self.size = int(order["ranks"])

    def together(self) -> float:
        """Agree on an instant with all others and wait for it; returns it on the common clock [s]."""
        import torch
        import torch.distributed as dist

        ready = torch.tensor([time.monotonic()], dtype=torch.float64)
        dist.all_reduce(ready, op=dist.ReduceOp.MAX, group=self.group)
        start = float(ready) + SETTLE + float(self.order.get("gap", 0.0))
        while (left := start - time.monotonic()) > 0:
            time.sleep(left)
        return start

    def repeat(self, once: Callable[[], None], *, prepare: Callable[[], None] | None = None) -> list[list[float]]:
        """Do it as often as ordered, after one time for warming up.

        Returns of each repeat begin, end, CPU time of all threads, and of this one [s].
        """
        found = []
        for turn in range(int(self.order["repeats"]) + 1):
            if prepare is not None:
                prepare()
            self.together()
            used, own, begin = time.process_time(), time.thread_time(), time.monotonic()
            once()
            end = time.monotonic()
            if turn:
                found.append([begin, end, time.process_time() - used, time.thread_time() - own])
        return found


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

    from simperf.calibrate.cluster import jobs

    rank, size, meeting = int(arguments[0]), int(arguments[1]), arguments[2]
    torch.set_num_threads(1)
    store = dist.FileStore(meeting, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    groups = {count: dist.new_group(list(range(count)), timeout=TIMEOUT) for count in range(2, size + 1)}
    _answer({"ready": rank})
    for line in sys.stdin:
        order = json.loads(line)
        count = int(order["ranks"])
        work = Work(rank, groups.get(count), order)
        _answer({"read": getattr(jobs, order["job"])(work) if rank < count else None})
        promptly(SENDING)
    return 0


def _answer(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
