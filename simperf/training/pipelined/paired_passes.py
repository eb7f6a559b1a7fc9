"""Two passes of a rank beside each other: while one waits for its communication, the other one computes.

Each runs up to a collective that it waits for; the other one continues before that wait. So a forward pass hides the
exchanges of a backward pass, and the other way round (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, figure 4).
Kernels of both are on one stream, one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

__all__ = ["TURN", "side_by_side"]

#: what a pass yields where it is about to wait, and another one may go on
TURN = object()


def side_by_side(*passes: Generator[Any, Any, None]) -> Generator[Any, Any, None]:
    """Steps of passes, the next one's from where one yields `TURN`.

    Parameters
    ----------
    *passes : generator
        Of verbs and `TURN`.

    Examples
    --------
    >>> def steps(name):
    ...     yield f"{name} computes"
    ...     yield TURN
    ...     yield f"{name} waits"
    >>> list(side_by_side(steps("F"), steps("B")))
    ['F computes', 'B computes', 'F waits', 'B waits']
    """
    running = deque(passes)
    answer: Any = None
    while running:
        try:
            verb = running[0].send(answer)
        except StopIteration:
            running.popleft()
            answer = None
            continue
        if verb is TURN:
            running.rotate(-1)
            answer = None
        else:
            answer = yield verb
