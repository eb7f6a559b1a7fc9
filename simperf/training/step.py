"""One training step of one replica, as a strategy sees it: kernels, and gradients as they become ready.

A strategy does not care whether the step comes from a traced model, a profile or a textbook's
round numbers. It launches the kernels and moves the gradients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from simperf.engine.items import Marker
from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem

__all__ = ["Ahead", "Gradient", "ReplicaStep", "even_step"]


@dataclass(frozen=True, slots=True)
class Gradient:
    """The gradient of one parameter.

    Parameters
    ----------
    name : str
    nbytes : float
        Size [B].
    ready : int
        Index of the backward kernel after which it is final.
    """

    name: str
    nbytes: float
    ready: int


@dataclass(frozen=True, slots=True)
class ReplicaStep:
    """Step of one replica on its share of the mini-batch.

    Parameters
    ----------
    name : str
    samples : float
        Samples that the replica works on.
    forward, backward, update : tuple of Kernel
        In the order in which they are launched.
    gradients : tuple of Gradient
        In the order in which the backward pass makes them ready.
    nbytes_input : float
        The replica's share of the mini-batch, as copied to its device [B].
    nbytes_output : float
        What its forward pass hands back (the logits) [B].
    memory : mapping of str to float
        Bytes on the device by what holds them: weights, gradients, optimizer, activations, buffers [B].

    Raises
    ------
    InputError
        A gradient that no backward kernel makes ready, or gradients out of order.
    """

    name: str
    samples: float
    forward: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]
    update: tuple[Kernel, ...]
    gradients: tuple[Gradient, ...]
    nbytes_input: float = 0.0
    nbytes_output: float = 0.0
    memory: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [
            Problem(
                f"gradient {one.name!r} is ready after backward kernel {one.ready}; there are {len(self.backward)}",
                key=f"gradients[{index}]",
                expected=f"0 to {len(self.backward) - 1}",
            )
            for index, one in enumerate(self.gradients)
            if not 0 <= one.ready < len(self.backward)
        ]
        order = [one.ready for one in self.gradients]
        if order != sorted(order):
            problems.append(
                Problem(
                    "gradients must stand in the order in which they become ready",
                    key="gradients",
                    expected="the order of `ready`",
                )
            )
        if problems:
            raise InputError(problems)

    @property
    def nbytes_gradients(self) -> float:
        """Size of all gradients together [B]."""
        return sum(one.nbytes for one in self.gradients)

    @property
    def compute_time(self) -> float:
        """Time of the device alone, without the frontend and without communication [s]."""
        return sum(kernel.time for kernel in (*self.forward, *self.backward, *self.update))


@dataclass(slots=True)
class Ahead:
    """Mini-batches of a process that are copied beside the step before theirs, and the end of the last copy."""

    copied: Marker | None = None


def even_step(
    layers: int,
    *,
    forward: float,
    backward: float,
    update: float = 0.0,
    nbytes: float,
    samples: float = 1.0,
    nbytes_input: float = 0.0,
    sizes: Sequence[float] = (),
    launch: float | None = None,
) -> ReplicaStep:
    """A step of equal layers, for questions in round numbers.

    Parameters
    ----------
    layers : int
        One forward and one backward kernel each, and one gradient.
    forward, backward, update : float
        Time of the whole pass [s].
    nbytes : float
        Size of all gradients together [B].
    samples : float
    nbytes_input : float
        Input of the replica [B].
    sizes : sequence of float
        Sizes of the layers' gradients in proportion, first layer first; equal if left out.
    launch : float or None
        Time of the frontend to issue one kernel [s]; None takes the frontend's own.

    Raises
    ------
    InputError
        No layer, not a size for each or all of them 0, or a time below 0.

    Examples
    --------
    >>> step = even_step(5, forward=0.0, backward=5e-3, nbytes=100 * 2**20)
    >>> len(step.backward), step.gradients[0].name, step.gradients[0].ready
    (5, 'layer4', 0)
    """
    problems = [
        Problem("a time of 0 or more is expected", key=key, value=f"{time:g}")
        for key, time in (("forward", forward), ("backward", backward), ("update", update))
        if not 0.0 <= time < math.inf
    ]
    if sizes and not (min(sizes) >= 0.0 and 0.0 < sum(sizes) < math.inf):
        message = "sizes are 0 or more, and one of them above 0"
        problems.append(Problem(message, key="sizes", value=str(list(sizes))))
    if layers < 1 or (sizes and len(sizes) != layers):
        problems.append(
            Problem("one layer or more, and a size for each, are expected", key="layers", value=str(layers))
        )
    if problems:
        raise InputError(problems)
    weights = list(sizes) or [1.0] * layers
    total = sum(weights)

    def kernels(kind: str, time: float) -> tuple[Kernel, ...]:
        order = range(layers) if kind == "forward" else range(layers - 1, -1, -1)
        return (
            tuple(Kernel(f"{kind} layer{i}", time / layers, launch=launch, result=0.0) for i in order) if time else ()
        )

    last = layers - 1
    gradients = tuple(Gradient(f"layer{last - i}", nbytes * weights[last - i] / total, i) for i in range(layers))
    back = kernels("backward", backward) or tuple(
        Kernel(f"backward layer{i}", 0.0, launch=launch, result=0.0) for i in range(last, -1, -1)
    )
    updates = (Kernel("update", update, launch=launch, result=0.0, category="memory"),) if update else ()
    return ReplicaStep(
        "even", samples, kernels("forward", forward), back, updates, gradients, nbytes_input=nbytes_input
    )
