"""A GPU that is pretended: torch runs on the meta device, and a clock goes as a device's with known constants would.

It knows nothing of the simulator's engine: a list of kernels a stream, played on as far as the host's clock has come.
What a call of torch launches, and how much it computes and moves, is read as a trace of a model reads it.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="measuring runs torch, which is not installed")

from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from simperf.cost.tiles import tiling  # noqa: E402
from simperf.workload.op import Gemm  # noqa: E402
from simperf.workload.trace.kernels import kernels  # noqa: E402
from simperf.workload.trace.kinds import FREE  # noqa: E402

#: kernel family -> fixed time [s], and rate of arithmetic [FLOP/s] or of memory [B/s]
RATES = {"gemm": (3e-6, 1.5e13), "conv": (4e-6, 1.2e13), "reduction": (3e-6, 7e11), "normalization": (3e-6, 6e11)}
OTHERS = (2e-6, 8e11)
MATRIX = ("gemm", "conv", "attention")


@dataclass(frozen=True)
class Truth:
    """What is true of the pretended device; times in s, rates in B/s."""

    launch: float = 4e-6
    calls: dict[str, float] = field(default_factory=lambda: {"conv2d": 3.2, "linear": 1.7, "layernorm": 1.9})
    forward: float = 0.4
    backward: float = -0.2
    foreach: tuple[float, float] = (2.0, 0.05)
    wait: float = 5e-6
    result: float = 11e-6
    depth: int = 400
    graph: tuple[float, float] = (8e-6, 3e-8)
    gap: float = -0.7e-6
    setup: float = 7e-6
    pinned: float = 2.2e10
    pageable: float = 6e9
    held: float = 0.5
    sms: int = 60
    beside: tuple[tuple[float, float], tuple[float, float]] = ((1.05, 1.1), (1.4, 1.6))  # (kernel, copy): gemm, memory
    noise: float = 0.01


@dataclass
class Item:
    left: float
    kind: str = "memory"
    demand: float = 1.0
    event: Any = None


class Gpu:
    """The device and its host's clock."""

    def __init__(self, truth: Truth, seed: int = 0) -> None:
        self.truth, self.rng = truth, np.random.default_rng(seed)
        self.now = self.device = 0.0
        self.queues: dict[int, deque[Item]] = {0: deque()}
        self.current = 0
        self.captured: list[Item] | None = None

    def noisy(self, time: float) -> float:
        return float(time * np.exp(self.truth.noise * self.rng.standard_normal()))

    # the device -----------------------------------------------------------------------

    def play(self, until: float, enough: Any = lambda: False) -> None:
        """Let the device work until a time, or until it is `enough`."""
        while not enough():
            while self._instant():
                pass
            heads = [queue[0] for queue in self.queues.values() if queue and queue[0].kind != "wait"]
            copies = [item for item in heads if item.kind == "copy"][:1]
            work = [item for item in heads if item.kind != "copy"]
            if not copies and not work:
                if until < math.inf:
                    self.device = max(self.device, until)
                return
            rates = self._rates(work, copies)
            step = min(item.left / rate for item, rate in rates)
            if self.device + step > until:
                step = max(0.0, until - self.device)
                for item, rate in rates:
                    item.left -= step * rate
                self.device = max(self.device, until)
                return
            self.device += step
            for item, rate in rates:
                item.left -= step * rate
            for queue in self.queues.values():
                if queue and queue[0].event is None and queue[0].left <= 1e-15:
                    queue.popleft()

    def _instant(self) -> bool:
        moved = False
        for queue in self.queues.values():
            while queue and queue[0].event is not None:
                head = queue[0]
                if head.kind == "wait" and head.event.time is None:
                    break
                if head.kind == "mark":
                    head.event.time = self.device
                queue.popleft()
                moved = True
        return moved

    def _rates(self, work: list[Item], copies: list[Item]) -> list[tuple[Item, float]]:
        share = 1.0 / max(1.0, sum(item.demand for item in work))
        slow = {"compute": self.truth.beside[0], "memory": self.truth.beside[1]}
        found = [(item, share / (slow[item.kind][0] if copies else 1.0)) for item in work]
        copied = max((slow[item.kind][1] for item in work), default=1.0)
        return found + [(item, 1.0 / copied) for item in copies]

    # the host -------------------------------------------------------------------------

    def spend(self, time: float) -> None:
        self.now += self.noisy(time)

    def put(self, item: Item) -> None:
        if self.captured is not None:
            self.captured.append(item)
            return
        queue = self.queues[self.current]
        self.play(self.now)
        if len(queue) >= self.truth.depth:
            self.play(math.inf, lambda: len(queue) < self.truth.depth)
            self.now = max(self.now, self.device)
        queue.append(item)

    def drain(self, rest: float) -> None:
        self.play(self.now)
        self.play(math.inf, lambda: not any(self.queues.values()))
        self.now = max(self.now, self.device) + self.noisy(rest)

    def kernel(self, kernel: Any) -> None:
        nbytes = sum(
            (touch.elements if touch.elements >= 0 else touch.tensor.numel()) * touch.passes * 4
            for touch in (*kernel.reads, *kernel.writes)
        )
        self.work(kernel.family, kernel.flops, nbytes, kernel.gemm)

    def work(self, family: str, flops: float, nbytes: float, gemm: tuple[int, ...] = ()) -> None:
        overhead, rate = RATES.get(family, OTHERS)
        matrix = family in MATRIX
        time = overhead + (flops if matrix else nbytes) / rate
        tiles = tiling(Gemm(*gemm), self.truth.sms).tiles if gemm else math.inf
        demand = min(1.0, self.truth.held * tiles / self.truth.sms)
        self.put(Item(self.noisy(time), "compute" if matrix else "memory", demand))

    def call(self, name: str, found: list[Any], *, recorded: bool, replayed: bool) -> None:
        """One call of torch: its host's time, then its kernels."""
        if self.captured is None and name not in ("nll_loss_forward", "nll_loss_backward"):
            kind = found[0].kind.removesuffix("_dgrad").removesuffix("_wgrad").removesuffix("_backward")
            share = self.truth.calls.get(kind, 1.0)
            share += self.truth.backward if replayed else self.truth.forward if recorded else 0.0
            self.spend(share * self.truth.launch)
        for kernel in found:
            self.kernel(kernel)

    def foreach(self, name: str, args: tuple[Any, ...]) -> None:
        lists = [arg for arg in args if isinstance(arg, list | tuple) and arg and isinstance(arg[0], torch.Tensor)]
        once, each = self.truth.foreach
        self.spend((once + each * len(lists[0])) * self.truth.launch)
        elements = sum(tensor.numel() for tensor in lists[0])
        self.work("optimizer", elements, 4 * elements * (len(lists) + 1))


