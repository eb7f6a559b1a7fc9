"""The bench: the device that is measured, tensors on it, and the clocks for host and device."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.clock import FULL, Care, sample
from simperf.calibrate.measure.conditions import amounts
from simperf.errors import InputError, Problem, SimperfError
from simperf.workload.op import Gemm, Op
from simperf.workload.trace import require_torch

__all__ = ["DTYPES", "Bench", "Maker", "New", "measuring_torch"]

#: simperf's precisions -> torch's types
DTYPES = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
#: most launches before the device is waited for: fewer than any driver queues
MOST_QUEUED = 400

#: clock cycles of a fast GPU in a second, and the most that a kernel waits for the host
_CYCLES, _LONGEST = 2e9, 100_000_000

#: operands together so large that no GPU's L2 holds a half of them (126 MB on B200), and no usual CPU's caches [B]
LEAST_UNCACHED = {"cuda": 256e6, "cpu": 128e6}
#: sizes of a kind of operation that tell six constants of its own
OWN = 7
#: makes a tensor of a shape
New = Callable[..., Any]
#: sets up operands with `New` and gives back the call to time
Maker = Callable[[New], Callable[[], Any]]


def measuring_torch() -> Any:
    """Import torch for measuring, or say how to get it.

    Raises
    ------
    SimperfError
        It is not installed.
    """
    return require_torch(
        "measuring runs operations in PyTorch",
        enough="a build for CPUs is enough for --device cpu",
        without="Measurements that you already have need no torch: `simperf calibrate import --help`.",
    )


@dataclass(slots=True)
class Bench:
    """Device that is measured, and the care of its measurements.

    Parameters
    ----------
    device : str
        ``"cpu"`` or ``"cuda:0"``.
    threads : int
        Threads of one operation on the CPU; 0 leaves torch's own choice.
    quick : bool
        Fewer points.
    care : Care
    torch : module
        Imported if left out.
    low : float
        Least of the numbers that operands are filled with at random; the largest is 1. Products of numbers of both
        signs take more power.
    watch : callable, optional
        Called while the device works and the host only waits for it.

    Raises
    ------
    InputError
        A device that is not there, or threads below zero.
    SimperfError
        Torch is not installed.
    """

    device: str = "cpu"
    threads: int = 0
    quick: bool = False
    care: Care = FULL
    torch: Any = None
    low: float = 0.1
    watch: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        if self.torch is None:
            self.torch = measuring_torch()
        kind, _, number = self.device.partition(":")
        if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
            raise InputError(
                Problem("no such device", key="--device", value=repr(self.device), expected="cpu or cuda:0")
            )
        if self.threads < 0:
            raise InputError(Problem("must be 0 or more", key="--threads", value=repr(self.threads)))
        if kind == "cuda":
            count = self.torch.cuda.device_count() if self.torch.cuda.is_available() else 0
            if int(number or 0) >= count:
                found = f"{count} CUDA device{'s' * (count != 1)}" if count else "no CUDA device"
                message = f"torch {self.torch.__version__} sees {found} on this machine"
                raise InputError(Problem(message, key="--device", value=repr(self.device), expected="--device cpu"))
            self.device = f"cuda:{int(number or 0)}"
            self.torch.cuda.set_device(self.device)
        else:
            self.device = "cpu"
        if self.threads:
            self.torch.set_num_threads(self.threads)
        self.threads = int(self.torch.get_num_threads())

    def sizes_of_a_kind(self, every: int, *, few: int) -> int:
        """Number of sizes of a kind of operation that are measured.

        Parameters
        ----------
        every : int
            Unless it is to be quick.
        few : int
            On a GPU that is measured quickly, where all kinds of a family go by one rate of the memory. On a CPU each
            kind has constants of its own, and `OWN` sizes are the fewest that tell them.
        """
        return every if not self.quick else few if self.cuda else OWN

    @property
    def cuda(self) -> bool:
        """Whether the device is a GPU."""
        return self.device != "cpu"

    def dtype(self, name: str) -> Any:
        """Torch's type of a precision."""
        return getattr(self.torch, DTYPES[name])

    def new(self, dtype: str, device: str = "") -> New:
        """A maker of tensors: ``new(2, 3)`` is filled at random, ``new(2, high=9)`` with whole numbers below 9."""
        torch, where = self.torch, device or self.device

        def make(*shape: int, high: int = 0, grad: bool = False) -> Any:
            if where == "meta":
                kind = torch.int64 if high else self.dtype(dtype)
                return torch.empty(shape, dtype=kind, device=where, requires_grad=grad)
            if high:
                return torch.randint(high, shape, device=where)
            made = torch.empty(shape, dtype=self.dtype(dtype), device=where)
            made.uniform_(self.low, 1.0)  # no zeros, no denormals: both can be faster or slower than numbers of use
            return made.requires_grad_(grad)

        return make

    def describe(self, maker: Maker, dtype: str) -> Op:
        """The operation that `maker`'s call runs, as a traced model would have it; several kernels are summed."""
        from simperf.workload.precision import PRECISIONS
        from simperf.workload.trace.recorder import TraceRecorder, recording

        call = maker(self.new(dtype, "meta"))
        recorder = TraceRecorder()
        with recording(recorder, None):
            kept = call()
        record = recorder.finish()
        del kept
        if not record.ops:
            raise InputError(Problem("this call runs no kernel", expected="a call of one operation or more"))

        def nbytes(touches: tuple[tuple[int, int, int], ...]) -> float:
            total = 0.0
            for tensor, elements, passes in touches:
                width = record.storages[record.tensors[tensor]].width or PRECISIONS[dtype]
                total += float(elements * passes * width)
            return total

        main = max(record.ops, key=lambda op: op.flops)
        return Op(
            name=main.kind,
            kind=main.kind,
            flops=float(sum(op.flops for op in record.ops)),
            nbytes_read=sum(nbytes(op.reads) for op in record.ops),
            nbytes_written=sum(nbytes(op.writes) for op in record.ops),
            dtype=dtype,
            family=main.family,
            elements=float(max((elements for _, elements, _ in main.writes), default=0)),
            gemm=Gemm(*main.gemm) if main.gemm else None,
        )

    def conditions(self, op: Op, more: Mapping[str, Value]) -> dict[str, Value]:
        """Conditions of a point of ``op/...`` on this bench."""
        found = {**amounts(op), "device": self.kind, **more}
        return found if self.cuda else found | {"threads": self.threads}

    @property
    def kind(self) -> str:
        """``"cpu"`` or ``"cuda"``."""
        return "cuda" if self.cuda else "cpu"

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        if self.cuda:
            self.torch.cuda.synchronize(self.device)

    def wall(self, call: Callable[[], Any]) -> tuple[float, ...]:
        """Time of a call until its work is done, timed by `torch.utils.benchmark` [s]."""
        from torch.utils.benchmark import Timer

        timer = Timer("call()", globals={"call": call}, num_threads=self.threads)
        return sample(lambda number: float(timer.timeit(number).raw_times[0]), self.care)

    def host(self, call: Callable[[], Any], *, queued: int = MOST_QUEUED) -> tuple[float, ...]:
        """Time of the host for a call, the device's work not waited for [s], of at most so many calls in a row."""
        if not self.cuda:
            return self.wall(call)

        def timeit(number: int) -> float:
            total = 0.0
            for start in range(0, number, queued):
                runs = min(queued, number - start)
                begin = time.perf_counter()
                for _ in range(runs):
                    call()
                total += time.perf_counter() - begin
                self.synchronize()
            return total

        return sample(timeit, self.care)

    def kernel(self, call: Callable[[], Any]) -> tuple[float, ...]:
        """Time of the device for a call [s].

        On a GPU the launches are queued behind a kernel that only waits, longer than the host needs for them, so that
        the device never waits for the host, and are timed between two events on the stream.
        """
        if not self.cuda:
            return self.wall(call)
        torch = self.torch
        call()
        self.synchronize()
        begun = time.perf_counter()
        call()
        ahead = max(20_000, round(1.5 * _CYCLES * (time.perf_counter() - begun)))  # clock cycles that a call is given
        self.synchronize()
        most = max(1, min(MOST_QUEUED, _LONGEST // ahead))

        def timeit(number: int) -> float:
            total = 0.0
            for start in range(0, number, most):
                runs = min(most, number - start)
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.cuda._sleep(ahead * runs)
                begin.record()
                for _ in range(runs):
                    call()
                end.record()
                if self.watch is not None:
                    self.watch()
                end.synchronize()
                total += float(begin.elapsed_time(end)) * 1e-3
            return total

        return sample(timeit, self.care)

    @property
    def uncached(self) -> float:
        """Size of operands of which no cache keeps the first until the last was used: 2.5 times the last cache [B]."""
        if not self.cuda:
            return LEAST_UNCACHED["cpu"]
        cache = getattr(self.torch.cuda.get_device_properties(self.device), "L2_cache_size", 0)
        return max(LEAST_UNCACHED["cuda"], 2.5 * float(cache or 0.0))

    def recover(self) -> None:
        """Free what a failed operation held, and see that the device still answers.

        Raises
        ------
        SimperfError
            It does not, as after an illegal access to memory: only another process can use it.
        """
        gc.collect()
        if not self.cuda:
            return
        try:
            self.synchronize()
            self.torch.cuda.empty_cache()
        except RuntimeError as error:
            told = str(error).strip().partition("\n")[0]
            message = f"after an operation that failed, the device no longer answers: {told}"
            raise SimperfError(f"{message}\n    What was measured is kept; the same command continues.") from None
