"""A feed-forward network that every token meets, on one rank: a block's own, or the shared experts of a mixture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers.parallel.activation import Activation
from simperf.workload.transformers.parallel.linear import Linear
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept

__all__ = ["FeedForward"]


@dataclass(frozen=True, slots=True)
class FeedForward:
    """Up, with the gate, activation, and down.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    ffn : int
        Width on this rank.
    at : str
        Beginning of all names.
    shared : bool
        Whether something else reads its input backward, too.
    """

    sizes: RankSizes
    kernels: LayerKernels
    ffn: int
    at: str = ""
    shared: bool = False

    @property
    def matrices(self) -> tuple[Linear, Linear]:
        """Up and down."""
        sizes, kernels, parts = self.sizes, self.kernels, (self.ffn,) * (2 if self.sizes.model.gated else 1)
        return (
            Linear(f"{self.at}up", sizes.hidden, sum(parts), sizes, kernels, parts=parts, shared=self.shared),
            Linear(f"{self.at}down", self.ffn, sizes.hidden, sizes, kernels, row=True),
        )

    @property
    def last(self) -> Linear:
        """The matrix whose bias the residual adds."""
        return self.matrices[1]

    @property
    def placeholders(self) -> Iterator[Kept]:
        """Memory in place of gradients."""
        for one in self.matrices:
            yield from one.placeholders

    @property
    def scaled(self) -> tuple[int, ...]:
        """Weights of each matrix whose operands are cast."""
        return tuple(one.casts.weights for one in self.matrices if one.casts is not None)

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that its backward pass reads, but its input."""
        return f"{self.at}up.output", *self.activation.kept, *self.matrices[0].narrow

    def forward(self, record: PassRecord, x: str) -> str:
        """Operations from its input; the name of what it makes."""
        up, down = self.matrices
        up.forward(record, x)
        self.activation.forward(record)
        return down.forward(record, f"{self.at}activation.output")

    def again(self, record: PassRecord, x: str) -> None:
        """Operations from its input to the last tensor that its backward pass reads."""
        up, down = self.matrices
        up.forward(record, x)
        self.activation.forward(record)
        for one in down.adapters:
            one.again(record)
        down.keep_again(record, f"{self.at}activation.output")

    def backward(self, record: PassRecord, gradient: str, x: str, *, last: bool = True, frees: bool = True) -> str:
        """Gradient of its input `x`; its name.

        Parameters
        ----------
        record : PassRecord
        gradient : str
            Of what it makes.
        x : str
        last, frees : bool
            Whether nothing behind it reads `gradient`, and `x`.
        """
        up, down = self.matrices
        inner = down.backward(record, gradient, f"{self.at}activation.output", last=last)
        inner = self.activation.backward(record, inner, up)
        return up.backward(record, inner, x, frees=frees)

    @property
    def activation(self) -> Activation:
        """Between the two."""
        return Activation(self.sizes, self.kernels, self.sizes.tokens, self.ffn, self.at)