class Calls(TorchDispatchMode):
    """Gives what torch runs to the pretended device."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self.gpu = gpu

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, gpu, truth = kwargs or {}, self.gpu, self.gpu.truth
        name = function.overloadpacket.__name__
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
        if name == "_local_scalar_dense" and given[0].is_meta:
            gpu.drain(truth.result)
            return 0.5
        if name == "copy_" and args[0].device != args[1].device:
            gpu.spend(truth.launch)
            pinned = bool(kwargs.get("non_blocking") or (len(args) > 2 and args[2]))
            nbytes = args[0].numel() * args[0].element_size()
            gpu.put(Item(gpu.noisy(truth.setup + nbytes / (truth.pinned if pinned else truth.pageable)), "copy"))
            if not pinned:
                gpu.drain(0.0)
            return args[0]
        if name.startswith("_foreach"):
            out = function(*args, **kwargs)
            gpu.foreach(name, args)
            return out
        out = function(*args, **kwargs)
        results = [
            each for each in (out if isinstance(out, tuple | list) else (out,)) if isinstance(each, torch.Tensor)
        ]
        if name in ("copy_", "fill_") and not given[0].is_meta:  # memory of the host
            gpu.spend(1e-6 + given[0].numel() * given[0].element_size() / 1e10)
        if not results or not results[0].is_meta or name in FREE or name in ("detach", "randint", "uniform_"):
            return out
        own = {each.untyped_storage()._cdata for each in given}
        if not name.endswith("_") and all(each.untyped_storage()._cdata in own for each in results):
            return out  # a view
        found = kernels(name, [*args, *kwargs.values()], operands=given, results=results, out=out)
        if found:
            replayed = torch._C._current_autograd_node() is not None
            recorded = any(each.requires_grad for each in given) and torch.is_inference_mode_enabled() is False
            gpu.call(name, found, recorded=recorded, replayed=replayed)
        return out


class OnMeta(TorchFunctionMode):
    """Makes without memory what is asked for on a GPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def moved(value):
            return "meta" if isinstance(value, str | torch.device) and str(value).startswith("cuda") else value

        given = {name: moved(value) for name, value in (kwargs or {}).items() if name != "pin_memory"}
        return function(*map(moved, args), **given)


