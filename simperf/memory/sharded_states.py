"""Weights, gradients and optimizer states of a rank, whole or sharded over data-parallel ranks.

With (2 + 2 + K) bytes a weight, data-parallel ranks keep all of it each, or a part of the optimizer states (ZeRO-1), of
gradients too (ZeRO-2), of weights too (ZeRO-3, fully sharded data parallelism). Rajbhandari et al., "ZeRO: Memory
Optimizations Toward Training Trillion Parameter Models", SC 2020, figure 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from simperf.errors import InputError, Problem
from simperf.memory.tensors import TensorKind

__all__ = ["SHARDED_KINDS", "ParameterBytes", "state_memory"]

#: what data-parallel ranks keep a part of, by the name of the sharding (`simperf.layout.SHARDINGS`)
SHARDED_KINDS: dict[str, tuple[TensorKind, ...]] = {
    "none": (),
    "zero-1": ("master", "optimizer"),
    "zero-2": ("master", "optimizer", "gradients"),
    "zero-3": ("master", "optimizer", "gradients", "weights"),
}


@dataclass(frozen=True, slots=True)
class ParameterBytes:
    """Bytes of a weight and of all that training keeps for it; by default bf16 with Adam in fp32.

    Parameters
    ----------
    weights : float
        As the model's products read it [B].
    gradients : float
        In which its gradient is accumulated [B].
    master : float
        The copy that the optimizer updates, if it is another one [B].
    optimizer : float
        States of the optimizer [B].
    """

    weights: float = 2.0
    gradients: float = 2.0
    master: float = 4.0
    optimizer: float = 8.0

    @property
    def total(self) -> float:
        """All together, on one rank that keeps everything [B]."""
        return self.weights + self.gradients + self.master + self.optimizer


def state_memory(
    parameters: float, each: ParameterBytes, *, sharding: str = "none", over: int = 1
) -> dict[TensorKind, float]:
    """Memory that a rank keeps for its weights for the whole run, by kind [B].

    Parameters
    ----------
    parameters : float
        Weights of this rank's part of the model, before sharding.
    each : ParameterBytes
    sharding : str
        One of `SHARDED_KINDS`.
    over : int
        Data-parallel ranks that share it.

    Raises
    ------
    InputError
        No such sharding.

    Examples
    --------
    ZeRO's example, 7.5e9 weights over 64 ranks, in GB: 120, 31.4, 16.6 and 1.9.

    >>> for sharding in SHARDED_KINDS:
    ...     print(round(sum(state_memory(7.5e9, ParameterBytes(), sharding=sharding, over=64).values()) / 1e9, 1))
    120.0
    31.4
    16.6
    1.9
    """
    if sharding not in SHARDED_KINDS:
        message = "no such sharding"
        raise InputError(Problem(message, key="sharding", value=sharding, expected=", ".join(SHARDED_KINDS)))
    shared = SHARDED_KINDS[sharding]
    found: dict[TensorKind, float] = {
        "weights": each.weights,
        "gradients": each.gradients,
        "master": each.master,
        "optimizer": each.optimizer,
    }
    return {kind: size * parameters / (over if kind in shared else 1) for kind, size in found.items() if size}
