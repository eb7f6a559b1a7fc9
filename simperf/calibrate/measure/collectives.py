"""Collectives of torch.distributed: gloo between processes of this machine, NCCL between its GPUs."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import doubts
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Family, Task, note_text

__all__ = ["NAMES", "family"]

NAMES = ("all-reduce", "all-gather", "broadcast", "send")
#: longest wait for a process that has started [s]
_PATIENCE = 60.0


def _operation(name: str, data: Any, ranks: int, rank: int) -> Any:
    """One call of a collective on `data`, the payload."""
    import torch
    from torch import distributed

    if name == "all-reduce":
        return lambda: distributed.all_reduce(data)
    if name == "broadcast":
        return lambda: distributed.broadcast(data, 0)
    if name == "send":  # there and back between the first two; half of it is one way
        ends = (distributed.send, distributed.recv) if rank == 0 else (distributed.recv, distributed.send)
        return (lambda: [call(data, 1 - rank) for call in ends]) if rank < 2 else (lambda: None)
    parts = list(torch.empty_like(data).split(data.numel() // ranks))
    own = torch.empty_like(parts[0])
    return lambda: distributed.all_gather(parts, own)


def rank_main(
    rank: int, ranks: int, backend: str, store: str, jobs: Sequence[tuple[str, int]], rounds: int, pipe: Connection
) -> None:
    """Main function of one process: every job in turn; the first rank sends its times."""
    import torch
    from torch import distributed

    device = f"cuda:{rank}" if backend == "nccl" else "cpu"
    if backend == "nccl":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks)
    try:
        for name, nbytes in jobs:
            data = torch.ones(max(ranks, nbytes // 4 // ranks * ranks), device=device)
            call = _operation(name, data, ranks, rank)
            times = []
            for turn in range(rounds + 3):
                distributed.barrier()
                if backend == "nccl":
                    torch.cuda.synchronize()
                begin = time.perf_counter()
                call()
                if backend == "nccl":
                    torch.cuda.synchronize()
                if turn >= 3:
                    times.append(time.perf_counter() - begin)
            half = 0.5 if name == "send" else 1.0
            if rank == 0:
                pipe.send([half * each for each in times])
    finally:
        distributed.destroy_process_group()
        pipe.close()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits meanwhile, and never reaches a process that is started here: its parent ends it, without a word."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let Ctrl-C through again when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(bench: Bench, points: Sequence[tuple[str, dict[str, Value]]], wanted: Sequence[int]) -> Iterator[Measurement]:
    """Start the ranks, and pass on what the first one tells; none of them outlives this."""
    from multiprocessing import get_context

    chosen = [points[index] for index in wanted]
    ranks, backend = int(chosen[0][1]["ranks"]), str(chosen[0][1]["backend"])
    jobs = [(series.partition("/")[0], int(at["nbytes"])) for series, at in chosen]
    spawn = get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="simperf-") as folder:
        pipes = [spawn.Pipe(duplex=False) for _ in range(ranks)]
        rounds = 7 if bench.quick else 20
        started = []
        try:
            for rank in range(ranks):
                given = (rank, ranks, backend, os.path.join(folder, "store"), jobs, rounds, pipes[rank][1])
                process = spawn.Process(target=rank_main, args=given, daemon=True)
                with _uninterrupted():
                    process.start()
                    started.append(process)
                pipes[rank][1].close()
            for series, at in chosen:
                if not pipes[0][0].poll(_PATIENCE):
                    raise RuntimeError(f"no answer from the processes within {_PATIENCE:g} s")
                try:
                    readings = tuple(pipes[0][0].recv())
                except EOFError:
                    raise RuntimeError("a process ended early") from None
                yield Measurement(series, at, readings, warnings=doubts(readings))
            for process in started:
                process.join(5.0)
        finally:
            for process in started:
                process.kill()
                process.join(5.0)
            for reader, _ in pipes:
                with contextlib.suppress(OSError):
                    reader.close()


def family(bench: Bench) -> Family:
    """Every collective over sizes, for each number of ranks that fits the machine."""
    distributed = bench.torch.distributed
    if not distributed.is_available():
        yield note_text("collectives", "this torch is built without torch.distributed")
        return
    worlds: list[tuple[str, int]] = []
    if bench.cuda:
        gpus = bench.torch.cuda.device_count()
        if gpus < 2:
            yield note_text("all-reduce/nccl", f"{gpus} GPU: NCCL between GPUs needs two")
        elif not distributed.is_nccl_available():
            yield note_text("all-reduce/nccl", "this torch is built without NCCL")
        else:
            worlds += [("nccl", n) for n in (2, 4, 8) if n <= gpus]
    else:
        yield note_text("all-reduce/nccl", "no CUDA device was asked for")
        if distributed.is_gloo_available():
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
            worlds += [("gloo", n) for n in (2, 4) if n <= max(2, 2 * cores) and not (bench.quick and n > 2)]
        else:
            yield note_text("all-reduce/gloo", "this torch is built without gloo")
    for backend, ranks in worlds:
        low, high, count = (4e3, 4e6, 4) if bench.quick else (1e3, 6.4e7 if backend == "gloo" else 5e8, 11)
        points: list[tuple[str, dict[str, Value]]] = []
        for name in NAMES[:1] if bench.quick else NAMES:
            for nbytes in sizes(low, high, count):
                whole = nbytes // 4 // ranks * ranks * 4
                points.append((f"{name}/{backend}", {"nbytes": whole, "ranks": ranks, "backend": backend}))

        def run(
            wanted: Sequence[int], points: Sequence[tuple[str, dict[str, Value]]] = tuple(points)
        ) -> Iterator[Measurement]:
            return _run(bench, points, wanted)

        yield Task(tuple(points), run)