class Timer:
    """`torch.utils.benchmark.Timer` of the pretended clock: it waits for the device at both ends, as the real one."""

    gpu: Gpu

    def __init__(self, stmt, globals, num_threads):
        self.run = globals["call"]

    def timeit(self, number):
        self.gpu.drain(0.0)
        begin = self.gpu.now
        for _ in range(number):
            self.run()
        self.gpu.drain(0.0)
        return type("Taken", (), {"raw_times": [self.gpu.now - begin]})


def functions(gpu: Gpu) -> dict[str, Any]:
    """What stands for the functions and classes of `torch.cuda`."""

    class Event:
        def __init__(self, enable_timing=False):
            self.time = None

        def record(self, stream=None):
            self.time = None
            gpu.put_on(stream, Item(0.0, "mark", event=self))

        def synchronize(self):
            gpu.play(gpu.now)
            gpu.play(math.inf, lambda: self.time is not None)
            gpu.now = max(gpu.now, gpu.device)

        def elapsed_time(self, other):
            return 1e3 * (other.time - self.time)

    class Stream:
        def __init__(self, index=None):
            self.index = len(gpu.queues) if index is None else index
            gpu.queues.setdefault(self.index, deque())

        def wait_event(self, event):
            gpu.put_on(self, Item(0.0, "wait", event=event))

        def wait_stream(self, other):
            event = Event()
            event.record(other)
            self.wait_event(event)

    def put_on(stream, item):
        before = gpu.current
        gpu.current = before if stream is None else stream.index
        gpu.put(item)
        gpu.current = before

    gpu.put_on = put_on

    @contextmanager
    def on(stream):
        before, gpu.current = gpu.current, stream.index
        yield
        gpu.current = before

    class Graph:
        def replay(self):
            once, each = gpu.truth.graph
            gpu.spend(once + each * len(self.items))
            gpu.put(Item(sum(gpu.noisy(item.left + gpu.truth.gap) for item in self.items)))

    @contextmanager
    def capture(graph):
        gpu.captured = graph.items = []
        yield
        gpu.captured = None

    def sleep(cycles):
        gpu.spend(gpu.truth.launch)
        gpu.put(Item(cycles / 2e9))

    return {
        "Event": Event,
        "Stream": Stream,
        "CUDAGraph": Graph,
        "current_stream": lambda: Stream(gpu.current),
        "stream": on,
        "graph": capture,
        "synchronize": lambda *_: gpu.drain(gpu.truth.wait),
        "_sleep": sleep,
        "set_device": lambda device: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
    }


@contextmanager
def pretended(patch: Any, truth: Truth, seed: int = 0):
    """While it lasts, ``cuda:0`` is the pretended GPU, for torch and for the clocks of `simperf.calibrate.measure`."""
    from simperf.calibrate.measure import bench, mixed, programs, queue, steps, sync

    gpu = Gpu(truth, seed)
    for name, value in functions(gpu).items():
        patch.setattr(torch.cuda, name, value)
    Timer.gpu = gpu
    patch.setattr("torch.utils.benchmark.Timer", Timer)
    clock = type("Clock", (), {"perf_counter": staticmethod(lambda: gpu.now)})
    for module in (bench, mixed, programs, queue, steps, sync):
        patch.setattr(module, "time", clock)
    with OnMeta(), Calls(gpu):
        yield gpu


def but(**changed: Any) -> Truth:
    """The usual device, with another constant or two."""
    return replace(Truth(), **changed)
