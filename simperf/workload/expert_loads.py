"""Mixture of experts: how many rows each expert gets, and the number formats of its products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simperf.errors import InputError, Problem

__all__ = ["BALANCED", "EXPERT_PRECISIONS", "ExpertPrecision", "expert_loads", "rank_rows", "shared_loads"]

#: load of experts that all get the same number of rows, and beginning of the name of one by a power law
BALANCED, _POWER_LAW = "balanced", "power-law-"
#: most of all tokens that the law gives one expert, before the sum is set right
_MOST = 0.8
Loads = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ExpertPrecision:
    """Number formats of the experts' products.

    Parameters
    ----------
    dtype : str
        Of the arithmetic.
    weight, activation : float
        of one element, factors of its block included [B]
    scaling : str
        What quantises activations as the layer runs: ``""`` nothing, ``"tensor"`` one kernel before the layer,
        ``"block"`` one kernel before each of the two products.
    kernels : str
        Which kernels serve it: ``""`` those of most, ``"block"`` those that apply factors of blocks as they add up,
        ``"mixed"`` those that widen weights as they read them.
    """

    dtype: str
    weight: float
    activation: float
    scaling: str = ""
    kernels: str = ""


#: precision of a layer -> its formats: 8-bit numbers with a factor a tensor, or for 128 elements of a row and for 128 x
#: 128 weights; 4-bit weights with a factor for 32 (OCP Microscaling Formats v1.0), beside activations of 16 or 8 bits
EXPERT_PRECISIONS: Mapping[str, ExpertPrecision] = MappingProxyType(
    {
        "bf16": ExpertPrecision("bf16", 2.0, 2.0),
        "fp16": ExpertPrecision("fp16", 2.0, 2.0),
        "fp8": ExpertPrecision("fp8", 1.0, 1.0, "tensor"),
        "fp8-block": ExpertPrecision("fp8", 1.0 + 4.0 / 128**2, 1.0 + 4.0 / 128, "block", "block"),
        "mxfp4-bf16": ExpertPrecision("bf16", 0.5 + 1.0 / 32, 2.0, kernels="mixed"),
        "mxfp4-mxfp8": ExpertPrecision("fp8", 0.5 + 1.0 / 32, 1.0 + 1.0 / 32, "tensor"),
    }
)


@lru_cache(maxsize=4096)
def rank_rows(
    tokens: int, experts: int, top_k: int, *, ranks: int, load: str = BALANCED
) -> tuple[tuple[int, int], ...]:
    """Rows of the experts on the first of `ranks`, as in `simperf.workload.op.ExpertShape`.

    By a power law the fullest rank is first.

    Examples
    --------
    >>> rank_rows(64, 256, 8, ranks=8), rank_rows(1, 256, 8, ranks=8), rank_rows(48, 256, 8, ranks=16)
    (((2, 32),), ((1, 1),), ((2, 16),))
    """
    loads = expert_loads(tokens, experts, top_k, ranks=ranks, load=load)[: experts // ranks]
    rows, counts = np.unique(loads[loads > 0], return_counts=True)
    return tuple((int(row), int(count)) for row, count in zip(rows, counts, strict=True))


def expert_loads(tokens: int, experts: int, top_k: int, *, ranks: int = 1, load: str = BALANCED) -> Loads:
    """Rows of each expert of a layer: `tokens` times `top_k` in all, none more than `tokens`.

    Parameters
    ----------
    tokens, experts, top_k : int
        Each token goes to `top_k` of the `experts`.
    ranks : int
        That share the experts, each as many as the others.
    load : str
        ``"balanced"``: a token goes to experts at equal distances, and the next one to their neighbours.
        ``"power-law-A"``: shares of the experts are drawn from a power law with the exponent A; behind a slash
        may stand the number of the draw (``"power-law-1.2/3"``), 0 unless it does. The rank with the most rows changes
        places with the first.

    Raises
    ------
    InputError
        Another load, more than all experts for a token, or ranks among which the experts cannot be divided.

    Examples
    --------
    >>> expert_loads(6, 8, 2).tolist()
    [2, 2, 1, 1, 2, 2, 1, 1]
    >>> int(expert_loads(1000, 64, 8, ranks=4, load="power-law-1.2").sum())
    8000
    """
    problems = []
    if top_k > experts:
        problems.append(
            Problem(f"more than the {experts} experts", key="top_k", value=repr(top_k), expected=f"at most {experts}")
        )
    if experts % ranks:
        problems.append(
            Problem(
                f"must divide the {experts} experts",
                key="expert_parallel",
                value=repr(ranks),
                expected="a divisor of it",
            )
        )
    law = None if load == BALANCED else _law(load)
    if law is None and load != BALANCED:
        expected = f"{BALANCED}, {_POWER_LAW}EXPONENT or {_POWER_LAW}EXPONENT/DRAW"
        problems.append(Problem("no load of experts", key="load", value=repr(load), expected=expected))
    if problems:
        raise InputError(problems)
    return _balanced(tokens, experts, top_k) if law is None else _drawn(tokens, experts, top_k, ranks, law)


def shared_loads(tokens: int, top_k: int, shares: Sequence[float]) -> Loads:
    """Rows of each expert by their shares: `tokens` times `top_k` in all, none more than `tokens`.

    Parameters
    ----------
    tokens, top_k : int
        Each token goes to `top_k` experts.
    shares : sequence of float
        Of each expert, in any unit.

    Examples
    --------
    >>> shared_loads(100, 2, [1, 1, 2, 6]).tolist()
    [30, 30, 40, 100]
    """
    total = tokens * top_k
    exact = np.array(shares, dtype=float) / sum(shares) * total
    rows = np.floor(exact).astype(np.int64)
    rest = total - int(rows.sum())
    rows[np.argsort(rows - exact, kind="stable")[:rest]] += 1
    most = np.minimum(rows, tokens)
    return _filled(most.reshape(1, -1), total - int(most.sum()), tokens).ravel()


def _law(load: str) -> tuple[float, int] | None:
    """Exponent and number of the draw."""
    exponent, _, draw = load.removeprefix(_POWER_LAW).partition("/")
    try:
        found = float(exponent), int(draw or 0)
    except ValueError:
        return None
    return found if load.startswith(_POWER_LAW) and 0 < found[0] <= 10 and found[1] >= 0 else None


def _balanced(tokens: int, experts: int, top_k: int) -> Loads:
    step = -(-experts // top_k)
    apart = np.arange(top_k) * step if (top_k - 1) * step < experts else np.arange(top_k) * experts // top_k
    # few tokens spread over the distance between two experts of one token
    first = np.arange(min(tokens, step)) * step // tokens if tokens < step else np.arange(tokens % experts)
    chosen = (first[:, None] + apart[None, :]) % experts
    every = 0 if tokens < step else tokens // experts * top_k
    return np.bincount(chosen.ravel(), minlength=experts).astype(np.int64) + every


def _drawn(tokens: int, experts: int, top_k: int, ranks: int, law: tuple[float, int]) -> Loads:
    exponent, draw = law
    total = tokens * top_k
    low, high = (1.0, max(1.0, _MOST * tokens)) if total > experts else (0.01, 2.0)
    place = np.random.default_rng(draw).random(experts)
    power = 1.0 - exponent
    if abs(power) < 1e-9:
        share = low * (high / low) ** place
    else:
        share = ((high**power - low**power) * place + low**power) ** (1.0 / power)
    rows = np.minimum(np.rint(share / share.sum() * total).astype(np.int64), tokens).reshape(ranks, -1)
    missing = total - int(rows.sum())
    rows = _filled(rows, missing, tokens) if missing >= 0 else -_filled(-rows, -missing, 0)
    fullest = int(rows.sum(axis=1).argmax())
    rows[[0, fullest]] = rows[[fullest, 0]]
    return rows.ravel()


def _filled(rows: Loads, missing: int, most: int) -> Loads:
    """Rows with so many more, spread evenly over the ranks and given to the lowest of each, none above `most`."""
    rows = rows.copy()
    while missing > 0:
        open_ranks = np.flatnonzero(rows.min(axis=1) < most)
        each, rest = divmod(missing, len(open_ranks))
        for position, rank in enumerate(open_ranks):
            wanted = each + (position < rest)
            missing -= wanted - _fill(rows[rank], wanted, most)
    return rows


def _fill(rows: Loads, amount: int, most: int) -> int:
    """Raise the lowest in place until `amount` is used up or all are at `most`; return what is left."""
    while amount > 0 and (lowest := int(rows.min())) < most:
        low = np.flatnonzero(rows == lowest)
        above = rows[rows > lowest]
        level = min(int(above.min()) if above.size else most, most)
        by = min(level - lowest, amount // len(low))
        if by == 0:
            rows[low[:amount]] += 1
            return 0
        rows[low] += by
        amount -= by * len(low)
    return amount
