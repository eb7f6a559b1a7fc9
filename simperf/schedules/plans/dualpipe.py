"""DualPipe: micro-batches enter at both ends (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.2.1)."""

from __future__ import annotations

from itertools import count

from simperf.errors import InputError, Problem
from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Pass, Schedule

__all__ = ["dualpipe"]


class _Stage:
    """The passes of one stage; `near` is the chunk whose micro-batches come in at the nearer end."""

    def __init__(self, near: int, first: tuple[int, int]) -> None:
        self.passes: list[Pass] = []
        self.beside: list[int] = []
        self._chunks = (near, 1 - near)
        self._next = {kind: [count(first[chunk]) for chunk in self._chunks] for kind in ("F", "B")}
        self._weights: list[Pass] = []

    def forward(self, side: int) -> None:
        self.passes.append(Pass("F", next(self._next["F"][side]), self._chunks[side]))

    def backward(self, side: int, *, whole: bool = True) -> None:
        """Backward, with the gradients of weights, or without and these later."""
        one = Pass("B", next(self._next["B"][side]), self._chunks[side])
        self.passes.append(one)
        self._weights.append(one._replace(kind="W"))
        if whole:
            self.passes.append(self._weights.pop())

    def both(self, forward: int, backward: int) -> None:
        """Forward of one side beside backward of the other."""
        self.beside.append(len(self.passes))
        self.forward(forward)
        self.backward(backward)

    def weights(self) -> None:
        """The oldest gradients of weights that are left."""
        self.passes.append(self._weights.pop(0))

    def rest(self) -> None:
        """All gradients of weights that are left."""
        self.passes += self._weights


@schedule("dualpipe")
def dualpipe(stages: int, microbatches: int) -> Schedule:
    """Every stage has two parts of the model, one for each direction; forward and backward passes come in pairs.

    The passes of a pair hide each other's communication, but for the first pair of the two stages in the middle (the
    order of deepseek-ai/DualPipe, dualpipe/dualpipe.py). A stage keeps the activations of p + 1 micro-batches at most,
    and twice the weights of other schedules. With T_FB the time of a pair, T_B of a backward pass with and T_W of the
    gradients of weights, the bubble is (p / 2 - 1) (T_FB + T_B - 3 T_W) where the two passes of a pair end together,
    and less where they do not.

    Raises
    ------
    InputError
        An odd number of stages or micro-batches, or fewer than two micro-batches a stage.
    """
    problems = []
    if stages % 2:
        message = "an even number of stages is expected: they are used from both ends"
        near = f"{stages - 1} or {stages + 1}" if stages > 1 else "2"
        expected = f"{near}, with stage_layers where it does not divide the layers"
        problems.append(Problem(message, key="stages", value=str(stages), expected=expected))
    if microbatches % 2 or microbatches < 2 * stages:
        message = "an even number of micro-batches is expected, two for each stage or more"
        expected = str(max(2 * stages, microbatches + 1))
        problems.append(Problem(message, key="microbatches", value=str(microbatches), expected=expected))
    if problems:
        raise InputError(problems)
    half, middle = microbatches // 2, stages // 2
    plans, pairs = [], []
    for number in range(stages):
        edge = min(number, stages - 1 - number)
        inner = middle - edge - 1
        one = _Stage(0 if number < middle else 1, (0, half))
        for _ in range(2 * inner):
            one.forward(0)
        for _ in range(edge + 1):
            one.forward(0)
            one.forward(1)
        for _ in range(inner):
            one.backward(1, whole=False)
            one.weights()
            one.forward(1)
        for turn in range(half - stages + edge + 1):
            if turn or inner:
                one.both(0, 1)
            else:
                one.forward(0)
                one.backward(1)
            one.both(1, 0)
        for _ in range(inner):
            one.backward(1)
            one.both(1, 0)
        for index in range(edge + 1):
            one.backward(1, whole=2 * index < edge + 1)
            one.backward(0, whole=2 * index + 1 < edge + 1)
        for _ in range(inner):
            one.weights()
            one.backward(0, whole=False)
        one.rest()
        plans.append(tuple(one.passes))
        pairs.append(frozenset(one.beside))
    down = tuple((number, 0) for number in range(stages))
    up = tuple((number, 1) for number in reversed(range(stages)))
    return Schedule("dualpipe", microbatches, tuple(plans), down, (stages + 1,) * stages, up, tuple(pairs))
