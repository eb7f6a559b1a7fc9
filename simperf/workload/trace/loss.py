"""Loss that is minimised, where the model does not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simperf.errors import InputError, Problem, nearest

__all__ = ["LOSSES", "find_loss"]


def find_loss(name: str) -> Callable[[Any], Any]:
    """Loss of that name: a function of what the model returned.

    Raises
    ------
    InputError
        There is none of this name.
    """
    if name not in LOSSES:
        message = f"no loss {name!r}{nearest(name, LOSSES)}"
        raise InputError(Problem(message, key="--loss", expected=", ".join(LOSSES)))
    return LOSSES[name]


def _first(output: Any) -> Any:
    """The tensor that counts: what is called loss or logits, else the first."""
    import torch

    for name in ("loss", "logits", "last_hidden_state"):
        found = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
        if isinstance(found, torch.Tensor):
            return found
    if isinstance(output, Mapping):
        output = tuple(output.values())
    while isinstance(output, list | tuple) and output:
        output = output[0]
    if not isinstance(output, torch.Tensor):
        raise InputError(
            Problem(
                f"the model returned {type(output).__name__}, from which no loss can be made",
                expected="a tensor, a tuple that begins with one, or something with .loss or .logits",
            )
        )
    return output


def _cross_entropy(output: Any) -> Any:
    """Classes are the last dimension, against one target index a row; (batch, classes, ...) is not meant."""
    import torch
    from torch.nn import functional

    logits = _first(output)
    rows = logits.reshape(-1, logits.shape[-1])
    target = torch.empty(rows.shape[0], dtype=torch.int64, device="meta")
    return functional.cross_entropy(rows, target)


def _mse(output: Any) -> Any:
    import torch
    from torch.nn import functional

    values = _first(output)
    return functional.mse_loss(values, torch.empty(values.shape, dtype=values.dtype, device="meta"))


def _mean(output: Any) -> Any:
    return _first(output).mean()


def _sum(output: Any) -> Any:
    return _first(output).sum()


def _auto(output: Any) -> Any:
    """A number is the loss itself; rows of logits have a cross-entropy; all else a mean square."""
    values = _first(output)
    if values.dim() == 0:
        return values
    return _cross_entropy(values) if values.dim() in (2, 3) else _mse(values)


#: loss -> function of what the model returned
LOSSES: Mapping[str, Callable[[Any], Any]] = {
    "auto": _auto,
    "cross-entropy": _cross_entropy,
    "mse": _mse,
    "mean": _mean,
    "sum": _sum,
}
