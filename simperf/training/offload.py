"""Offload: what ranks of a divided model hold in the memory of their hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from simperf.errors import InputError, Problem
from simperf.training.field_types import refuse_types

__all__ = ["Offload"]


@dataclass(frozen=True, slots=True)
class Offload:
    """Parts of a rank's memory that its host holds, and that are copied over the links between GPU and host.

    Ren et al., "ZeRO-Offload", USENIX ATC 2021; Rajbhandari et al., "ZeRO-Infinity", SC 2021; Megatron-Core's
    ``cpu_offloading``.

    Parameters
    ----------
    layers : int
        blocks of each part of the model, the first ones, whose activations go to the host behind their forward pass,
        and come back before their backward pass
    states : str
        where Adam's states and the weights in fp32 are: on the gpu; on the host, whose cores update; or on the host,
        from which they are streamed through the GPU, which updates
    piece : int
        weights that go there and back at a time, while others are updated

    Raises
    ------
    InputError
        Numbers without meaning, or pieces of what stays.

    Examples
    --------
    >>> bool(Offload()), bool(Offload(states="host"))
    (False, True)
    """

    layers: int = 0
    states: Literal["gpu", "host", "streamed"] = "gpu"
    piece: int = 50_000_000

    def __post_init__(self) -> None:
        refuse_types(self)
        problems = []
        if self.layers < 0:
            message = "a number of blocks is expected, 0 or more"
            problems.append(Problem(message, key="layers", value=str(self.layers)))
        if self.piece < 1:
            problems.append(Problem("a number of 1 or more is expected", key="piece", value=str(self.piece)))
        if self.states == "gpu" and self.piece != 50_000_000:
            message, expected = "has no effect: states stay on the GPU", 'states = "host" or "streamed"'
            problems.append(Problem(message, key="piece", value=str(self.piece), expected=expected))
        if problems:
            raise InputError(problems)

    def __bool__(self) -> bool:
        """Whether anything is held there."""
        return self.layers > 0 or self.states != "gpu"
