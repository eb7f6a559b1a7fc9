"""Running one update of a real optimizer on the meta device: which kernels, over which arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simperf.workload.optimizers import OPTIMIZERS, OptimizerSteps, UpdateKernel, optimizer_steps
from simperf.workload.trace.kinds import kind_of

__all__ = ["trace_optimizer", "zoo_optimizer"]


def trace_optimizer(name: str) -> OptimizerSteps:
    """Record the second update (the first one makes the states) of an optimizer of torch.

    The fused ones are one kernel by definition and come from the table, and so do those that are looped over tensors.

    Raises
    ------
    UnknownNameError
        None of `simperf.workload.optimizers.OPTIMIZERS`.
    """
    known = optimizer_steps(name)
    if name.endswith("-fused") or known.looped:
        return known
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    weight = torch.nn.Parameter(torch.empty(64, device="meta"))
    weight.grad = torch.empty(64, device="meta")
    optimizer = zoo_optimizer(name)([weight])
    found: list[UpdateKernel] = []
    made = 0

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal made
            out = func(*args, **(kwargs or {}))
            arrays = [item for item in args if isinstance(item, list | tuple) and _meta(item)]
            plain = func.overloadpacket.__name__
            if arrays and plain.startswith("_foreach_"):
                base = plain.removeprefix("_foreach_").removesuffix("_")
                kind = kind_of(base)
                # adding a multiple is a multiplication more
                scaled = base == "add" and len(arrays) > 1 and (kwargs or {}).get("alpha", 1) != 1
                work = (kind.flops if kind else 1.0) + scaled
                found.append(UpdateKernel(base, work, _different(arrays), 1))
                made += not plain.endswith("_")
            return out

    optimizer.step()
    with Mode():
        optimizer.step()
    states = sum(
        1 for state in optimizer.state.values() for item in state.values() if _meta([item]) and item.numel() == 64
    )
    return OptimizerSteps(name, tuple(found), states=states, temporaries=made)


def zoo_optimizer(name: str) -> Callable[[Any], Any]:
    """Return what makes the optimizer of a name of the zoo, from its parameters."""
    import torch

    table: dict[str, Callable[[Any], Any]] = {
        "sgd": lambda w: torch.optim.SGD(w, lr=0.1, foreach=True),
        "momentum": lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9, foreach=True),
        "momentum-decay": lambda w: torch.optim.SGD(w, lr=0.1, momentum=0.9, weight_decay=1e-4, foreach=True),
        "adam": lambda w: torch.optim.Adam(w, foreach=True),
        "adamw": lambda w: torch.optim.AdamW(w, foreach=True),
    }
    assert set(table) == {each for each, one in OPTIMIZERS.items() if not (each.endswith("-fused") or one.looped)}
    return table[name]


def _meta(items: Any) -> bool:
    return all(getattr(getattr(item, "device", None), "type", "") == "meta" for item in items) and bool(items)


def _different(arrays: list[Any]) -> int:
    return len({array[0].untyped_storage()._cdata for array in arrays})
