"""Writing and reading a temporary file, through the system's cache and past it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import doubts
from simperf.calibrate.measure.task import Family, Task, note_text

__all__ = ["family"]

_CHUNK = 1 << 20


def _write(path: str, count: int) -> float:
    block = os.urandom(_CHUNK)
    begin = time.perf_counter()
    with open(path, "wb", buffering=0) as stream:
        for start in range(0, count, _CHUNK):
            stream.write(block[: min(_CHUNK, count - start)])
        os.fsync(stream.fileno())
    return time.perf_counter() - begin


def _read(path: str, *, cached: bool) -> float:
    with open(path, "rb", buffering=0) as stream:
        if not cached:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        begin = time.perf_counter()
        while stream.read(_CHUNK):
            pass
        return time.perf_counter() - begin


def family(bench: Bench) -> Family:
    """A file of each size, written to the disk and read back."""
    uncached = hasattr(os, "posix_fadvise")
    if not uncached:
        yield note_text("storage/read (uncached)", "this system cannot be told to drop a file from its cache")
    for count in (1 << 20, 16 << 20) if bench.quick else (64 << 10, 1 << 20, 16 << 20, 128 << 20):
        ways: list[tuple[str, dict[str, Value]]] = [("storage/write", {"nbytes": count})]
        ways += [("storage/read", {"nbytes": count, "cached": True})]
        if uncached:
            ways.append(("storage/read", {"nbytes": count, "cached": False}))

        def run(
            wanted: Sequence[int], count: int = count, ways: Sequence[tuple[str, dict[str, Value]]] = tuple(ways)
        ) -> Iterator[Measurement]:
            with tempfile.TemporaryDirectory(prefix="simperf-") as folder:
                path = os.path.join(folder, "data")
                rounds = 3 if bench.quick else 7
                written = tuple(_write(path, count) for _ in range(rounds))
                for index in wanted:
                    series, at = ways[index]
                    cached = bool(at.get("cached"))
                    readings = (
                        written
                        if series == "storage/write"
                        else tuple(_read(path, cached=cached) for _ in range(rounds))
                    )
                    yield Measurement(series, at, readings, warnings=doubts(readings))

        yield Task(tuple(ways), run)
