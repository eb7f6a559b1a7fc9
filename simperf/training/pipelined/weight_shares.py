"""The part of sharded weights that one data-parallel rank has."""

from __future__ import annotations

from typing import NamedTuple

from simperf.layout import Layout

__all__ = ["WeightShares"]


class WeightShares(NamedTuple):
    """Numbers of ranks that share the weights of a stage: those of experts have copies on fewer.

    Parameters
    ----------
    others, experts : int
        That share weights beside those of experts, and those of experts.

    Examples
    --------
    >>> shares = WeightShares.of(Layout(dp=8, cp=2, ep=4), copies=1)
    >>> shares
    WeightShares(others=16, experts=4)
    >>> shares.part(150, 70), shares.largest(150, 70)
    (22.5, 23)
    """

    others: int
    experts: int

    @classmethod
    def of(cls, layout: Layout, copies: int = 1) -> WeightShares:
        """Ranks of a layout, where a rank's stages have so many copies of the model."""
        return cls(layout.dp_shard * layout.cp * copies, layout.expert_dp_shard * copies)

    def part(self, weights: float, of_experts: float = 0.0) -> float:
        """Weights of a rank, of so many, of which some are of experts; the mean of all ranks."""
        return (weights - of_experts) / self.others + of_experts / self.experts

    def largest(self, weights: int, of_experts: int = 0) -> int:
        """The same of the rank that has most."""
        return -(-(weights - of_experts) // self.others) + -(-of_experts // self.experts)

    def along(self, dimension: str) -> int:
        """Ranks that share the weights of a bucket, by its dimension: dp, or edp of experts."""
        return self.experts if dimension == "edp" else self.others
