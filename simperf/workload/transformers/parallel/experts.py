"""The experts of a block on one rank: router, rows to the experts' ranks and back, grouped products.

The order is that of Megatron-Core's dispatcher by all-to-all (megatron/core/transformer/moe/token_dispatcher.py): each
rank chooses experts for its tokens, copies a row for each of them, and sends the rows to the ranks of their experts;
there they are sorted by expert, and what the products make goes the same way back. The score of an expert multiplies
its rows in the activation. Lepikhin et al., "GShard", ICLR 2021; Fedus et al., "Switch Transformers", JMLR 2022.

Experts of a rank are multiplied in one kernel, whose rows are those of all of them, or one after the other. Not
modelled: that the process waits for the numbers of rows where experts take any number, sorts inside of the router, and
losses for even loads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from simperf.workload.kinds.dense import linear, matmul
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Gemm, Op
from simperf.workload.precision import SINGLE
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.dimensions import Weight
from simperf.workload.transformers.parallel.activation import Activation
from simperf.workload.transformers.parallel.casts import Casts
from simperf.workload.transformers.parallel.expert_exchange import RowExchange, TokenExchange
from simperf.workload.transformers.parallel.expert_sizes import ExpertSizes
from simperf.workload.transformers.parallel.linear import (
    accumulated,
    adds_in_product,
    gradient_width,
    placeholders_of,
)
from simperf.workload.transformers.parallel.network import FeedForward
from simperf.workload.transformers.parallel.operations import each, weight_product
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept

__all__ = ["Mixture"]


@dataclass(frozen=True, slots=True)
class _Grouped:
    """A matrix of each expert of the rank, multiplied with the expert's rows."""

    name: str
    fan_in: int
    fan_out: int
    sizes: RankSizes
    kernels: LayerKernels
    experts: ExpertSizes

    @property
    def placeholders(self) -> tuple[Kept, ...]:
        """Memory in place of its gradient, named by the shape of an expert's."""
        return placeholders_of(self.fan_out, self.fan_in, self.kernels, self.sizes)

    @property
    def casts(self) -> Casts | None:
        """Casts of its operands; None if they are as wide as weights."""
        recipe, shape = self.sizes.recipe, (self.fan_in, self.fan_out, int(self.experts.rows))
        count, dtype = self.experts.count, self.sizes.precision
        return None if recipe is None else Casts(recipe, self.name, *shape, dtype, matrices=count)

    def forward(self, record: PassRecord, x: str, made: str) -> None:
        """The product with the rows `x`; what it makes is called `made`."""
        one, casts = linear(1, self.fan_in, fan_out=self.fan_out, bias=False, dtype=self.sizes.precision), self.casts
        if casts is not None:
            casts.forward(record)
            if casts.recipe.keeps_narrow:
                record.resize(x, casts.narrow_input)
        for number, op in self._products(one):
            record.op(casts.product(op, "forward") if casts else op, f"{self.name}{number}")
        record.hold(made, self.sizes.width * self.experts.rows * self.fan_out)

    def backward(self, record: PassRecord, gradient: str, x: str) -> str:
        """Gradients of what it read and of the weights; the name of the former."""
        sizes, experts, made = self.sizes, self.experts, f"{self.name}.input.gradient"
        record.hold(made, sizes.width * experts.rows * self.fan_in)
        casts = self.casts
        narrow = casts.gradient(record) if casts is not None else ""
        for number, op in self._products(matmul(1, self.fan_in, k=self.fan_out, dtype=sizes.precision)):
            record.op(casts.product(op, "input") if casts else op, f"{made}{number}")
        fused = adds_in_product(self.kernels, sizes)
        elements = self.fan_in * self.fan_out
        name = f"{self.name}.weight"
        if not fused:
            record.hold(f"{name}.gradient", sizes.width * elements * experts.count, weights=True)
        if casts is not None:
            casts.weight_gradient(record)
        for number, op in self._weight_products(fused=fused):
            product = casts.product(op, "weight") if casts else op
            record.op(product, f"{name}.gradient{number}", weights=True, reads=(x, narrow or gradient))
        if not fused:
            accumulated(record, name, elements * experts.count, self.kernels, sizes)
        record.free(gradient, x, *([narrow] if narrow else []))
        return made

    def _kernels(self) -> Iterator[tuple[str, int, int]]:
        """End of a kernel's name, its experts, and their rows together."""
        own = [rows for rows in self.experts.own if rows]
        if self.kernels.expert_products == "together":
            yield "", len(own), sum(own)
        else:
            for number, rows in enumerate(own):
                yield f".{number}", 1, rows

    def _products(self, one: Op) -> Iterator[tuple[str, Op]]:
        """The product of one row with one expert's matrix, for all rows and experts."""
        gemm, width = one.gemm, self.sizes.width
        assert gemm is not None
        for number, experts, rows in self._kernels():
            made = float(rows * gemm.n)
            yield (
                number,
                replace(
                    one,
                    flops=2.0 * made * gemm.k,
                    nbytes_read=width * (rows * gemm.k + experts * gemm.n * gemm.k),
                    nbytes_written=width * made,
                    holds=width * made,
                    elements=made,
                    gemm=Gemm(max(1, experts), max(1, round(rows / max(1, experts))), gemm.n, gemm.k),
                ),
            )

    def _weight_products(self, *, fused: bool) -> Iterator[tuple[str, Op]]:
        """The gradients of the experts' matrices."""
        sizes = self.sizes
        into = gradient_width(self.kernels, sizes) if fused else sizes.width
        for number, experts, rows in self._kernels():
            mean = max(1, round(rows / max(1, experts)))
            one = weight_product(self.fan_out, self.fan_in, k=mean, dtype=sizes.precision, into=into, adds=fused)
            yield (
                number,
                replace(
                    one,
                    flops=2.0 * rows * self.fan_in * self.fan_out,
                    nbytes_read=experts * one.nbytes_read,
                    nbytes_written=experts * one.nbytes_written,
                    holds=experts * one.holds,
                    elements=experts * one.elements,
                    gemm=Gemm(max(1, experts), self.fan_out, self.fan_in, mean),
                ),
            )


