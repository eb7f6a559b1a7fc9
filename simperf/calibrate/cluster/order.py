"""One boxed host's part in an order: the common start, and repeats with their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["HostOrder"]

#: what every repeat waits for before it starts, besides what refills the token buckets [s]
SETTLE = 3e-3


class HostOrder:
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
