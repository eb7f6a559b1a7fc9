"""A fake GPU: what "cuda:0" asks for is computed on the CPU, and `torch.cuda` is replaced."""

import contextlib
import time
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="measuring runs torch, which is not installed")

from torch.overrides import TorchFunctionMode  # noqa: E402

from simperf.calibrate.measure import queue  # noqa: E402

#: what `torch.cuda` says of it
PART = SimpleNamespace(name="Pretended 1", total_memory=8 << 30, multi_processor_count=9, major=9, minor=0)


class OnTheProcessor(TorchFunctionMode):
    """Makes on the CPU what is asked for on a GPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def moved(value):
            return "cpu" if isinstance(value, (str, torch.device)) and str(value).startswith("cuda") else value

        given = {name: moved(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return function(*map(moved, args), **given)


class Event:
    def __init__(self, enable_timing=False):
        assert enable_timing

    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        assert self.time

    def elapsed_time(self, other):
        return 1e3 * (other.time - self.time)


class Stream:
    def wait_stream(self, other):
        assert isinstance(other, Stream)


class Graph:
    """Keeps nothing: a replay takes no time."""

    def replay(self):
        return None


@contextlib.contextmanager
def fake_cuda(monkeypatch, *, devices, **more):
    """So many GPUs, with `more` of `torch.cuda`; no time means anything."""
    played = {
        "Event": Event,
        "Stream": Stream,
        "CUDAGraph": Graph,
        "current_stream": Stream,
        "stream": contextlib.nullcontext,
        "graph": contextlib.nullcontext,
        "synchronize": lambda *_: None,
        "_sleep": lambda cycles: None,
        "set_device": lambda device: None,
        "is_available": lambda: True,
        "device_count": lambda: devices,
        **more,
    }
    for name, value in played.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(queue, "LAUNCHES", 300)
    with OnTheProcessor():
        yield