@dataclass(frozen=True, slots=True)
class Mixture:
    """Experts in place of a block's feed-forward network.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    """

    sizes: RankSizes
    kernels: LayerKernels

    #: no matrix has a bias that the residual adds
    last: ClassVar[None] = None

    @property
    def placeholders(self) -> Iterator[Kept]:
        """Memory in place of gradients."""
        for one in self._matrices:
            yield from one.placeholders
        if self._shared is not None:
            yield from self._shared.placeholders

    @property
    def scaled(self) -> tuple[int, ...]:
        """Weights of each matrix of the shared experts whose operands are cast."""
        return self._shared.scaled if self._shared is not None else ()

    @property
    def scaled_experts(self) -> tuple[int, ...]:
        """The same of this rank's experts."""
        return tuple(one.casts.weights for one in self._matrices if one.casts is not None)

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that its backward pass reads, but its input."""
        shared = self._shared.kept if self._shared is not None else ()
        router = ("router.scores", "router.map", "permute.map", "scores")
        return (*router, "rows.sorted", "experts.up.output", *self._activation.kept, *shared)

    def weights(self, name: str) -> tuple[Weight, ...]:
        """Weights of this rank's experts, as those of the block `name` are called."""
        experts, hidden, width = self.sizes.experts, self.sizes.hidden, self.sizes.experts.width
        parts = ("gate", "up") if self.sizes.model.gated else ("up",)
        found = []
        for number in range(experts.count):
            at = f"{name}.experts.{number}"
            found += [Weight(f"{at}.{part}.weight", (width, hidden)) for part in parts]
            found.append(Weight(f"{at}.down.weight", (hidden, width)))
            if self.sizes.model.bias:
                found += [Weight(f"{at}.{part}.bias", (width,)) for part in parts]
                found.append(Weight(f"{at}.down.bias", (hidden,)))
        return tuple(found)

    def forward(self, record: PassRecord, x: str) -> str:
        """Operations from its input; the name of what it makes."""
        sizes, width = self.sizes, self.sizes.width
        self._route(record)
        self._exchange.to_experts(record, x)
        up, down = self._matrices
        up.forward(record, "rows.sorted", "experts.up.output")
        self._activation.forward(record)
        down.forward(record, "experts.activation.output", "experts.down.output")
        self._exchange.from_experts(record)
        if self._shared is None:
            return "experts.output"
        found = self._shared.forward(record, x)
        elements = sizes.local_tokens * sizes.hidden
        added = each("add", elements, read=2 * width, written=width, dtype=sizes.precision)
        made = [Kept("mixture.output", sizes.local)]
        record.op(added, "shared.add", makes=made, frees=("experts.output", found))
        return "mixture.output"

    def backward(self, record: PassRecord, gradient: str, x: str, *, last: bool = True) -> str:
        """Gradient of its input `x`, which is freed; its name.

        Parameters
        ----------
        record : PassRecord
        gradient : str
            Of what it makes.
        x : str
        last : bool
            Whether nothing behind it reads `gradient`.
        """
        sizes, experts, width = self.sizes, self.sizes.experts, self.sizes.width
        shared = ""
        if self._shared is not None:
            shared = self._shared.backward(record, gradient, x, last=False, frees=False)
        self._exchange.gradient_to_experts(record, gradient, last=last)
        up, down = self._matrices
        inner = down.backward(record, "experts.down.gradient", "experts.activation.output")
        inner = self._activation.backward(record, inner)
        record.free("scores")
        record.hold("scores.gradient", SINGLE * experts.rows)
        inner = up.backward(record, inner, "rows.sorted")
        self._exchange.gradient_from_experts(record, inner)
        found = self._route_back(record, x)
        for number, other in enumerate(["permute.input.gradient", *([shared] if shared else [])]):
            added = each("add", sizes.local_tokens * sizes.hidden, read=2 * width, written=width, dtype=sizes.precision)
            total = f"mixture.gradient.{number}"
            record.op(added, total, makes=[Kept(total, sizes.local)], frees=(found, other))
            found = total
        return found

    @property
    def _exchange(self) -> RowExchange | TokenExchange:
        if self.sizes.experts.routing.exchange == "deepep":
            return TokenExchange(self.sizes)
        return RowExchange(self.sizes)

    @property
    def _matrices(self) -> tuple[_Grouped, _Grouped]:
        sizes, kernels, experts = self.sizes, self.kernels, self.sizes.experts
        inner = experts.width * (2 if sizes.model.gated else 1)
        return (
            _Grouped("experts.up", sizes.hidden, inner, sizes, kernels, experts),
            _Grouped("experts.down", experts.width, sizes.hidden, sizes, kernels, experts),
        )

    @property
    def _activation(self) -> Activation:
        experts = self.sizes.experts
        return Activation(self.sizes, self.kernels, experts.rows, experts.width, "experts.", weighted=True)

    @property
    def _shared(self) -> FeedForward | None:
        model, sizes = self.sizes.model, self.sizes
        if not model.shared_experts:
            return None
        width = model.shared_experts * model.inner_width // sizes.tp
        return FeedForward(sizes, self.kernels, width, "shared.", shared=True)  # the router reads the same

    def _route(self, record: PassRecord) -> None:
        """Scores of all experts for each token, and which of them it goes to."""
        sizes, model, n = self.sizes, self.sizes.model, self.sizes.local_tokens
        scores, width, dtype = n * model.experts, self.sizes.width, self.sizes.precision
        product = linear(n, sizes.hidden, fan_out=model.experts, bias=model.bias, dtype=dtype)
        record.op(product, "router", makes=[Kept("router.output", width * scores)])
        softmax = each(
            "softmax",
            scores,
            flops=arithmetic.SOFTMAX,
            read=width,
            written=SINGLE,
            dtype="fp32",
            family="normalization",
            row=float(model.experts),
        )
        record.op(softmax, "router.softmax", makes=[Kept("router.scores", SINGLE * scores)], frees=("router.output",))
        chosen = each(
            "top_k",
            scores,
            flops=2.0,
            read=SINGLE,
            written=0.0,
            dtype="fp32",
            family="reduction",
            row=float(model.experts),
        )
        record.op(chosen, "router.top_k")
        spread = each("scatter", scores, flops=0.0, read=0.0, written=SINGLE + 1.0, dtype="fp32")
        # the map of tokens to experts, and for each row the token that it is of
        made = [Kept("router.map", float(scores)), Kept("permute.map", SINGLE * scores)]
        record.op(spread, "router.scatter", makes=made)

    def _route_back(self, record: PassRecord, x: str) -> str:
        """Gradients of the router's matrix and of what it reads; the name of the latter."""
        sizes, model, n = self.sizes, self.sizes.model, self.sizes.local_tokens
        scores, width, dtype = n * model.experts, self.sizes.width, self.sizes.precision
        softmax = each(
            "softmax_backward",
            scores,
            flops=arithmetic.SOFTMAX_BACK,
            read=3 * SINGLE,
            written=width,
            dtype="fp32",
            family="normalization",
            row=float(model.experts),
        )
        frees = ("rows.scores.gradient", "router.scores", "router.map")
        record.op(softmax, "router.softmax.gradient", makes=[Kept("router.gradient", width * scores)], frees=frees)
        found = "router.input.gradient"
        op = matmul(n, sizes.hidden, k=model.experts, dtype=dtype)
        record.op(op, found, makes=[Kept(found, sizes.local)])
        elements = model.experts * sizes.hidden
        op = weight_product(model.experts, sizes.hidden, k=n, dtype=dtype, into=width, adds=False)
        made = [Kept("router.weight.gradient", width * elements)]
        record.op(op, "router.weight.gradient", makes=made, weights=True, reads=(x, "router.gradient"))
        accumulated(record, "router.weight", elements, self.kernels, sizes)
        record.free("router.gradient", x)
        return found
