"""Keeping memory: operations are timed with memory that the process has, as training at steady state should run."""

from __future__ import annotations

import ctypes
import platform

__all__ = ["keep_memory"]

#: parameters of mallopt in glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def keep_memory() -> bool:
    """Tell the C library to keep what is freed instead of giving it back to the system; whether it does.

    By default glibc maps every large block again and returns it at once, so that each large result of an operation
    costs a page fault every 4 KiB: often more than the operation. The performance tuning guide of PyTorch recommends
    allocators that keep memory (jemalloc, TCMalloc) for this reason. What fresh memory costs is a series of its own,
    ``copy/fresh``.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER)) and bool(mallopt(_MMAP_MAX, 0))
