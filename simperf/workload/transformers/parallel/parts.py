"""Matrix products in parts: what tensor-parallel ranks gather for one part travels beside the product of another.

Asynchronous tensor parallelism, as in PyTorch (torch/distributed/_symmetric_memory) and in Transformer Engine's user
buffers. Parts are launched on several streams in turn (two of PyTorch, three of Transformer Engine), so that the tiles
of one fill the last wave of another. With collectives, each part of the tokens has one of its own. Around a ring there
are as many parts as ranks: the first one is there, and each of the others comes from the neighbour, by the GPU's copy
engines; of what is added up, each part goes to the rank that it belongs to, which adds up what has come. Bytes are
those of one collective.

Not modelled: products whose kernels tell by themselves when a part is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from simperf.errors import Problem, nearest_divisors
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import CollectiveName

__all__ = ["ProductParts", "parts_without_effect"]


class ProductParts:
    """Parts of one product, as they are written down.

    Parameters
    ----------
    record : PassRecord
    label : str
        Of the collective.
    kernels : LayerKernels
    sizes : RankSizes
    cut : bool
        Whether it is cut at all.

    Attributes
    ----------
    count : int
        Parts of the product.
    """

    def __init__(
        self, record: PassRecord, label: str, kernels: LayerKernels, sizes: RankSizes, *, cut: bool = True
    ) -> None:
        self._record, self._label, self._sizes = record, label, sizes
        self.count = kernels.product_parts if cut else 1
        self._ring = kernels.parts_exchange == "ring"
        self._coming: set[int] = set()

    def name(self, product: str, part: int) -> str:
        """Name of a product, or of its part."""
        return f"{product}/{part}" if self.count > 1 else product

    def rows(self, tokens: int) -> int:
        """Rows of a part."""
        return tokens // self.count

    def product(self, op: Op) -> Op:
        """The product of a part, whose last wave the tiles of the others fill."""
        return replace(op, turns=self.count) if self.count > 1 else op

    def gather(self, nbytes: float) -> None:
        """Begin to gather the rows of all parts, of a payload [B]."""
        if self.count == 1:
            self._record.sync("all-gather", nbytes, self._label)
            return
        for part in range(self._ring, self.count):
            self._send("all-gather", nbytes, part)

    def arrive(self, part: int) -> None:
        """Wait for the rows of a part, unless they are there."""
        self._wait(part)

    def arrive_all(self) -> None:
        """Wait for all rows."""
        for part in range(self.count):
            self._wait(part)

    def reduce(self, nbytes: float, part: int) -> None:
        """Begin to add up over the ranks what a part has made, of a payload of all parts [B]."""
        if self.count > 1 and not (self._ring and part == self.count - 1):  # the last part is this rank's own
            self._send("reduce-scatter", nbytes, part)

    def add_up(self, elements: float) -> None:
        """Wait for all parts, and add up what copies have brought, of so many elements that the whole product makes."""
        self.arrive_all()
        if self.count > 1 and self._ring:
            width = self._sizes.width
            op = each(
                "sum", elements, read=width, written=width / self.count, dtype=self._sizes.precision, family="reduction"
            )
            self._record.op(op, f"{self._label}/sum")

    def _send(self, name: CollectiveName, nbytes: float, part: int) -> None:
        self._record.sync("copy" if self._ring else name, nbytes / self.count, f"{self._label}/{part}", waits=False)
        self._coming.add(part)

    def _wait(self, part: int) -> None:
        if part in self._coming:
            self._coming.discard(part)
            self._record.wait(f"{self._label}/{part}")


def parts_without_effect(kernels: LayerKernels, *, tp: int, sequence_parallel: bool, tokens: int) -> Iterator[Problem]:
    """Problems of the number of parts, which is wrong or has no effect.

    Parameters
    ----------
    kernels : LayerKernels
    tp : int
    sequence_parallel : bool
    tokens : int
        Rows of a product.
    """
    parts, ring = kernels.product_parts, kernels.parts_exchange == "ring"
    key, value = "product_parts", str(parts)
    if parts < 1:
        yield Problem("a whole number of 1 or more is expected", key=key, value=value)
    elif parts > 1 and (tp == 1 or not sequence_parallel):
        message = "nothing is gathered for a product: tensor-parallel ranks do not share the tokens"
        yield Problem(message, key=key, value=value, expected="1, or tp > 1 and sequence_parallel = true")
    elif ring and parts != tp:
        message = f"around a ring of {tp} ranks there are as many parts"
        yield Problem(message, key=key, value=value, expected=str(tp))
    elif tokens % parts:
        near = " or ".join(str(count) for count in nearest_divisors(tokens, parts))
        yield Problem(f"parts do not divide {tokens} tokens", key=key, value=value, expected=near)
