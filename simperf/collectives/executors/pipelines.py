"""Pipeline phases in the fast executor: when each chunk is where, and when each lane is free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simperf.collectives.plan import Channel, Phase

if TYPE_CHECKING:
    from simperf.collectives.executors.recurrence import Collapse

__all__ = ["run_pipelines"]

#: largest table of chunks at participants that is kept in memory
MOST_CELLS = 64_000_000


def run_pipelines(run: Collapse, rows: Sequence[tuple[int, Channel, Phase]]) -> None:
    """Move `run` over pipeline phases that go on beside each other.

    Raises
    ------
    Overlap
        Sends of different rounds share a link at one time.
    """
    from simperf.collectives.executors.recurrence import Overlap

    nrounds = max(phase.nrounds for _, _, phase in rows)
    batches = [run.batch(rows, index) for index in range(nrounds)]
    batches = [batch for batch in batches if len(batch.src)]
    spans = np.concatenate([batch.span for batch in batches])
    span = int(spans[0])
    chunks = np.concatenate([batch.chunk for batch in batches])
    nchunks = np.array([channel.nchunks for channel in run.plan.channels])
    last = np.concatenate([nchunks[batch.src // run.count] for batch in batches]) - span
    width = int(chunks.max()) // span + 1
    if np.any(spans != span) or np.any(chunks % span) or np.any(chunks > last) or width * len(run.time) > MOST_CELLS:
        raise Overlap
    lanes = np.unique(
        np.concatenate([batch.src * len(run.time) + batch.dst for batch in batches]), return_inverse=True
    )[1]
    free = np.full(int(lanes.max()) + 1, -np.inf)
    entry = run.time.copy()
    ready = np.full((len(run.time), width), -np.inf)
    at = 0
    for batch in batches:
        lane = lanes[at : at + len(batch.src)]
        at += len(batch.src)
        if len(np.unique(lane)) < len(lane):
            raise Overlap
        hops = run.hops(batch)
        chunk = batch.chunk // span
        start = np.maximum(entry[batch.src], ready[batch.src, chunk]) + hops.latency
        end = run.carry(np.maximum(start, free[lane]), batch, hops)
        free[lane] = end
        there = run.receive(batch, end)
        np.maximum.at(ready, (batch.dst, chunk), there)
        np.maximum.at(run.time, batch.src, end)
        np.maximum.at(run.time, batch.dst, there)
        run.count_bytes(batch.size, hops)
