"""Kernels of the optimizers over arrays of parameter size, as ``foreach=True`` and ``fused=True`` run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.ops import UNCACHED
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Family, point
from simperf.workload.op import Op
from simperf.workload.optimizers import OPTIMIZERS, UpdateKernel

__all__ = ["family", "fused_update", "trained_by", "update_calls", "update_op"]


def update_calls(bench: Bench) -> dict[str, Callable[[list[Any]], Any]]:
    """Kernel of `simperf.workload.optimizers` -> the call, of as many arrays as the kernel reads."""
    torch = bench.torch
    return {
        "add": lambda a: torch._foreach_add_([a[0]], [a[1]], alpha=-1e-9),
        "mul": lambda a: torch._foreach_mul_([a[0]], 1.0 - 1e-7),
        "lerp": lambda a: torch._foreach_lerp_([a[0]], [a[1]], 1e-7),
        "addcmul": lambda a: torch._foreach_addcmul_([a[0]], [a[1]], [a[1]], 1e-9),
        "sqrt": lambda a: torch._foreach_sqrt([a[0]]),
        "div": lambda a: torch._foreach_div_([a[0]], 1.0 + 1e-7),
        "addcdiv": lambda a: torch._foreach_addcdiv_([a[0]], [a[1]], [a[2]], -1e-9),
    }


def update_op(kernels: Sequence[UpdateKernel], count: int, *, kind: str) -> Op:
    """Kernels over `count` weights in fp32 as one operation."""
    return Op(
        name=kind,
        kind=kind,
        flops=float(sum(kernel.flops for kernel in kernels) * count),
        nbytes_read=4.0 * sum(kernel.reads for kernel in kernels) * count,
        nbytes_written=4.0 * sum(kernel.writes for kernel in kernels) * count,
        family="optimizer",
        elements=float(count),
    )


def fused_update(bench: Bench, name: str, count: int) -> Callable[[], Sequence[float]]:
    """Readings of an update of so many weights in one kernel: ``momentum-fused`` or ``adamw-fused``."""
    torch = bench.torch

    def take() -> Sequence[float]:
        weight = torch.nn.Parameter(bench.new("fp32")(count))
        weight.grad = bench.new("fp32")(count)
        if name.startswith("momentum"):
            optimizer: Any = torch.optim.SGD([weight], lr=1e-9, momentum=0.9, fused=True)
        else:
            optimizer = torch.optim.AdamW([weight], lr=1e-9, fused=True)
        optimizer.step()
        return bench.kernel(optimizer.step)

    return take


def trained_by(name: str, weights: Sequence[Any]) -> Any:
    """The optimizer of the zoo of that name, which goes so small steps that no weight runs away."""
    from simperf.workload.trace.update import zoo_optimizer

    optimizer = zoo_optimizer(name)(list(weights))
    for group in optimizer.param_groups:
        group["lr"] = 1e-6
    return optimizer


def family(bench: Bench) -> Family:
    """Optimizer kernels over sizes."""
    low, high = (1e5, 2e8) if bench.cuda else (1e4, 3e7)
    count = bench.sizes_of_a_kind(7, few=3)
    calls = update_calls(bench)
    for kernel in dict.fromkeys((*OPTIMIZERS["sgd"].kernels, *OPTIMIZERS["adamw"].kernels)):
        call = calls[kernel.kind]
        if kernel.kind == "add" and kernel.reads == 1:
            continue  # adding a number is as multiplying by one
        for n in sizes(low, high, count):
            at = bench.conditions(update_op([kernel], n, kind=kernel.kind), {"cache": "warm"})
            yield point("op/optimizer", at, _plain(bench, call, kernel.reads, n))
    if not bench.cuda:  # a model's parameters are in no cache when their turn comes
        for kernel in dict.fromkeys(OPTIMIZERS["adamw"].kernels):
            if kernel.kind == "add" and kernel.reads == 1:
                continue
            for n in sizes(5e4, 2e6, 3):
                at = bench.conditions(update_op([kernel], n, kind=kernel.kind), {"cache": "cold"})
                yield point("op/optimizer", at, _cold(bench, calls[kernel.kind], kernel.reads, n))
    for name in ("momentum-fused", "adamw-fused"):
        for n in sizes(low, high, 2 if bench.quick else 6):
            op = update_op(OPTIMIZERS[name].kernels, n, kind=OPTIMIZERS[name].kernels[0].kind)
            yield point("op/optimizer", bench.conditions(op, {"cache": "warm"}), fused_update(bench, name, n))


def _plain(bench: Bench, call: Callable[[list[Any]], Any], arrays: int, count: int) -> Callable[[], Sequence[float]]:
    def take() -> Sequence[float]:
        new = bench.new("fp32")
        given = [new(count) for _ in range(arrays)]
        with bench.torch.no_grad():
            return bench.kernel(lambda: call(given))

    return take


def _cold(bench: Bench, call: Callable[[list[Any]], Any], arrays: int, count: int) -> Callable[[], Sequence[float]]:
    sets = max(2, min(512, round(UNCACHED / (4.0 * arrays * count))))

    def take() -> Sequence[float]:
        new = bench.new("fp32")
        given = [[new(count) for _ in range(arrays)] for _ in range(sets)]

        def everything() -> None:
            for one in given:
                call(one)

        with bench.torch.no_grad():
            return [each / sets for each in bench.kernel(everything)]

    return take
