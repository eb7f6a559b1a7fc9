"""Exchanges of tensor-parallel ranks around their matrices, whether one matrix reads or makes a tensor, or several."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers.parallel.parts import ProductParts
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import CollectiveName

__all__ = ["TensorExchanges"]


@dataclass(frozen=True, slots=True)
class TensorExchanges:
    """Exchanges of a tensor that ranks make or read together: of a matrix, or of matrices that share it.

    Parameters
    ----------
    name : str
        Beginning of their labels: of the matrix, or of what the matrices are.
    columns : int
        Of the tensor, which has a row for each token of the micro-batch.
    sizes : RankSizes
    kernels : LayerKernels
    """

    name: str
    columns: int
    sizes: RankSizes
    kernels: LayerKernels

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        return self.sizes.tokens * self.columns

    @property
    def nbytes(self) -> float:
        """Size of the tensor [B]."""
        return self.sizes.width * self.elements

    @property
    def beside(self) -> bool:
        """Whether backward exchanges run beside gradients."""
        return self.kernels.gradient_overlap == "beside"

    def gather_again(self, record: PassRecord, x: str, *, share: float = 1.0) -> None:
        """Begin to gather, backward, what matrices read: gradients of weights need all of its rows.

        Parameters
        ----------
        record : PassRecord
        x : str
            This rank's rows.
        share : float
            Of the tensor's bytes that travel [1].
        """
        record.read(x)
        nbytes = self.nbytes * share
        record.sync("all-gather", nbytes, f"{self.name}.gather.back", waits=not self.beside, weights=True)
        record.hold(f"{self.name}.gathered", nbytes, weights=True)

    def reduce_gradient(self, record: PassRecord, parts: ProductParts, found: str) -> str:
        """Begin to add up the gradient `found` of what matrices read; the name of this rank's part, or of all of it.

        What gathered rows is reduced to a part; `finish_gradient` waits for it where it runs beside gradients.
        """
        gathers = self.sizes.sequence_parallel
        if parts.count == 1:
            collective: CollectiveName = "reduce-scatter" if gathers else "all-reduce"
            record.sync(collective, self.nbytes, f"{self.name}.reduce.back", waits=not self.beside)
        if not gathers:
            return found
        if not self.beside:
            parts.add_up(self.elements)
        record.hold(f"{found}.reduced", self.nbytes / self.sizes.tp)
        return f"{found}.reduced"

    def finish_gradient(self, record: PassRecord, parts: ProductParts, *, reduces: bool) -> None:
        """Wait for what `reduce_gradient` has begun, if it has."""
        record.wait(f"{self.name}.reduce.back")
        if reduces and self.beside and self.sizes.sequence_parallel:
            parts.add_up(self.elements)

    def add_up(self, record: PassRecord, parts: ProductParts, made: str) -> str:
        """Add up over the ranks what matrices have made; the name of the sum, with sequence parallelism of a part."""
        if self.sizes.tp == 1:
            return made
        if not self.sizes.sequence_parallel:
            record.sync("all-reduce", self.nbytes, f"{self.name}.reduce")
            return made
        if parts.count == 1:
            record.sync("reduce-scatter", self.nbytes, f"{self.name}.reduce")
        parts.add_up(self.elements)
        record.hold(f"{self.name}.reduced", self.nbytes / self.sizes.tp)
        record.free(made)
        return f"{self.name}.reduced"
