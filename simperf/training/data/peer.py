"""Tensors that go from one device of a process to another: ``x.to(other)`` and ``total += x``."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simperf.engine.device import Device
from simperf.execution import copy, launch, record, wait
from simperf.execution.session import Session
from simperf.workload import Op, make_op

__all__ = ["add", "addition", "to_device"]

#: bytes of a number in a gradient
WIDTH = 4


def to_device(source: Device, target: Device, nbytes: float, *, name: str) -> Generator[Any, Any, None]:
    """Copy between two devices, in order with what both do.

    The copy runs on the source's stream; it waits for the target's stream and the target's waits
    for it, as in PyTorch (``aten/src/ATen/native/cuda/Copy.cu``). The frontend continues at once.
    """
    yield wait((yield record(target, f"{name}: target ready")), source)
    yield copy(source, target, nbytes=nbytes, name=name)
    yield wait((yield record(source, f"{name}: there")), target)


def addition(nbytes: float) -> Op:
    """Add what has come to what is there: two reads and a write of device memory."""
    return make_op({"op": "add", "elements": max(1, round(nbytes / WIDTH))})


def add(m: Session, device: Device, nbytes: float) -> Generator[Any, Any, None]:
    """Add what has come to what is there; a device without a part in the catalogue adds in no time."""
    if device.part is not None:
        yield launch(m.kernel(addition(nbytes), device), device)
